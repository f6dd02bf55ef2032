# SPDX-License-Identifier: MIT
"""killed.py ROUNDS: writers are killed in the middle of opening, writing or closing.

What they had closed is there, and nothing that they had not.
"""

import os
import random
import signal
import sys
import time

import bed

LONGEST_S = 0.01


def write_on(q, tag, ready):
    os.write(ready, b"x")
    for i in range(1 << 30):
        name = f"{tag}n{i}"
        fd = os.open(f"{q}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(fd, bed.body(name, 50))
        os.close(fd)


def kill_one(q, tag):
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            write_on(q, tag, w)
        finally:
            os._exit(1)
    os.read(r, 1)
    os.close(r)
    os.close(w)
    # Not a wait for a state: any moment will do.
    end = time.monotonic() + random.random() * LONGEST_S
    while time.monotonic() < end:
        pass
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def main():
    rounds = int(sys.argv[1])
    with bed.Bed() as b:
        m = b.mount()
        if not m.ready():
            raise bed.Wrong("no mount: " + b.said())
        for i in range(rounds):
            kill_one(m.path, f"r{i}")
        if m.umount():
            raise bed.Wrong("it ends badly: " + b.said())
        found = bed.look(b.db)
    print(f"{rounds} writers killed, {len(found)} messages, all whole")


if __name__ == "__main__":
    main()
