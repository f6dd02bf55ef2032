# SPDX-License-Identifier: MIT
"""cut.py CUTS [SEED] [--no-sync]: what a power cut may leave of a queue's file.

Two mounts of one queue work under preload/record.c. Then, for CUTS moments of the
record, files are made that a cut at that moment may have left: everything up to
the last sync of a file, and of what was written later all, nothing, a beginning,
some writes, some sectors (of 512 or 4096 bytes, the rest as it was, zero, or
rubbish where the file was longer than what had been synced). A name appears or
goes when its directory was synced, or may have. Then the queue must be whole, and
hold what its users were told: bed.look() reads the file, and of some states a
daemon is started. --no-sync believes no sync: that must be found out.
"""

import collections
import os
import random
import shutil
import struct
import sys
import tempfile
import threading
import time

import bed
import session

HEAD = struct.Struct("=IIQQQQ")
FILES = ("q.db", "q.db-wal", "q.db-journal")
RUBBISH = random.Random(1).randbytes(1 << 16)
MESSAGES = int(os.environ.get("CUT_MESSAGES", "120"))
OPENED_EACH = 25

Event = collections.namedtuple("Event", "op tag ino at len data")


# ---- the work that is cut off -----------------------------------------------


class Marks:
    """What clients were told, in the same file as what was done for them."""

    def __init__(self, log):
        self.fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, text):
        data = text.encode()
        os.write(self.fd, HEAD.pack(ord("M"), 0, 0, 0, 0, len(data)) + data)


def length(rng):
    return rng.choice((0, 17, 100, 100, 3900, 4096, 9000, 20000, 65000))


def put(q, name, rng, marks):
    data = bed.body(name, length(rng))
    draft = rng.random() < 0.3
    path = f"{q}/{name}" + (".tmp" if draft else "")
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    half = len(data) // 2 + 8
    os.write(fd, data[:half])
    if rng.random() < 0.2:
        os.fsync(fd)
        marks.note(f"F {name}")
    os.write(fd, data[half:])
    os.close(fd)
    marks.note(f"C {name}")
    if draft and rng.random() < 0.9:
        os.rename(path, f"{q}/{name}")


def write_some(q, tag, seed, marks):
    rng = random.Random(seed)
    for i in range(MESSAGES):
        put(q, f"{tag}{i}", rng, marks)


def handle(q, name, rng, marks, me):
    try:
        inside = bed.whole(session.read(f"{q}/{name}"))
        if inside is None:
            marks.note(f"! torn in the mount {name}")
            return
        what = rng.random()
        if what < 0.1:
            os.rename(f"{q}/{name}", f"{q}/.dead/{name}")
        elif what < 0.2:
            session.order(q, f"release {name}\n")
        else:
            marks.note(f"d {inside}")
            os.unlink(f"{q}/{name}")
            marks.note(f"D {me} {inside}")
    except OSError:
        pass  # somebody else's by now


def consume(q, seed, marks, share, me):
    rng = random.Random(seed)
    while True:
        for name in os.listdir(q):
            if rng.random() < share:
                handle(q, name, rng, marks, me)
        if rng.random() < 0.3:
            marks.note(f"y {me}")
            session.sync_all(q)
            marks.note(f"Y {me}")
        for name in os.listdir(q + "/.dead"):
            if rng.random() < 0.3:
                try:
                    os.rename(f"{q}/.dead/{name}", f"{q}/{name}")
                except OSError:
                    pass
        time.sleep(0.002)


def in_child(work, *args):
    pid = os.fork()
    if pid == 0:
        try:
            work(*args)
            os._exit(0)
        except BaseException as e:
            print(f"{work.__name__}: {e}", file=sys.stderr)
            os._exit(1)
    return pid


def ended_well(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def work(b, seed, marks):
    """One life of both mounts, with all their clients."""
    log = b.dir + "/record"
    env = {
        "LD_PRELOAD": os.path.join(bed.PRELOAD, "record.so"),
        "RECORD_PREFIX": b.db,
        "RECORD_LOG": log,
    }
    one, two = b.mount("q", env), b.mount("r", env)
    watch = threading.Timer(120, lambda: [m.kill() for m in (one, two)])
    watch.start()
    if not (one.ready() and two.ready()):
        raise bed.Wrong("no mount: " + b.said())
    writers = [
        in_child(write_some, m.path, f"s{seed}{t}", f"{seed}{t}", marks)
        for t, m in (("a", one), ("b", one), ("c", two))
    ]
    # Two lives: the first leaves much, and the file grows.
    readers = [
        in_child(consume, m.path, seed + i, marks, 0.1 + 0.3 * (seed % 2), i)
        for i, m in enumerate((one, two))
    ]
    good = all([ended_well(pid) for pid in writers])
    for pid in readers:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    two.umount()
    one.umount()
    watch.cancel()
    b.complaints()
    if not good:
        raise bed.Wrong("a writer failed: " + b.said())


def record(seed):
    with bed.Bed() as b:
        marks = Marks(b.dir + "/record")
        work(b, 2 * seed, marks)
        work(b, 2 * seed + 1, marks)
        with open(b.dir + "/record", "rb") as f:
            return parse(f.read())


def parse(data):
    events, at = [], 0
    while at < len(data):
        op, tag, ino, where, n, follows = HEAD.unpack_from(data, at)
        at += HEAD.size
        events.append(Event(chr(op), tag, ino, where, n, data[at : at + follows]))
        at += follows
    return events


# ---- the disk ---------------------------------------------------------------


class File:
    def __init__(self):
        self.durable = bytearray()
        self.later = []  # (event number, event)

    def sync(self, before):
        for number, e in self.later:
            if number < before:
                apply(self.durable, e)
        self.later = [(n, e) for n, e in self.later if n >= before]


def apply(data, e):
    if e.op == "T":
        if e.len < len(data):
            del data[e.len :]
        else:
            data.extend(bytes(e.len - len(data)))
        return
    end = e.at + e.len
    if end > len(data):
        data.extend(bytes(end - len(data)))
    data[e.at : end] = bytes(e.len) if e.op == "Z" else e.data


def apply_sectors(data, e, size, rng, rubbish):
    """Some sectors of one write; of the others what was there, or anything."""
    if e.op == "T":
        if rng.random() < 0.5:
            apply(data, e)
        return
    new = bytes(e.len) if e.op == "Z" else e.data
    old = len(data)
    at = e.at
    while at < e.at + e.len:
        end = min((at // size + 1) * size, e.at + e.len)
        if end > len(data):
            data.extend(bytes(end - len(data)))
        if rng.random() < 0.5:
            data[at:end] = new[at - e.at : end - e.at]
        elif rubbish and at >= old:
            data[at:end] = RUBBISH[: end - at]
        at = end


class Disk:
    """What is durable, what may be, and what users were told."""

    def __init__(self, believe=True):
        self.believe = believe
        self.files, self.names, self.later = {}, {}, []
        self.alive = {}  # inode number: file
        self.begun = {}
        self.owed, self.half = set(), set()
        self.gone, self.confirmed = set(), set()
        self.removed = {"0": set(), "1": set()}  # by each mount
        self.asked = {}
        self.trouble = []

    def feed(self, number, e):
        if e.op == "M":
            self.told(e.data.decode())
        elif e.op == "O" and not e.tag:
            self.opened(number, os.path.basename(e.data.decode()), e.ino)
        elif e.op == "U":
            name = os.path.basename(e.data.decode())
            self.later.append((number, name, None))
            self.alive = {i: f for i, f in self.alive.items() if f[0] != name}
        elif e.op in "WZT" and e.ino in self.alive:
            self.alive[e.ino][1].later.append((number, e))
        elif e.op == "S":
            self.begun[e.tag] = number
        elif e.op == "E" and self.believe:
            self.synced(e)

    def opened(self, number, name, ino):
        if name in FILES and ino not in self.alive:
            self.alive[ino] = (name, File())
            self.later.append((number, name, self.alive[ino][1]))

    def synced(self, e):
        before = self.begun[e.tag]
        if e.ino in self.alive:
            self.alive[e.ino][1].sync(before)
            return
        for number, name, file in self.later:
            if number < before:
                self.names[name] = file
        self.later = [x for x in self.later if x[0] >= before]

    def told(self, text):
        what, _, name = text.partition(" ")
        if what == "C":
            self.owed.add(name)
        elif what == "F":
            self.half.add(name)
        elif what == "d":
            self.gone.add(name)
        elif what == "D":
            mount, _, name = name.partition(" ")
            self.removed[mount].add(name)
        elif what == "y":
            self.asked[name] = set(self.removed[name])
        elif what == "Y":
            self.confirmed |= self.asked[name]
        elif what == "!":
            self.trouble.append(text)

    def names_after(self, rng, how):
        names = dict(self.names)
        for name in FILES:
            ops = [f for _, n, f in self.later if n == name]
            keep = {"none": 0, "all": len(ops)}.get(how, rng.randint(0, len(ops)))
            if keep:
                names[name] = ops[keep - 1]
        return {n: f for n, f in names.items() if f is not None}

    def leave(self, where, rng, how):
        """One state of the files, in the directory WHERE."""
        kept = {}
        for name, file in self.names_after(rng, how).items():
            kept[name] = self.content(file, rng, how if how != "file" else rng.choice(("all", "none")))
        for name, data in kept.items():
            with open(os.path.join(where, name), "wb") as f:
                f.write(data)
        return kept

    def content(self, file, rng, how):
        data = bytearray(file.durable)
        ops = [e for _, e in file.later]
        if how == "none":
            ops = []
        elif how == "beginning":
            ops = ops[: rng.randint(0, len(ops))]
        elif how == "some":
            ops = [e for e in ops if rng.random() < 0.5]
        for i, e in enumerate(ops):
            last = how == "beginning" and i == len(ops) - 1
            if how in ("512", "4096", "rubbish") or last:
                size = 4096 if how == "4096" else 512
                apply_sectors(data, e, size, rng, how == "rubbish")
            else:
                apply(data, e)
        return data

    def settle(self, found):
        if lost := (self.owed | self.half) - self.gone - set(found):
            raise bed.Wrong(f"lost: {sorted(lost)[:8]}")
        torn = [n for n in self.owed - self.gone if found[n] == "partial"]
        if torn:
            raise bed.Wrong(f"closed, and cut off: {sorted(torn)[:8]}")
        if back := self.confirmed & set(found):
            raise bed.Wrong(f"came back: {sorted(back)[:8]}")


HOWS = ("none", "all", "beginning", "some", "512", "4096", "rubbish", "file")


# ---- the judgement ----------------------------------------------------------


def start_daemon(where, disk, seen):
    """A daemon on that state: it must serve it, and leave it as good."""
    b = bed.Bed(where)
    try:
        for name in os.listdir(where):
            if name in FILES:
                os.rename(os.path.join(where, name), os.path.join(b.dir, name))
        m = b.mount()
        if not m.ready():
            raise bed.Wrong("the daemon does not start: " + b.said())
        if m.umount():
            raise bed.Wrong("the daemon fails: " + b.said())
        b.complaints()
        disk.settle(bed.look(b.db))
        seen["daemons"] += 1
    finally:
        b.close()


def judge(disk, rng, how, number, seen):
    where = tempfile.mkdtemp(prefix="spoolfs-cut.", dir="/dev/shm")
    try:
        kept = disk.leave(where, rng, how)
        seen["states"] += 1
        daemon = seen["states"] % OPENED_EACH == 0
        if "q.db" not in kept:
            disk.settle({})
        elif daemon:
            start_daemon(where, disk, seen)
        else:
            disk.settle(bed.look(where + "/q.db"))
    except bed.Wrong as e:
        seen["wrong"] += 1
        if seen["wrong"] <= 5:
            print(f"cut before {number}, {how}: {e}", flush=True)
        keep_evidence(where, seen)
    finally:
        shutil.rmtree(where, ignore_errors=True)


def keep_evidence(where, seen):
    to = os.environ.get("CUT_KEEP")
    if to and seen["wrong"] == 1:
        shutil.copytree(where, to, dirs_exist_ok=True)


def moments(events, cuts, rng):
    """Where to cut: half of them just behind a mark or a sync, where more is owed."""
    busy = [i + 1 for i, e in enumerate(events) if e.op in "ME"]
    some = [rng.choice(busy) for _ in range(cuts // 2)]
    some += [rng.randint(1, len(events)) for _ in range(cuts - len(some))]
    return sorted(some)


def main():
    arguments = [a for a in sys.argv[1:] if a != "--no-sync"]
    cuts = int(arguments[0])
    seed = int(arguments[1]) if len(arguments) > 1 else random.randrange(1 << 20)
    believe = "--no-sync" not in sys.argv
    rng = random.Random(seed)
    events = record(seed)
    # Without syncs, nothing is durable: enough to look at what that makes lost.
    disk = Disk(believe)
    seen = {"states": 0, "daemons": 0, "wrong": 0}
    at = 0
    for cut in moments(events, cuts, rng):
        while at < cut:
            disk.feed(at, events[at])
            at += 1
        hows = HOWS if believe else ("none", "some")
        for how in hows:
            judge(disk, rng, how, cut, seen)
    if disk.trouble:
        print(disk.trouble[0])
        seen["wrong"] += 1
    ops = collections.Counter(e.op for e in events)
    print(
        f"seed {seed}: {cuts} cuts of {ops['W'] + ops['Z']} writes and {ops['E']} syncs, "
        f"{seen['states']} states, {seen['daemons']} opened by a daemon, "
        f"{len(disk.owed)} messages, {len(disk.confirmed)} deletions confirmed, "
        f"{seen['wrong']} wrong"
    )
    return 1 if seen["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
