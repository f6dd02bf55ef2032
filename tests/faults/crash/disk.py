# SPDX-License-Identifier: MIT
"""disk.py ROUNDS | at N... | tmpfs: a session on a disk that is full from the n-th write on.

ROUNDS of all n (0: every one), spread evenly from a random first one. Writers are
told ENOSPC, nothing that was taken is lost, .control answers, and once there is
room all is well again. tmpfs: the same on a small one, with no preload.
"""

import os
import random
import re
import subprocess
import sys
import tempfile

import bed
import session


def environment(b, at):
    return {
        "LD_PRELOAD": os.path.join(bed.PRELOAD, "disk.so"),
        "DISK_PREFIX": b.db,
        "DISK_FAIL_AT": str(at),
        "DISK_ROOM": b.dir + "/room",
        "DISK_SAID": b.dir + "/said",
    }


def said(b):
    with open(b.dir + "/said", encoding="utf-8") as f:
        return f.read()


def make_room(b):
    with open(b.dir + "/room", "w", encoding="utf-8"):
        pass


def again(q):
    """With room: everything must be taken and confirmed, after a while at most."""

    def work(say):
        session.look_around(say, q)
        for name in ("c0", "c1"):
            session.tell(say, "put", name, lambda: session.write(f"{q}/{name}", bed.body(name, 5000)))
        for _ in range(20):
            if session.tell(say, "sync", "-", lambda: session.sync_all(q)):
                break

    return work


def run(m, work):
    lines, in_time = bed.client(m, work)
    if not in_time:
        raise bed.Wrong(f"the client hangs after: {lines[-1:]}")
    if m.ended():
        raise bed.Wrong(f"it ended with {m.process.returncode} after: {lines[-1:]}")
    account = session.Account(lines)
    if account.trouble:
        raise bed.Wrong(account.trouble[0])
    return lines, account


def no_errors_but(account, fair):
    for op, name, error in account.refused:
        if error not in fair and (op, error) not in (("sync", "EIO"), ("next", "EAGAIN")):
            raise bed.Wrong(f"refused: {op} {name} {error}")


def serve(b, at, seen):
    m = b.mount(env=environment(b, at))
    if not m.ready():
        seen["refused"] += 1
        # SQLite does not say why it could not create a file.
        if m.process.returncode <= 0 or not re.search("(?i)no space|cannot be opened", b.said()):
            raise bed.Wrong(f"it ended with {m.process.returncode}: {b.said()}")
        return session.Account()
    first, account = run(m, session.play(m.path))
    no_errors_but(account, {"ENOSPC"})
    seen["told"] += any(r[-1] == "ENOSPC" for r in account.refused)
    for name in (".control", ".status.json"):
        if f"ok look {name}" not in first:
            raise bed.Wrong(f"{name} does not answer")
    make_room(b)
    second, account = run(m, again(m.path))
    no_errors_but(account, set())
    if "ok sync -" not in second:
        raise bed.Wrong("with room, nothing is confirmed")
    if m.umount():
        raise bed.Wrong(f"its exit status is {m.process.returncode}")
    return session.Account(first + second)


def play(at, seen):
    with bed.Bed() as b:
        try:
            account = serve(b, at, seen)
            b.complaints()
            # What was refused at the start must go now.
            make_room(b)
            m = b.mount("r")
            if not m.ready() or m.umount():
                raise bed.Wrong("it does not start with room again: " + b.said())
            account.settle(bed.look(b.db))
        except bed.Wrong as e:
            first = re.findall(r"^failed .*$", said(b), re.M)[:1]
            print(f"write {at}: {e} {first}")
            print(f"  log: {b.said()[-300:]!r}", flush=True)
            seen["wrong"] += 1
        return int((re.findall(r"^counted (\d+)$", said(b), re.M) or [0])[-1])


def fill(q, full):
    def work(say):
        for i in range(10000):
            name = f"f{i}"
            done = session.tell(
                say, "put", name, lambda: session.write(f"{q}/{name}", bed.body(name, 3000))
            )
            if not done:
                break
        else:
            say("! it never was full")
        # Handling goes on, as far as it can.
        session.consume(say, q, session.listed(say, q, 1)[:4])
        session.look_around(say, q)

    return work


def on_tmpfs(where):
    """With a file that can be removed to make room."""
    with bed.Bed(where) as b:
        ballast = where + "/ballast"
        m = b.mount()
        if not m.ready():
            raise bed.Wrong("no mount: " + b.said())
        with open(ballast, "wb") as f:
            f.write(bytes(1 << 20))
        first, account = run(m, fill(m.path, True))
        no_errors_but(account, {"ENOSPC"})
        if not any(r[0] == "put" and r[-1] == "ENOSPC" for r in account.refused):
            raise bed.Wrong(f"no writer was told: {account.refused}")
        os.unlink(ballast)
        second, account = run(m, again(m.path))
        no_errors_but(account, set())
        if "ok sync -" not in second or m.umount():
            raise bed.Wrong("with room, it does not go on: " + b.said())
        b.complaints()
        account = session.Account(first + second)
        account.settle(bed.look(b.db))
        print(f"a full tmpfs: {len(account.put)} messages taken, 0 lost")


def tmpfs():
    where = tempfile.mkdtemp(prefix="spoolfs-full.")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", where], check=True)
    try:
        on_tmpfs(where)
    finally:
        subprocess.run(["umount", "-l", where], check=True)
        os.rmdir(where)


def main():
    if sys.argv[1] == "tmpfs":
        tmpfs()
        return 0
    seen = {"told": 0, "refused": 0, "wrong": 0}
    total = play(0, seen)
    if sys.argv[1] == "at":
        numbers = [int(n) for n in sys.argv[2:]]
    else:
        rounds = int(sys.argv[1])
        step = max(1, total // rounds) if rounds else 1
        numbers = range(random.randint(1, step), total + 1, step)
    for n in numbers:
        play(n, seen)
    print(
        f"full from {len(numbers)} of {total} writes on: {seen['told']} told, "
        f"{seen['refused']} refused to start, {seen['wrong']} wrong"
    )
    return 1 if seen["wrong"] or not total else 0


if __name__ == "__main__":
    sys.exit(main())
