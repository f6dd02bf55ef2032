# SPDX-License-Identifier: MIT
"""Carries out operations on a real mount and holds each result to the model.

An operation is a dict that JSON can carry. It names messages by number, processes
by label and descriptors by handle, so that a sequence means the same when some of
its operations are left out: what has no object any more is passed over.
"""

import base64
import re
import time

from agent import Hang, Session
from bed import Bed, Trouble, until
from handle import Handling
from look import Looking
from model import Model, Wrong
from write import Writing

ID = re.compile(rb"#(\d+)\n")
MEMORY_KB = 32768  # for what are at most some megabytes of messages


class Player(Looking, Writing, Handling):
    def __init__(self, build, config, azurite=None):
        self.config = config
        self.bed = Bed(build, config["options"], azurite)
        self.model = Model(config)
        self.sessions = {}
        self.passings = 0
        self.done = 0
        self.kills = 0
        self.unknown = ""
        self.twins = 0
        self.op = {}
        self.ever_two = False
        self.tolerated = 0
        self.dead_names = {}
        self.observer = Session(0, "/")
        self.memory_kb = 0
        self.descriptors = 0
        try:
            self.op_mount({"m": 0})
            self.descriptors = self.bed.mounts[0].descriptors()
        except BaseException:
            self.close()
            raise

    def close(self):
        # Whoever waits in a mount is let go by its end.
        for mount in self.bed.mounts:
            mount.cleanup()
        for session in [*self.sessions.values(), self.observer]:
            session.end_all()
        self.bed.close()

    # ---- calls -----------------------------------------------------------

    def agent(self, who):
        if who == "obs":
            return self.observer.w
        number = who[1:-1]
        if number not in self.sessions and who not in self.model.ended:
            self.sessions[number] = Session(number, "/")
        session = self.sessions.get(number)
        return session and session.agents.get(who)

    def path(self, m, *names):
        return "/".join([self.bed.mounts[m].path, *names])

    def call(self, who, call, via=None, text="", **args):
        t0 = time.monotonic()
        got = self.agent(who).do({"call": call, "via": via, "args": args})
        t1 = time.monotonic()
        self.model.advance(t0, t1)
        shown = [str(v).replace(self.bed.dir + "/", "") for v in args.values() if v is not None]
        got["text"] = text or f"{who}{'' if via is None else '+'} {call} {' '.join(shown)[:90]}"
        self.note(f"{got['text']}: {got['r']}")
        if "data" in got:
            got["data"] = base64.b64decode(got["data"])
        return got, t0, t1

    def note(self, text):
        m = self.model.messages.get(self.op.get("mid"))
        if m:
            m.history.append(text)

    def control(self, m):
        got, _, _ = self.call("obs", "text", path=self.path(m, ".control"))
        if got["r"] != "ok":
            raise Wrong(f".control says {got['r']}")
        return dict(line.split("=", 1) for line in got["content"].splitlines() if "=" in line)

    def via(self, op):
        """A child that has inherited a descriptor and is killed is a writer that was
        cut off, though others write on: what that means is not said."""
        how = op.get("via")
        writes = any(h.who == op["who"] and h.writes for h in self.model.handles.values())
        return 0 if writes and isinstance(how, str) else how

    def chain(self, who, via):
        if via is None:
            return self.model.chain(who, None)
        self.passings += 1
        return self.model.chain(who, f"{who}+{self.passings}")

    def passed(self, chain, via, t0, t1):
        if via is not None:
            self.model.process_ended(chain[0], via, t0, t1)

    # ---- which message ---------------------------------------------------

    def message(self, op):
        return self.model.messages.get(op.get("mid"))

    def address(self, op):
        """(message, name to use, alias or '')"""
        m = self.message(op)
        if not m or not m.name or op["m"] not in self.model.up:
            return None
        aliases = {s.alias for s in m.states if s.at == "CLAIM" and s.alias}
        alias = max(aliases, default="")
        return m, alias or m.name, alias

    def identify(self, m, name, directory=".peek"):
        got, _, _ = self.call(
            "obs", "cat", path=self.path(m, directory, name), flags="RDONLY", n=None
        )
        if got["r"] != "ok":
            self.unknown = f"{directory}/{name} said {got['r']}"
            return None
        return self.is_body(got["data"], name)

    def is_body(self, data, name):
        found = ID.match(data)
        if found:
            message = self.model.messages.get(int(found.group(1)))
        else:
            given = re.search(r"-[a-z](\d+)$", name)
            message = given and self.model.messages.get(int(given.group(1)))
        if not message:
            raise Wrong(f"{name}: nobody wrote this: {data[:60]!r}")
        self.same(message, data, 0, name)
        return message

    @staticmethod
    def same(message, data, at, text):
        want = message.body[at : at + len(data)]
        if data != want:
            raise Wrong(
                f"m{message.mid}: {text} gives other bytes than were written, at {at}:"
                f" {data[:60]!r}, not {want[:60]!r}"
            )

    def bind(self, message, name, beside=()):
        if message.doubtful:
            message.name = name
            return message
        """Its name is known now. What it is bound to: a far service may have a twin."""
        if message.name and message.name != name:
            if not self.model.azure:
                raise Wrong(f"m{message.mid}: {message.name} is there again as {name}")
            # A dead letter has another id there, and so has what comes back from there.
            if message.mid not in self.dead_names.values() or message.name in beside:
                return self.twin(message, name)
        if message.name != name:
            message.history.append(f"is called {name}")
        message.name = name
        return message

    def twin(self, message, name):
        """One whose answer was lost is sent again: only after a kill, here."""
        if not self.kills:
            raise Wrong(f"m{message.mid}: {message.name} is there again as {name}")
        self.twins += 1
        self.model.doubt(message)
        return message

    # ---- mounts and people -----------------------------------------------

    def op_pause(self, op):
        if op["m"] in self.model.up:
            got, t0, t1 = self.told(op["m"], "pause")
            self.model.paused(op["m"], t0, t1)
            self.fine(got)

    def op_resume(self, op):
        if op["m"] in self.model.up:
            got, _, t1 = self.told(op["m"], "resume")
            self.model.resumed(op["m"], t1)
            self.fine(got)

    def op_poll(self, op):
        if op["m"] in self.model.up:
            self.fine(self.told(op["m"], "poll")[0])

    @staticmethod
    def fine(got):
        if got["r"] != "ok":
            raise Wrong(f"{got['text']} said {got['r']}")

    def op_sync(self, op):
        if op["m"] in self.model.up:
            got, _, _ = self.call("obs", "sync", path=self.path(op["m"], ".control"))
            self.fine(got)
            self.model.confirmed(op["m"])

    def op_mount(self, op):
        if op["m"] in self.model.up:
            return
        t0 = time.monotonic()
        self.ever_two = self.ever_two or op["m"] == 1
        self.bed.mounts[op["m"]].mount()
        self.observer.w.do({"call": "text", "via": None, "args": {"path": self.path(op["m"], ".control")}})
        self.model.mounted(op["m"], t0, time.monotonic())

    def op_stop(self, op):
        if op["m"] not in self.model.up:
            return
        t0 = time.monotonic()
        self.note_memory(op["m"])
        self.bed.mounts[op["m"]].stop()
        self.model.stopped(op["m"], t0, time.monotonic())
        for m in self.model.messages.values():
            if m.mount == op["m"] and m.states and all(s.at == "DRAFT" for s in m.states):
                m.orphan = True  # its name is not its session's any more

    def op_kill(self, op):
        if op["m"] not in self.model.up:
            return
        t0 = time.monotonic()
        self.note_memory(op["m"])
        self.bed.mounts[op["m"]].kill()
        self.kills += 1
        self.model.killed(op["m"], t0, time.monotonic())
        for m in self.model.messages.values():
            if m.mount == op["m"] and self.model.may_be(m, "DRAFT"):
                m.orphan = True
        if not op.get("stay"):
            self.op_mount(op)

    def note_memory(self, m):
        self.memory_kb = max(self.memory_kb, self.bed.mounts[m].memory_kb())
        if self.memory_kb > MEMORY_KB and "san-" not in self.bed.build:
            raise Wrong(f"the daemon has {self.memory_kb} kB for {len(self.model.messages)} messages")

    def op_end(self, op):
        """C or W ends; W takes C with it."""
        session = self.sessions.get(op["who"][1:-1])
        if not session:
            return
        which = op["who"][-1]
        for name in "c" if which == "c" else "cw":
            who = op["who"][:-1] + name
            if who not in session.agents:
                continue
            how = op["how"] if name == which else 0
            t0 = time.monotonic()
            session.end(name, how)
            t1 = time.monotonic()
            self.model.advance(t0, t1)
            self.ended(who, how, t0, t1)
        if op.get("leader"):
            t0 = time.monotonic()
            session.end_leader()
            self.model.process_ended(op["who"][:-1] + "l", "KILL", t0, time.monotonic())

    def ended(self, who, how, t0, t1):
        killed = isinstance(how, str)
        left = {k: h for k, h in self.model.handles.items() if h.who == who}
        for key in left:
            del self.model.handles[key]
        for key, h in left.items():
            m = self.model.messages[h.mid]
            if h.writes and not h.cut:
                self.writer_left(m, key, killed, t0, t1)
        undone = [self.model.messages[h.mid] for h in left.values() if not h.writes and not h.cut]
        both = {m.mid: set(m.states) for m in undone}
        for m in undone:
            self.reader_left(m, who, t0, t1)
        # The end may be noticed before the descriptor is closed.
        for m in undone:
            m.states |= {s for s in both[m.mid] if s.at == "CLAIM"}
        self.model.process_ended(who, how, t0, t1)

    # ---- the whole -------------------------------------------------------

    def do(self, op):
        self.done += 1
        self.op = op
        getattr(self, "op_" + op["op"])(op)
        for mount in self.bed.mounts:
            if mount.daemon and mount.daemon.poll() is not None:
                raise Trouble(f"the daemon ended with {mount.daemon.returncode}")

    def finish(self):
        """Every message that was ever accepted is accounted for."""
        for number in list(self.sessions):
            for which in "cw":
                self.op_end({"who": f"s{number}{which}", "how": "KILL", "leader": which == "w"})
        if self.ever_two:
            # Only a mount that begins takes over the drafts of one that has ended.
            self.op_stop({"m": 1})
            self.op_stop({"m": 0})
        self.op_mount({"m": 0})
        self.op_resume({"m": 0})
        self.drain()
        self.op_sync({"m": 0})
        self.all_quiet()

    EMPTY = ("ready", "in_flight", "outbox", "drafts", "dead", "depth")

    def drain(self):
        """Takes all there is, until the queue says that there is nothing left."""
        delays = self.config["retry_s"] * 2**self.model.max_attempts + 3
        end = time.monotonic() + self.model.visibility + 2 * self.model.slack() + delays
        nothing = 0
        while nothing < (20 if self.model.azure else 3):
            self.op_look({})
            self.consume()
            seen = self.control(0)
            nothing = nothing + 1 if all(seen[k] in ("0", "") for k in self.EMPTY) else 0
            if time.monotonic() > end:
                shown = " ".join(f"{k}={seen[k]}" for k in self.EMPTY)
                raise Wrong(f"the queue does not get empty: {shown}; {self.unknown}\n{self.left()}")
            time.sleep(0.02)
        if self.left():
            raise Wrong(f"the queue is empty, lost is\n{self.left()}")

    def left(self):
        return "\n".join(
            f"m{m.mid} {m.given} {self.model.tell(m)}\n  " + "\n  ".join(m.history[-20:])
            for m in self.model.messages.values()
            if not self.model.may_be(m, "GONE")
        )

    def consume(self):
        if any(m.doubtful for m in self.model.messages.values()):
            self.sweep()
        for m in list(self.model.messages.values()):
            if any(s.at == "READY" for s in m.states):
                op = {"who": "s99w", "m": 0, "mid": m.mid, "n": None, "flags": "RDONLY", "via": 0}
                self.op_cat(op)
                if any(s.at == "CLAIM" and s.owner == "s99w" for s in m.states):
                    self.op_rm(op)
            elif any(s.at == "CLAIM" and s.owner.startswith("s99") for s in m.states):
                self.op_rm({"who": "s99w", "m": 0, "mid": m.mid})
            if self.model.may_be(m, "DEAD"):
                self.op_discard({"who": "s99w", "m": 0, "mid": m.mid})
            if all(s.at == "DRAFT" for s in m.states):
                self.op_dview({"who": "s99w", "m": 0, "mid": m.mid, "to": None})

    def sweep(self):
        """Takes what the model does not follow."""
        for name in self.names(0, "obs")[0]:
            message = self.identify(0, name)
            if message and message.doubtful:
                path = self.path(0, name)
                self.call("s99w", "cat", path=path, flags="RDONLY", n=None)
                self.call("s99w", "unlink", path=path)
        for name in self.names(0, "obs", ".dead")[0]:
            message = self.identify(0, name, ".dead")
            if message and message.doubtful:
                self.call("s99w", "unlink", path=self.path(0, ".dead", name))

    def all_quiet(self):
        seen = self.control(0)
        self.op_look({})
        self.leases_lost = int(seen.get("leases_lost") or 0)
        self.no_leak()
        mount = self.bed.mounts[0]
        children = mount.children()
        self.op_stop({"m": 0})
        for pid in children:
            until(f"the announcer {pid} ends", lambda p=pid: not is_alive(p))
        if self.bed.complaints():
            raise Trouble(self.bed.complaints())

    def no_leak(self):
        slack = 4 if self.model.azure else 0  # connections
        mount = self.bed.mounts[0]
        for session in self.sessions.values():
            session.end_all()
        self.sessions = {}
        try:
            until("descriptors", lambda: mount.descriptors() <= self.descriptors + slack)
        except Trouble as e:
            raise Wrong(f"{mount.descriptors()} descriptors, {self.descriptors} at the start:\n{mount.open_files()}") from e


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


__all__ = ["Hang", "Player", "Trouble", "Wrong"]
