# SPDX-License-Identifier: MIT
"""kill.py ROUNDS [SEED]: two mounts of one queue, and SIGKILL for whatever it hits.

Writers and readers of both write down what they were told. Each round one or more
of daemons, announcers, readers and writers are killed in the middle of it all; what
died is started anew, and the queue's file must hold what is owed. A daemon whose
announcer is killed lives on and starts another.
"""

import errno
import os
import random
import signal
import sys
import time

import bed
import cut
import session

OPTIONS = bed.OPTIONS + ",visibility=2s,inherit=2s"
DEAD_MOUNT = (errno.ENOTCONN, errno.ECONNABORTED, errno.EIO)
KINDS = ("daemon", "announcer", "reader", "writer", "both", "all")


class Book:
    def __init__(self, path):
        self.path = path
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, line):
        os.write(self.fd, f"{line}\n".encode())

    def names(self, what):
        with open(self.path, encoding="utf-8") as f:
            return {line[2:].strip() for line in f if line[0] == what}

    def size(self):
        return os.stat(self.path).st_size


def write_on(q, tag, book):
    rng = random.Random(tag)
    for i in range(1 << 30):
        name = f"{tag}n{i}"
        book.note(f"c {name}")
        cut.put(q, name, rng, Quiet(book))


class Quiet:
    """Of what cut.put() says, that which a kill cannot undo."""

    def __init__(self, book):
        self.book = book

    def note(self, line):
        if line[0] == "C":
            self.book.note(line)


def handle(q, name, book):
    try:
        inside = bed.whole(session.read(f"{q}/{name}"))
        if inside is None:
            book.note(f"! {name}")
            return
        book.note(f"d {inside}")
        os.unlink(f"{q}/{name}")
        book.note(f"D {inside}")
    except OSError as e:
        if e.errno in DEAD_MOUNT:
            raise


def read_on(q, tag, book):
    rng = random.Random(tag)
    while True:
        names = os.listdir(q)
        for name in rng.sample(names, min(10, len(names))):
            handle(q, name, book)
        time.sleep(0.001)


def start_client(kind, m, tag, book):
    pid = os.fork()
    if pid:
        return (kind, m, pid)
    try:
        os.setsid()
        (write_on if kind == "writer" else read_on)(m.path, tag, book)
    except OSError as e:
        # The end of a mount is the end of its clients, and no trouble.
        if e.errno not in DEAD_MOUNT:
            book.note(f"! {kind} {e}")
    except BaseException as e:
        book.note(f"! {kind} {type(e).__name__} {e}")
    os._exit(0)


class Round:
    def __init__(self, b, seed):
        self.b, self.rng, self.n = b, random.Random(seed), 0
        self.book = Book(b.dir + "/book")
        self.mounts = [self.mount("q"), self.mount("r")]
        self.clients = []
        self.kills = dict.fromkeys(("daemon", "announcer", "reader", "writer"), 0)
        self.refill()

    def mount(self, name):
        m = self.b.mount(name, options=OPTIONS)
        if not m.ready():
            raise bed.Wrong("no mount: " + self.b.said()[-1000:])
        return m

    def refill(self):
        """What is missing of two writers and one reader of each mount."""
        for m in self.mounts:
            for kind, many in (("writer", 2), ("reader", 1)):
                there = sum(1 for k, of, _ in self.clients if k == kind and of is m)
                for _ in range(many - there):
                    self.n += 1
                    self.clients.append(start_client(kind, m, f"k{self.n}", self.book))

    def kill_client(self, kind):
        client = self.rng.choice([c for c in self.clients if c[0] == kind])
        os.kill(client[2], signal.SIGKILL)
        os.waitpid(client[2], 0)
        self.clients.remove(client)
        self.kills[kind] += 1

    def kill_announcer(self, m):
        old = children(m.process.pid)
        for pid in old:
            os.kill(pid, signal.SIGKILL)
        self.kills["announcer"] += bool(old)

    def kill_daemons(self, mounts):
        for m in mounts:
            m.process.send_signal(signal.SIGKILL)
        for m in mounts:
            m.process.wait()
            self.kills["daemon"] += 1
            for client in [c for c in self.clients if c[1] is m]:
                bed.until("the end of a client", lambda: os.waitpid(client[2], os.WNOHANG)[0])
                self.clients.remove(client)
        for m in mounts:
            self.mounts[self.mounts.index(m)] = self.mount(os.path.basename(m.path))

    def play(self):
        grown = self.book.size() + self.rng.randint(1, 4000)
        bed.until("progress", lambda: self.book.size() >= grown)
        kind = self.rng.choice(KINDS)
        one = self.rng.choice(self.mounts)
        if kind in ("announcer", "all"):
            self.kill_announcer(one)
        if kind in ("reader", "all"):
            self.kill_client("reader")
        if kind in ("writer", "all"):
            self.kill_client("writer")
        if kind in ("daemon", "both", "all"):
            self.kill_daemons(list(self.mounts) if kind == "both" else [one])
        for m in self.mounts:
            if m.ended():
                raise bed.Wrong(f"{m.path} ended with {m.process.returncode}")
            bed.until("an announcer", lambda: children(m.process.pid), 60)
        self.refill()
        self.audit()

    def audit(self):
        owed = self.book.names("C")
        found = bed.look(self.b.db)
        if trouble := self.book.names("!"):
            raise bed.Wrong(f"trouble: {sorted(trouble)[:3]}")
        if lost := owed - set(found) - self.book.names("d"):
            raise bed.Wrong(f"lost: {sorted(lost)[:5]}")
        if strange := set(found) - self.book.names("c"):
            raise bed.Wrong(f"from nowhere: {sorted(strange)[:5]}")
        if torn := {n for n in owed & set(found) if found[n] == "partial"}:
            raise bed.Wrong(f"closed, and cut off: {sorted(torn)[:5]}")
        self.b.complaints()

    def finish(self):
        for _, _, pid in self.clients:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self.clients = []
        if any(m.umount() for m in self.mounts):
            raise bed.Wrong("a daemon ends badly: " + self.b.said()[-1000:])
        self.audit()

    def close(self):
        for m in self.b.mounts:
            m.kill()
        for _, _, pid in self.clients:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
            return [int(n) for n in f.read().split()]
    except OSError:
        return []


def main():
    rounds = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 20)
    wrong = 0
    with bed.Bed() as b:
        r = Round(b, seed)
        try:
            for _ in range(rounds):
                r.play()
            r.finish()
        except bed.Wrong as e:
            wrong = 1
            print(f"{e}\n  log: {b.said()[-1500:]}")
        finally:
            r.close()
        kills = ", ".join(f"{n} {what}s" for what, n in r.kills.items())
        closed, gone = len(r.book.names("C")), len(r.book.names("D"))
    print(f"seed {seed}: {kills} killed, {closed} messages, {gone} handled, {wrong} wrong")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
