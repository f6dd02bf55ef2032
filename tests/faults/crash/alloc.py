# SPDX-License-Identifier: MIT
"""alloc.py ROUNDS | at N...: a session in which the n-th allocation of the daemon fails.

ROUNDS of all n (0: every one), spread evenly from a random first one. Nothing may be
lost, nobody may hang, and the daemon may end early only before its mount answers,
saying why. Every fourth session goes on with one failure in 20.
"""

import os
import random
import re
import subprocess
import sys

import bed
import session

# What may be said to a caller when there is no memory.
FAIR = {"ENOMEM", "EIO", "ENOSPC", "EAGAIN", "ENOENT", "ESTALE", "EBUSY", "ENODATA"}


def place(text):
    """Which line of the sources failed last."""
    found = re.findall(r"^failed (\d+) (\S+) (0x[0-9a-f]+)$", text, re.M)
    if not found:
        return "none"
    n, what, at = found[-1]
    said = subprocess.run(
        ["addr2line", "-f", "-s", "-e", os.path.join(bed.BUILD, "spoolfs"), hex(int(at, 16) - 1)],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"{n} {what} {' '.join(said.stdout.split())}"


def environment(b, at, every):
    return {
        "LD_PRELOAD": os.path.join(bed.PRELOAD, "alloc.so"),
        "ALLOC_PROGRAM": "spoolfs",
        "ALLOC_SAID": b.dir + "/said",
        "ALLOC_FAIL_AT": str(at),
        "ALLOC_FAIL_EVERY": str(every),
    }


def said(b):
    with open(b.dir + "/said", encoding="utf-8") as f:
        return f.read()


def serve(b, at, every, seen):
    """One session; the account of it."""
    m = b.mount(env=environment(b, at, every))
    if not m.ready():
        seen["refused"] += 1
        if not m.ended() or m.process.returncode <= 0:
            raise bed.Wrong(f"it ended early with {m.process.returncode}")
        if not b.said():
            raise bed.Wrong("it ended early and said nothing")
        return session.Account()
    lines, in_time = bed.client(m, session.play(m.path))
    account = session.Account(lines)
    if not in_time:
        raise bed.Wrong(f"the client hangs after: {lines[-1:]}")
    if m.ended():
        raise bed.Wrong(f"it ended early with {m.process.returncode} after: {lines[-1:]}")
    status = m.umount()
    if status:
        raise bed.Wrong(f"its exit status is {status}")
    seen["told"] += bool(account.refused)
    return account


def play(at, every, seen):
    with bed.Bed() as b:
        account = None
        try:
            account = serve(b, at, every, seen)
            b.complaints()
            if account.trouble:
                raise bed.Wrong(account.trouble[0])
            if unfair := [r for r in account.refused if r[-1] not in FAIR]:
                raise bed.Wrong(f"refused: {unfair}")
            account.settle(bed.look(b.db) if os.path.exists(b.db) else {})
        except bed.Wrong as e:
            print(f"allocation {at}: {e} [{place(said(b))}]")
            print(f"  log: {b.said()[-300:]!r}", flush=True)
            seen["wrong"] += 1
        return int((re.findall(r"^counted (\d+)$", said(b), re.M) or [0])[-1])


def main():
    seen = {"told": 0, "refused": 0, "wrong": 0}
    total = play(0, 0, seen)
    if sys.argv[1] == "at":
        numbers = [int(n) for n in sys.argv[2:]]
    else:
        rounds = int(sys.argv[1])
        step = max(1, total // rounds) if rounds else 1
        numbers = range(random.randint(1, step), total + 1, step)
    for i, n in enumerate(numbers):
        play(n, 20 if i % 4 == 3 else 0, seen)
    print(
        f"{len(numbers)} of {total} allocations failed: {seen['told']} told, "
        f"{seen['refused']} refused to start, {seen['wrong']} wrong"
    )
    return 1 if seen["wrong"] or not total else 0


if __name__ == "__main__":
    sys.exit(main())
