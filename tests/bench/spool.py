# SPDX-License-Identifier: MIT
"""spoolfs, and the limits it cannot pass: nullfs, tmpfs and the disk.

Names of figures are MEASURE/SUBJECT/SIZE, in microseconds per message where
nothing else is said.
"""

import contextlib
import os
import time

from bed import Absent, Failed

# Of the embedded queue, by default; it is filled again when a quarter is free.
WINDOW = 1024
LEAST = WINDOW * 3 // 4
SLACK = 64      # what consumers who compete may take too much


def record_cpu(bed, name, process, n, before_ns):
    """CPU seconds per 10,000 messages: the server's, and the client's beside it."""
    bed.record(f"cpu/{name}", (process.cpu_ns() - before_ns) / n * 1e4 / 1e9)
    bed.record(f"cpu-client/{name}", bed.client_cpu_ns / n * 1e4 / 1e9)


def enqueue(bed, mount, subject, n, size, writers):
    before = mount.cpu_ns()
    got = bed.client("files", "enqueue", mount.path, n, size, writers)
    bed.record(f"enqueue{writers}/{subject}/{size}", got["enqueue"])
    record_cpu(bed, f"enqueue{writers}/{subject}/{size}", mount, n, before)


def consume(bed, mount, subject, n, size, mode="consume"):
    before = mount.cpu_ns()
    got = bed.client("files", mode, mount.path, n)
    bed.record(f"consume/{subject}/{size}", got["consume"])
    record_cpu(bed, f"consume/{subject}/{size}", mount, n, before)


def fill(bed, mount, n, size=100):
    """Untimed."""
    bed.client("files", "enqueue", mount.path, n, size, 16)


# ---- limits --------------------------------------------------------------------

def null(bed, plan, size):
    """Durability: none. Everything is answered from memory."""
    n = plan.messages(size)
    with bed.null(n, size) as mount:
        consume(bed, mount, "null", n, size)
        enqueue(bed, mount, "null", plan.writes(size), size, 1)
        enqueue(bed, mount, "null", n, size, 16)
        bed.record(f"memory/null/{size}", mount.resident_kib() / 1024)


def tmpfs(bed, plan, size):
    """Durability: none. Memory, and no FUSE."""
    n = plan.messages(size)
    with bed.directory(bed.ram) as path:
        for writers, count in ((1, n), (16, n)):
            got = bed.client("files", "enqueue", path, count, size, writers)
            bed.record(f"enqueue{writers}/tmpfs/{size}", got["enqueue"])
        got = bed.client("files", "consume", path, n)
        bed.record(f"consume/tmpfs/{size}", got["consume"])


def disk(bed, plan, size):
    """Durability: full. One appended write and one fdatasync, and nothing else."""
    with bed.directory() as path:
        got = bed.client("files", "fdatasync", path, plan.writes(size), size)
        bed.record(f"enqueue1/fdatasync/{size}", got["fdatasync"])


# ---- spoolfs -------------------------------------------------------------------

def spoolfs(bed, plan, size):
    """Durability: a message is on disk when its close() returns. A deletion is
    taken on by unlink() and confirmed in batches; consuming includes the fsync
    of .control at its end, after which all are on disk. consume-sync confirms
    each before it goes on. The 16 consumers take names from .next."""
    n, writes = plan.messages(size), plan.writes(size)
    with bed.directory() as home:
        db = os.path.join(home, "queue.db")
        with bed.queue(db, "announce=off,role=out") as out:
            enqueue(bed, out, "spoolfs", writes, size, 1)
            enqueue(bed, out, "spoolfs", n, size, 16)
            fill(bed, out, n // 2, size)
        bed.done()
        with bed.queue(db, "announce=off,role=in") as mount:
            mount.await_ready(min(LEAST, n + writes))
            consume(bed, mount, "spoolfs", n, size)
            got = bed.client("files", "take", mount.path, n // 2, 16)
            bed.record(f"consume16/spoolfs/{size}", got["take"])
            consume(bed, mount, "spoolfs-sync", writes, size, "consume-sync")
            mount.await_control("depth", 0)


def spoolfs_listed(bed, plan, size):
    """The same, with every message fetched and listed before it begins: what is
    left of consuming beside nullfs, which also has them all."""
    n = plan.messages(size)
    with bed.directory() as home:
        options = f"announce=off,window={n}"
        with bed.queue(os.path.join(home, "queue.db"), options) as mount:
            fill(bed, mount, n, size)
            mount.await_ready(n)
            consume(bed, mount, "spoolfs-listed", n, size)


def spoolfs_announced(bed, plan, size):
    """The same with default options: each message is announced to watchers."""
    n = plan.messages(size)
    with bed.directory() as home:
        with bed.queue(os.path.join(home, "queue.db")) as mount:
            fill(bed, mount, n, size)
            mount.await_listed(min(LEAST, n))
            consume(bed, mount, "spoolfs-announce", n, size)
            bed.record(f"memory/spoolfs/{size}", mount.resident_kib() / 1024)


# ---- latency -------------------------------------------------------------------

def latency(bed, plan):
    with bed.directory() as home:
        db = os.path.join(home, "queue.db")
        with bed.queue(db, "announce=off,role=out", pinned=False) as out, \
                bed.queue(db, pinned=False) as into:
            got = bed.client("latency", out.path, into.path, plan.pings, pinned=False)
    for name, value in got.items():
        bed.record(f"latency/{name}", value)


# ---- how many are waiting, how many consume ---------------------------------------

class Depths:
    """Queues of several depths, filled once and kept as deep by what is taken
    from them being written again. The window is smaller than what one round takes,
    so that fetching is a part of it at every depth."""

    TAKE = 500
    WINDOW = 100

    def __init__(self, bed, depths):
        self.bed = bed
        self.home = bed.fresh()
        self.depths = depths
        self.filled = False

    def db(self, depth):
        return os.path.join(self.home, f"{depth}.db")

    def fill(self):
        for depth in self.depths:
            with self.bed.queue(self.db(depth), "announce=off,role=out") as out:
                fill(self.bed, out, depth)
        self.filled = True

    def measure(self, plan):
        if not self.filled:
            self.fill()
        self.bed.done()
        with contextlib.ExitStack() as stack:
            mounts = {depth: stack.enter_context(self.bed.queue(
                self.db(depth), f"announce=off,window={self.WINDOW}"))
                for depth in self.depths}
            for _ in range(plan.depth_turns):
                for depth, mount in mounts.items():
                    self.turn(depth, mount)
            for depth, mount in mounts.items():
                self.bed.record(f"memory-depth/{depth}", mount.resident_kib() / 1024)

    def turn(self, depth, mount):
        mount.await_ready(self.WINDOW * 3 // 4)
        consumed = self.bed.client("files", "consume", mount.path, self.TAKE)
        written = self.bed.client("files", "enqueue", mount.path, self.TAKE, 100, 16)
        self.bed.record(f"depth-consume/{depth}", consumed["consume"])
        self.bed.record(f"depth-enqueue/{depth}", written["enqueue"])
        mount.await_control("outbox", 0)


def consumers(bed, plan):
    """On one mount, by .next and by listing; with nothing pinned."""
    n = plan.crowd
    with bed.directory() as home, \
            bed.queue(os.path.join(home, "queue.db"), "announce=off", pinned=False) as mount:
        for people in plan.people:
            for mode in ("take", "compete"):
                fill(bed, mount, n + SLACK)
                mount.await_control("outbox", 0)
                mount.await_ready(min(LEAST, n))
                got = bed.client("files", mode, mount.path, n, people, pinned=False)
                bed.record(f"consumers-{mode}/{people}", got[mode])
                bed.done()


# ---- doing nothing --------------------------------------------------------------

def record_idle(bed, name, process, begin, span_s):
    cpu_ns, wakeups = begin
    bed.record(f"idle-cpu-percent/{name}", (process.cpu_ns() - cpu_ns) / span_s / 1e7)
    bed.record(f"idle-wakeups-per-s/{name}", (process.wakeups() - wakeups) / span_s)
    bed.record(f"memory/idle-{name}", process.resident_kib() / 1024)


def used_once(bed, mount):
    fill(bed, mount, 100)
    mount.await_listed(100)
    bed.client("files", "consume", mount.path, 100)


def idle(bed, plan, peers):
    """All at once: spoolfs with default options (which polls), spoolfs that has no
    deadline for a day, nullfs, and the servers that PEERS starts."""
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(bed.directory())
        subjects = {"null": stack.enter_context(bed.null(10, 100))}
        for name, options in (("spoolfs", ""), ("spoolfs-no-deadline", "idle_time=1d")):
            mount = stack.enter_context(bed.queue(
                os.path.join(home, name + ".db"), options, pinned=False))
            used_once(bed, mount)
            subjects[name] = mount
        for name, enter in peers.items():
            with contextlib.suppress(Absent):
                subjects[name] = stack.enter_context(enter(bed))
        polls = int(subjects["spoolfs"].control("polls_total"))
        time.sleep(plan.settle_s)   # names just sent are forgotten, logs written
        begin = {name: (p.cpu_ns(), p.wakeups()) for name, p in subjects.items()}
        start = time.monotonic()
        time.sleep(plan.idle_s)
        span_s = time.monotonic() - start
        for name, process in subjects.items():
            record_idle(bed, name, process, begin[name], span_s)
        polls = int(subjects["spoolfs"].control("polls_total")) - polls
        bed.record("idle-polls/spoolfs", polls)
        if subjects["spoolfs"].control("depth") != "0":
            raise Failed("an idle queue that is not empty")
