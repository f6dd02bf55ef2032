# SPDX-License-Identifier: MIT
"""Processes that use the mount, each told by the player what to do.

A session has three: a leader that only reaps, its child W, and W's child C. A
call can also be made by a passing child of W or C, as a script's cat is. Every
answer is bounded in time: a call that hangs must not hang the player.
"""

import base64
import errno
import json
import os
import select
import signal
import time
import traceback

ANSWER_S = 15


class Hang(Exception):
    pass


def flags_of(names):
    bits = 0
    for name in names.split("|"):
        bits |= getattr(os, "O_" + name)
    return bits


class Calls:
    """What a process can be told to do. Returns what goes into the answer."""

    def __init__(self):
        self.fds = {}

    def open(self, path, flags, h):
        self.fds[h] = os.open(path, flags_of(flags), 0o600)

    def read(self, h, n):
        return {"data": base64.b64encode(os.read(self.fds[h], n)).decode()}

    def write(self, h, data):
        todo = base64.b64decode(data)
        while todo:
            todo = todo[os.write(self.fds[h], todo) :]

    def truncate(self, h, n):
        os.ftruncate(self.fds[h], n)

    def close(self, h):
        os.close(self.fds.pop(h))

    def cat(self, path, flags, n):
        fd = os.open(path, flags_of(flags))
        try:
            data = b""
            while n is None or len(data) < n:
                part = os.read(fd, min(65536, 65536 if n is None else n - len(data)))
                if not part:
                    break
                data += part
        finally:
            os.close(fd)
        return {"data": base64.b64encode(data).decode()}

    def put(self, path, flags, data, keep):
        fd = os.open(path, flags_of(flags), 0o600)
        todo = base64.b64decode(data)
        while todo:
            todo = todo[os.write(fd, todo) :]
        if not keep:
            os.close(fd)

    def unlink(self, path):
        os.unlink(path)

    def rename(self, path, to):
        os.rename(path, to)

    def stat(self, path, attempts=False):
        st = os.stat(path)
        out = {"size": st.st_size}
        if attempts:
            out["attempts"] = int(os.getxattr(path, "user.spoolfs.attempts"))
        return out

    def utime(self, path, after):
        if after is None:
            os.utime(path)
        else:
            t = time.time() + after
            os.utime(path, (t, t))

    def list(self, path):
        return {"names": sorted(os.listdir(path))}

    def text(self, path):
        with open(path, encoding="utf-8") as f:
            return {"content": f.read()}

    def tell(self, path, text):
        fd = os.open(path, os.O_WRONLY)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)

    def sync(self, path):
        fd = os.open(path, os.O_WRONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def next(self, path, wait_ms):
        """The name, or '' at the end; EAGAIN, or EINTR after WAIT_MS."""
        fd = os.open(path, os.O_RDONLY | (os.O_NONBLOCK if not wait_ms else 0))
        if wait_ms:
            signal.setitimer(signal.ITIMER_REAL, wait_ms / 1000)
        try:
            data = b""
            while part := os.read(fd, 300):
                data += part
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            os.close(fd)
        return {"name": data.decode().strip()}


class Interrupted(Exception):
    pass


def on_alarm(*_):
    raise Interrupted


def perform(calls, command):
    try:
        got = getattr(calls, command["call"])(**command["args"])
        return {"r": "ok", **(got or {})}
    except Interrupted:
        return {"r": "EINTR"}
    except OSError as e:
        return {"r": errno.errorcode.get(e.errno, str(e.errno))}


def finish(how):
    """Ends this process: an exit status, or the name of a signal."""
    if isinstance(how, int):
        os._exit(how)
    number = getattr(signal, "SIG" + how)
    if how != "KILL":
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    signal.pause()


def passing(calls, command):
    """Has a child make the call, which then ends as told."""
    here, there = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(there, json.dumps(perform(calls, command)).encode())
        os.close(there)
        finish(command["via"])
    os.close(there)
    data = b""
    while part := os.read(here, 1 << 16):
        data += part
    os.close(here)
    os.waitpid(pid, 0)
    return json.loads(data)


def serve(source, sink):
    calls = Calls()
    with os.fdopen(source) as lines, os.fdopen(sink, "w") as out:
        print(json.dumps({"r": "ok", "pid": os.getpid()}), file=out, flush=True)
        for line in lines:
            command = json.loads(line)
            if command["call"] == "end":
                finish(command["how"])
            do = passing if command.get("via") is not None else perform
            print(json.dumps(do(calls, command)), file=out, flush=True)
    os._exit(0)


class Agent:
    """The player's end of one process."""

    def __init__(self, name):
        self.name = name
        self.to_r, self.to_w = os.pipe()
        self.from_r, self.from_w = os.pipe()
        self.pid = None
        self.left = b""

    def child_side(self):
        os.close(self.to_w)
        os.close(self.from_r)
        return self.to_r, self.from_w

    def player_side(self):
        os.close(self.to_r)
        os.close(self.from_w)

    def send(self, command):
        os.write(self.to_w, json.dumps(command).encode() + b"\n")

    def answer(self):
        end = time.monotonic() + ANSWER_S
        while b"\n" not in self.left:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.from_r], [], [], left)[0]:
                raise Hang(self.name)
            part = os.read(self.from_r, 1 << 16)
            if not part:
                raise Hang(f"{self.name} has ended")
            self.left += part
        line, self.left = self.left.split(b"\n", 1)
        return json.loads(line)

    def do(self, command):
        self.send(command)
        return self.answer()

    def close(self):
        os.close(self.to_w)
        os.close(self.from_r)


class Session:
    """Leader, W and C. What W and C are told to do, they do alone."""

    def __init__(self, number, cwd):
        self.agents = {}
        self.w, self.c = Agent(f"s{number}w"), Agent(f"s{number}c")
        self.died_r, died_w = os.pipe()
        self.leader = os.fork()
        if self.leader == 0:
            try:
                os.close(self.died_r)
                os.chdir(cwd)
                self._lead(died_w)
            finally:
                # Nothing of the player's is this process's to clean up.
                traceback.print_exc()
                os._exit(70)
        os.close(died_w)
        for agent in (self.w, self.c):
            agent.player_side()
            agent.pid = agent.answer()["pid"]
            self.agents[agent.name] = agent

    def _lead(self, died):
        keep = {0, 1, 2, died}
        for agent in (self.w, self.c):
            keep |= {agent.to_r, agent.from_w}
        for fd in map(int, os.listdir("/proc/self/fd")):
            if fd not in keep:
                try:
                    os.close(fd)
                except OSError:
                    pass
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGALRM, on_alarm)
        os.setsid()
        w = os.fork()
        if w == 0:
            self._work(died)
        for agent in (self.w, self.c):
            os.close(agent.to_r)
            os.close(agent.from_w)
        os.waitpid(w, 0)
        os.write(died, b"w")
        signal.pause()

    def _work(self, died):
        c = os.fork()
        if c == 0:
            os.close(died)
            os.close(self.w.to_r)
            os.close(self.w.from_w)
            serve(self.c.to_r, self.c.from_w)
        os.close(self.c.to_r)
        os.close(self.c.from_w)

        def reap(*_):
            try:
                if os.waitpid(c, os.WNOHANG)[0]:
                    os.write(died, b"c")
            except ChildProcessError:
                pass

        signal.signal(signal.SIGCHLD, reap)
        serve(self.w.to_r, self.w.from_w)

    def end(self, which, how):
        """C or W ends as told; returns when it has been reaped."""
        agent = self.w if which == "w" else self.c
        if how == "KILL":
            os.kill(agent.pid, signal.SIGKILL)
        else:
            agent.send({"call": "end", "how": how})
        if not select.select([self.died_r], [], [], ANSWER_S)[0]:
            raise Hang(f"{agent.name} does not end")
        os.read(self.died_r, 1)
        agent.close()
        del self.agents[agent.name]

    def end_leader(self):
        if self.leader:
            os.kill(self.leader, signal.SIGKILL)
            os.waitpid(self.leader, 0)
            self.leader = 0

    def end_all(self):
        for agent in list(self.agents.values()):
            try:
                os.kill(agent.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            agent.close()
        self.agents = {}
        self.end_leader()
        os.close(self.died_r)
