# SPDX-License-Identifier: MIT
"""What all crash tests share: messages that tell whether they are whole, a daemon
under a preload, a client that may hang, and a look into the queue's file.

Whoever looks into a mount is a child whose answer is bounded in time; nothing is
ended but by the pid of what was started here.
"""

import errno
import os
import re
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BUILD = os.environ.get("SPOOLFS_BUILD", os.path.join(ROOT, "build"))
PRELOAD = os.environ.get("CRASH_PRELOAD", "")
CLIENT_S = 30
OPTIONS = "retry_delay=0,max_attempts=1000,window=20000,poll_floor=20ms,poll_ceiling=100ms"
COMPLAINTS = re.compile(r"Sanitizer|runtime error:|Assertion|stack smashing|corrupted|free\(\):")


class Wrong(Exception):
    """What must not happen."""


# ---- messages ---------------------------------------------------------------


def body(name, n):
    """NAME, the length of what follows, and n bytes that follow from the name."""
    first = sum(name.encode()) % 26
    alphabet = bytes(ord("a") + (first + i) % 26 for i in range(26))
    return b"%s %d\n" % (name.encode(), n) + (alphabet * (n // 26 + 1))[:n]


def whole(data):
    """The name inside when DATA is one whole message, else None."""
    head, newline, _ = data.partition(b"\n")
    match = re.fullmatch(rb"(\S+) (\d+)", head)
    if not newline or not match:
        return None
    name = match.group(1).decode()
    return name if body(name, int(match.group(2))) == data else None


def beginning(data):
    """The name inside when DATA is the first part of a message, else None."""
    match = re.match(rb"(\S+) (\d+)\n", data)
    if not match:
        return None
    name = match.group(1).decode()
    return name if body(name, int(match.group(2))).startswith(data) else None


# ---- the queue's file -------------------------------------------------------


def look(path):
    """{name: place} of all that the file holds; Wrong where it is not right."""
    db = sqlite3.connect(path, isolation_level=None)
    try:
        db.execute("BEGIN")
        return looked(db)
    except sqlite3.DatabaseError as e:
        raise Wrong(f"the file is damaged: {e}") from e
    finally:
        db.close()


def looked(db):
    said = db.execute("PRAGMA integrity_check").fetchall()
    if said != [("ok",)]:
        raise Wrong(f"integrity: {said[:3]}")
    if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        return {}
    counts = db.execute(
        "SELECT waiting, leased, dead,"
        " (SELECT count(*) FROM message WHERE mount IS NULL),"
        " (SELECT count(*) FROM message WHERE mount IS NOT NULL),"
        " (SELECT count(*) FROM dead) FROM state"
    ).fetchall()
    if len(counts) != 1 or counts[0][:3] != counts[0][3:]:
        raise Wrong(f"counts: {counts}")
    found = {}
    for table in ("message", "dead", "draft"):
        rows = f"SELECT id, size, data FROM {table} LEFT JOIN body USING(id)"
        for number, size, data in db.execute(rows):
            if data is None or len(data) != size:
                raise Wrong(f"{table} {number}: size {size}, body {data and len(data)}")
            name, place = whole(data), table
            if name is None and table == "draft":
                name, place = beginning(data), "partial"
            if name is None:
                raise Wrong(f"{table} {number} is torn: {data[:40]!r}, {len(data)} bytes")
            if name in found:
                raise Wrong(f"{name} is there twice: {found[name]}, {place}")
            found[name] = place
    bodies = db.execute(
        "SELECT count(*) FROM body WHERE id NOT IN"
        " (SELECT id FROM message UNION SELECT id FROM dead UNION SELECT id FROM draft)"
    ).fetchone()[0]
    if bodies:
        raise Wrong(f"{bodies} bodies of nothing")
    return found


# ---- the daemon -------------------------------------------------------------


def until(what, is_so, patience_s=20.0):
    end = time.monotonic() + patience_s
    while not is_so():
        if time.monotonic() > end:
            raise Wrong(f"waited {patience_s} s in vain: {what}")
        time.sleep(0.005)


def is_mounted(path):
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return f" {path} " in f.read()


class Bed:
    """One queue file, and the mounts of it."""

    def __init__(self, where=None):
        self.dir = tempfile.mkdtemp(prefix="spoolfs-crash.", dir=where)
        self.db = os.path.join(self.dir, "q.db")
        self.log = os.path.join(self.dir, "log")
        self.mounts = []

    def mount(self, name="q", env=None, options=OPTIONS):
        m = Mount(self, os.path.join(self.dir, name), env or {}, options)
        self.mounts.append(m)
        return m

    def said(self):
        try:
            with open(self.log, encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def complaints(self):
        if COMPLAINTS.search(self.said()):
            raise Wrong("the log complains:\n" + self.said()[-3000:])

    def close(self):
        for m in self.mounts:
            m.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Mount:
    def __init__(self, bed, path, env, options):
        try:
            os.mkdir(path)
        except FileExistsError:  # it may be a dead mount
            pass
        self.path = path
        with open(bed.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [os.path.join(BUILD, "spoolfs"), "-f", "-o", options, bed.db, path],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # A sanitizer wants to be first; what it says then goes to the log.
                env={**os.environ, "ASAN_OPTIONS": "verify_asan_link_order=0", **env},
                start_new_session=True,
            )

    def ended(self):
        return self.process.poll() is not None

    def ready(self, patience_s=20.0):
        """Whether it answers; False: it has ended before."""
        until("the mount", lambda: self.ended() or self.answers(patience_s), patience_s)
        return not self.ended()

    def answers(self, patience_s):
        if not is_mounted(self.path):
            return False
        # What a killed daemon left is mounted, too.
        lines, _ = client(self, lambda say: say(os.path.exists(self.path + "/.control")), patience_s)
        return lines == ["True"]

    def umount(self, patience_s=30.0):
        """As users do it; the exit status of the daemon."""
        end = time.monotonic() + patience_s
        while is_mounted(self.path) and not self.ended() and time.monotonic() < end:
            said = subprocess.run(
                ["fusermount3", "-u", self.path], stderr=subprocess.DEVNULL, timeout=patience_s
            )
            if said.returncode:
                time.sleep(0.01)
        try:
            return self.process.wait(timeout=max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
            raise Wrong("the daemon does not end") from None

    def kill(self):
        if not self.ended():
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self):
        self.kill()
        if is_mounted(self.path):
            subprocess.run(["umount", "-l", self.path], stderr=subprocess.DEVNULL, timeout=20)


def client(mount, work, patience_s=CLIENT_S):
    """Runs work(say) in a child: (what it said, line by line; whether it ended in
    time). One that hangs is freed by the end of the daemon it waits for."""
    r, w = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        os.close(r)
        try:
            work(lambda line: os.write(w, f"{line}\n".encode()))
            os._exit(0)
        except BaseException as e:
            os.write(w, f"! {type(e).__name__} {e}\n".encode())
            os._exit(1)
    os.close(w)
    text, in_time = b"", True
    end = time.monotonic() + patience_s
    while True:
        left = end - time.monotonic()
        if in_time and not select.select([r], [], [], max(0, left))[0]:
            in_time = False
            mount.kill()
            os.kill(pid, signal.SIGKILL)
        more = os.read(r, 65536)
        if not more:
            break
        text += more
    os.close(r)
    os.waitpid(pid, 0)
    return text.decode().splitlines(), in_time


def code(e):
    return errno.errorcode.get(e.errno, str(e.errno))
