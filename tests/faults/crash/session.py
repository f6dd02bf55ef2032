# SPDX-License-Identifier: MIT
"""A short script of all that one does with a queue, told line by line.

    try OP NAME      what is about to happen
    ok OP NAME       it was said to have happened
    no OP NAME ERRNO
"""

import os
import time

import bed

SIZES = (100, 20000, 0, 4000)
LINGER_S = 1.0


def tell(say, op, name, work):
    """Does work(); None, and a line, where it fails."""
    say(f"try {op} {name}")
    try:
        result = work()
    except OSError as e:
        say(f"no {op} {name} {bed.code(e)}")
        return None
    say(f"ok {op} {name}")
    return True if result is None else result


def names_in(say, path):
    names = []
    tell(say, "look", os.path.basename(path), lambda: names.extend(os.listdir(path)))
    return sorted(names)


def write(path, data, sync=False):
    # In pieces: a cut-off one would show.
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        half = (len(data) + 1) // 2
        for piece in (data[:half], data[half:]):
            while piece:
                piece = piece[os.write(fd, piece) :]
        if sync:
            os.fsync(fd)
    except BaseException:
        os.close(fd)
        raise
    os.close(fd)


def read(path):
    with open(path, "rb", buffering=0) as f:
        data = b""
        while more := f.read(65536):
            data += more
    return data


def sync_all(path):
    fd = os.open(path + "/.control", os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def order(path, line):
    fd = os.open(path + "/.control", os.O_WRONLY)
    try:
        os.write(fd, line.encode())
    finally:
        os.close(fd)


def enqueue(say, q, tag):
    for i, size in enumerate(SIZES):
        name = f"{tag}{i}"
        tell(say, "put", name, lambda: write(f"{q}/{name}", bed.body(name, size)))
    name = f"{tag}draft"
    if tell(say, "put", name, lambda: write(f"{q}/{name}.tmp", bed.body(name, 9000), True)):
        tell(say, "send", name, lambda: os.rename(f"{q}/{name}.tmp", f"{q}/{name}"))
    name = f"{tag}kept"
    tell(say, "put", name, lambda: write(f"{q}/{name}.part", bed.body(name, 300)))


def listed(say, q, at_least):
    """What is listed, once it is as many; or what is there after a while."""
    end = time.monotonic() + LINGER_S
    while True:
        names = names_in(lambda _: None, q)
        if len(names) >= at_least or time.monotonic() > end:
            say(f"listed {len(names)}")
            return names
        time.sleep(0.005)


def take(say, q, name):
    """Claims and reads it; its name inside, or None."""
    data = tell(say, "open", name, lambda: read(f"{q}/{name}"))
    if data is None or data is True:
        return None
    inside = bed.whole(data)
    say(f"read {inside}" if inside else f"! torn {name} {len(data)}")
    return inside


def consume(say, q, names):
    """Each in another way: most are handled, one is buried, one is given back."""
    for i, name in enumerate(names):
        inside = take(say, q, name)
        if inside is None:
            continue
        if i == 1:
            tell(say, "bury", inside, lambda: os.rename(f"{q}/{name}", f"{q}/.dead/{name}"))
        elif i == 2:
            tell(say, "release", inside, lambda: order(q, f"release {name}\n"))
        else:
            tell(say, "rm", inside, lambda: os.unlink(f"{q}/{name}"))


def look_around(say, q):
    for name in (".control", ".status.json", ".metrics"):
        tell(say, "look", name, lambda: read(f"{q}/{name}"))
    for name in (".peek", ".dead", ".inflight", ".drafts", ".outbox"):
        tell(say, "look", name, lambda: os.listdir(f"{q}/{name}"))
    for name in names_in(say, q):
        tell(say, "stat", name, lambda: os.stat(f"{q}/{name}"))
        tell(say, "attr", name, lambda: os.getxattr(f"{q}/{name}", "user.spoolfs.attempts"))
        break
    fd = tell(say, "look", ".next", lambda: os.open(f"{q}/.next", os.O_RDONLY | os.O_NONBLOCK))
    if fd is not None:
        tell(say, "next", ".next", lambda: os.read(fd, 300))
        os.close(fd)


def play(q):
    """The script, for bed.client()."""

    def work(say):
        enqueue(say, q, "a")
        names = listed(say, q, 5)
        consume(say, q, names[:4])
        look_around(say, q)
        for name in names_in(say, q + "/.dead"):
            tell(say, "revive", name, lambda: os.rename(f"{q}/.dead/{name}", f"{q}/{name}"))
            break
        enqueue(say, q, "b")
        tell(say, "sync", "-", lambda: sync_all(q))

    return work


class Account:
    """What the lines of a client make owed, and what they allow."""

    def __init__(self, lines=()):
        self.put, self.tried, self.gone, self.removed = set(), set(), set(), set()
        self.refused, self.trouble = [], []
        self.synced = False
        for line in lines:
            self.hear(line)

    def hear(self, line):
        what, _, rest = line.partition(" ")
        words = rest.split()
        if what == "!":
            self.trouble.append(line)
        elif what == "no":
            self.refused.append(tuple(words))
        elif what == "try":
            if words[0] == "put":
                self.tried.add(words[1])
            if words[0] == "rm":
                self.gone.add(words[1])
        elif what == "ok":
            if words[0] == "put":
                self.put.add(words[1])
            if words[0] == "rm":
                self.removed.add(words[1])
            if words[0] == "sync":
                self.synced = True

    def settle(self, found):
        """FOUND as bed.look() has it, after the end of the daemon."""
        lost = self.put - self.gone - set(found)
        if lost:
            raise bed.Wrong(f"lost: {sorted(lost)}")
        if strange := set(found) - self.tried:
            raise bed.Wrong(f"from nowhere: {sorted(strange)}")
        back = self.removed & set(found)
        if back and self.synced:
            raise bed.Wrong(f"removed, confirmed, and there: {sorted(back)}")
        return len(back)
