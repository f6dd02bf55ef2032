# SPDX-License-Identifier: MIT
"""Carries out operations on a real mount and holds each result to the model.

An operation is a dict that JSON can carry. It names messages by number, processes
by label and descriptors by handle, so that a sequence means the same when some of
its operations are left out: what has no object any more is passed over.
"""

import base64
import itertools
import random
import re
import time

from agent import Hang, Session
from bed import Bed, Trouble, until
from model import FOREVER, Handle, Message, Model, State, Wrong

ID = re.compile(rb"#(\d+)\n")
DRAFT = re.compile(r"^\.|\.tmp$|\.part$|~$")
GRACE_S = 1.5


def body_of(mid, n, part=0):
    """N bytes, of which the first line says whose they are."""
    head = f"#{mid}\n".encode() if part == 0 else b""
    noise = random.Random(f"{mid}/{part}").choices(b"abcdefghijklmnopqrstuvwxyz \n", k=n)
    return head + bytes(noise)


class Player:
    def __init__(self, build, config, azurite=None):
        self.config = config
        self.bed = Bed(build, config["options"], azurite)
        self.model = Model(config)
        self.sessions = {}
        self.passings = 0
        self.done = 0
        self.kills = 0
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
        """Its name is known now. What it is bound to: a far service may have a twin."""
        if message.name and message.name != name:
            if not self.model.azure:
                raise Wrong(f"m{message.mid}: {message.name} is there again as {name}")
            # A dead letter has another id, and so has what comes back from there.
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
        twin = Message(10000 * self.twins + message.mid, message.body, name=name)
        twin.accepted = True
        twin.states = {State("POOL", unsure=True), State("READY", mount=0), State("READY", mount=1)}
        self.model.messages[twin.mid] = twin
        return twin

    # ---- looking ---------------------------------------------------------

    def op_ls(self, op):
        if op["m"] not in self.model.up or not self.agent(op["who"]):
            return
        getattr(self, "ls_" + op["dir"])(op["m"], op["who"])

    def names(self, m, who, directory=""):
        got, t0, t1 = self.call(who, "list", path=self.path(m, directory))
        if got["r"] != "ok":
            raise Wrong(f"{got['text']} says {got['r']}")
        return set(got["names"]) - {"done", "failed"}, t0, t1

    def ls_top(self, m, who):
        names, t0, t1 = self.names(m, who)
        known = {x.name for x in self.model.messages.values() if x.name}
        aliases = {s.alias for x in self.model.messages.values() for s in x.states if s.alias}
        late = False
        for name in sorted(names - known - aliases):
            if not re.match(r"^\d{8}T\d{6}", name):
                raise Wrong(f"{who} sees {name!r}, which is no message")
            message = self.identify(m, name)
            if message:
                self.bind(message, name, names)
            else:
                late = True
        if not late:
            self.model.listed(names, m, who, f"{who}'s ls of q{m}")

    def ls_inflight(self, m, who):
        names, _, _ = self.names(m, who, ".inflight")
        self.model.in_flight(names, m, f".inflight of q{m}")

    def ls_dead(self, m, who):
        names, _, _ = self.names(m, who, ".dead")
        mids = set()
        for name in names:
            if name not in self.dead_names:
                message = self.identify(m, name, ".dead")
                if not message:
                    return
                message = self.letter_of(message)
                self.dead_names[name] = message.mid
                if self.model.azure:
                    message.name = name
            mids.add(self.dead_names[name])
        self.model.among_dead(mids, f".dead of q{m}", True)

    def letter_of(self, message):
        """Of twins, the one that can be dead."""
        twins = [m for m in self.model.messages.values() if m.mid % 10000 == message.mid]
        return next((m for m in twins if self.model.may_be(m, "DEAD")), message)

    def ls_drafts(self, m, who):
        names, _, _ = self.names(m, who, ".drafts")
        given = {n.split("-", 2)[2] for n in names}
        self.model.among_drafts(given, m, f".drafts of q{m} ({' '.join(sorted(given))})")

    def op_look(self, op):
        for m in sorted(self.model.up):
            for directory in ("top", "inflight", "dead", "drafts"):
                self.op_ls({"who": "obs", "m": m, "dir": directory})

    def op_settle(self, op):
        end = time.monotonic() + op["s"]
        while True:
            self.op_look(op)
            if time.monotonic() > end or self.calm():
                return
            time.sleep(0.03)

    def calm(self):
        """Nothing is under way, as far as it is known."""
        return all(
            len({s.at for s in m.states}) == 1
            and all(s.at not in ("WAIT", "POOL") and s.end == FOREVER for s in m.states)
            for m in self.model.messages.values()
        )

    GAUGES = {"ready": "READY", "in_flight": "CLAIM", "dead": "DEAD", "drafts": "DRAFT"}

    def op_gauges(self, op):
        """They say what there is, as soon as nothing is under way."""
        if len(self.model.up) != 1 or self.model.azure or self.ever_two or self.config["narrow"]:
            return
        (m,) = self.model.up
        self.op_settle({"s": 1})
        end = time.monotonic() + 5
        while m in self.model.polling and (wrong := self.gauges_differ(m)):
            if time.monotonic() > end:
                raise Wrong(wrong)
            time.sleep(0.02)

    def gauges_differ(self, m):
        if not self.calm():
            return None
        got = self.control(m)
        self.op_look({})
        if not self.calm():
            return None
        for key, at in self.GAUGES.items():
            n = sum(self.model.may_be(x, at) for x in self.model.messages.values())
            if got[key] != str(n):
                return f".control says {key}={got[key]}, the model {n}"
        return None

    def op_stat(self, op):
        found = self.address(op)
        if not found or not self.agent(op["who"]):
            return
        m, name, alias = found
        got, _, _ = self.call(
            op["who"], "stat", self.via(op), path=self.path(op["m"], name), attempts=op["attempts"]
        )
        if got["r"] == "ENODATA":
            got["r"] = "ENOENT"
        self.model.stats(m, got, op["m"], alias)

    def op_peek(self, op):
        found = self.address(op)
        if found and self.agent(op["who"]):
            m, name, _ = found
            got, _, _ = self.call(
                op["who"], "cat", path=self.path(op["m"], ".peek", name), flags="RDONLY", n=None
            )

            def choices(s):
                here = s.at == "READY" and s.mount == op["m"]
                yield ("ok" if here else "ENOENT"), s
                if s.at == "CLAIM":
                    yield "ok", s

            self.model.step(m, got, choices)
            if got["r"] == "ok":
                self.same(m, got["data"], 0, got["text"])

    def op_refused(self, op):
        """What says EPERM or EACCES whatever the message is."""
        found = self.address(op)
        if not found or not self.agent(op["who"]):
            return
        m, name, alias = found
        got, _, _ = self.call(
            op["who"], "open", path=self.path(op["m"], name), flags=op["flags"], h="never"
        )

        def choices(s):
            here = s.mount == op["m"]
            is_here = s.at in ("READY", "CLAIM") and here and (s.alias or "") == alias
            yield ("EACCES" if is_here else "ENOENT"), s
            if is_here and s.at == "CLAIM":
                yield "EBUSY", s

        self.model.step(m, got, choices)

    # ---- writing ---------------------------------------------------------

    def new(self, op, writer=None):
        m = Message(op["mid"], given=op["name"], mount=op["m"], session=op["who"][:-1], creator=op["who"])
        m.states = {State("DRAFT", mount=op["m"])}
        m.writers = {writer} if writer else set()
        self.model.messages[op["mid"]] = m
        return m

    def send(self, m, t0, t1):
        m.accepted = True
        m.sent_at = t1
        m.states = {self.model.pool(State("POOL"), t1)}
        m.history.append("sent")

    def ready_to_write(self, op):
        return op["m"] in self.model.up and self.agent(op["who"]) and op["mid"] not in self.model.messages

    def op_put(self, op):
        if not self.ready_to_write(op):
            return
        body = body_of(op["mid"], op["n"]) if op["n"] is not None else b""
        m = self.new(op)
        m.body = body
        killed = self.via(op) == "KILL"
        got, t0, t1 = self.call(
            op["who"], "put", self.via(op), f"{op['who']} writes {op['name']}",
            path=self.path(op["m"], op["name"]), flags=op["flags"],
            data=base64.b64encode(body).decode(), keep=killed,
        )
        if got["r"] != "ok":
            raise Wrong(f"{got['text']} said {got['r']}")
        if DRAFT.search(op["name"]):
            m.accepted = True
        elif killed:
            # Cut off before its close: a draft, if anything was written.
            m.states = {State("DRAFT", mount=op["m"])} | (set() if body else {State("GONE")})
        else:
            self.send(m, t0, t1)

    def op_burst(self, op):
        """Several write one name at once: each its own message, whole."""
        if op["m"] not in self.model.up or any(x in self.model.messages for x in op["mids"]):
            return
        if not all(self.agent(who) for who in op["whos"]):
            return
        made = []
        t0 = time.monotonic()
        for mid, who in zip(op["mids"], op["whos"]):
            m = self.new({"mid": mid, "who": who, **op})
            m.body = body_of(mid, op["n"])
            made.append(m)
            self.agent(who).send({"call": "put", "args": {
                "path": self.path(op["m"], op["name"]), "flags": "WRONLY|CREAT|TRUNC",
                "data": base64.b64encode(m.body).decode(), "keep": False}})
        answers = [self.agent(who).answer() for who in op["whos"]]
        t1 = time.monotonic()
        self.model.advance(t0, t1)
        for m, got, who in zip(made, answers, op["whos"]):
            if got["r"] != "ok":
                raise Wrong(f"{who}, one of several, writes {op['name']}: {got['r']}")
            self.send(m, t0, t1)

    def op_wopen(self, op):
        sharing = self.message(op)
        if not op.get("again"):
            if not self.ready_to_write(op):
                return
        elif not sharing or not sharing.writers or not self.agent(op["who"]):
            return
        got, _, _ = self.call(
            op["who"], "open", path=self.path(op["m"], op["name"]), flags=op["flags"], h=op["h"]
        )
        if got["r"] != "ok":
            raise Wrong(f"{got['text']} said {got['r']}")
        m = sharing or self.new(op)
        m.writers.add(op["h"])
        if "TRUNC" in op["flags"]:
            m.body = b""
        self.model.handles[op["h"]] = Handle(
            m.mid, op["who"], op["m"], writes=True, append="APPEND" in op["flags"]
        )
        if self.model.azure and not m.body:
            # An empty message has no name there by which it could be known.
            self.op_write({"h": op["h"], "n": 10, "part": 0})

    def writer(self, op):
        h = self.model.handles.get(op["h"])
        if h and h.writes and not h.cut and self.agent(h.who):
            return h, self.model.messages[h.mid]
        return None, None

    def op_write(self, op):
        h, m = self.writer(op)
        if not h:
            return
        at = len(m.body) if h.append else h.at
        # Whatever is in front stays recognisable.
        data = body_of(m.mid, op["n"], 0 if at == 0 else op["part"])
        got, _, _ = self.call(h.who, "write", h=op["h"], data=base64.b64encode(data).decode(),
                              text=f"{h.who} writes {len(data)} at {at} of {m.given}")
        if got["r"] != "ok":
            raise Wrong(f"{got['text']} said {got['r']}")
        m.body = m.body[:at].ljust(at, b"\0") + data + m.body[at + len(data) :]
        h.at = at + len(data)

    def op_wclose(self, op):
        h, m = self.writer(op)
        if not h:
            return
        got, t0, t1 = self.call(h.who, "close", h=op["h"])
        if got["r"] != "ok":
            raise Wrong(f"{got['text']} of {m.given} said {got['r']}")
        del self.model.handles[op["h"]]
        self.writer_left(m, op["h"], False, t0, t1)

    def writer_left(self, m, h, killed, t0, t1):
        m.writers.discard(h)
        if m.writers or not self.model.may_be(m, "DRAFT"):
            return
        if killed:
            m.states = {State("DRAFT", mount=m.mount)} | (set() if m.body else {State("GONE")})
        elif DRAFT.search(m.given):
            m.accepted = True
        else:
            self.send(m, t0, t1)

    def finds(self, m, got, op):
        """Whether the draft was found by its name: that is sure for its creator, and
        those above and below it; those beside it may."""
        creator = m.creator
        sure = op["who"] == creator or (creator[-1] == "w" or self.via(op) is None)
        if got["r"] == "ok":
            return True
        if got["r"] != "ENOENT" or sure:
            raise Wrong(f"{got['text']} said {got['r']}; it was\n  " + "\n  ".join(m.history))
        return False

    def own_draft(self, op):
        """A draft that its session finds by name."""
        m = self.message(op)
        fresh = m and not m.name and m.mount == op["m"] and m.session == op["who"][:-1]
        if fresh and not m.writers and DRAFT.search(m.given) and self.agent(op["who"]):
            if op["m"] in self.model.up and all(s.at == "DRAFT" and s.mount == op["m"] for s in m.states):
                return m
        return None

    def op_drename(self, op):
        m = self.own_draft(op)
        if not m or m.orphan:
            return
        got, t0, t1 = self.call(
            op["who"], "rename", self.via(op), path=self.path(op["m"], m.given),
            to=self.path(op["m"], op["to"]),
        )
        if not self.finds(m, got, op):
            return
        m.given = op["to"]
        if not DRAFT.search(op["to"]):
            self.send(m, t0, t1)

    def op_drm(self, op):
        m = self.own_draft(op)
        if not m or m.orphan:
            return
        got, _, _ = self.call(op["who"], "unlink", self.via(op), path=self.path(op["m"], m.given))
        if not self.finds(m, got, op):
            return
        m.states = {State("GONE", before=State("DRAFT", mount=m.mount))}

    def op_dview(self, op):
        """What is done to a draft in .drafts/: sent under a name, or discarded."""
        m = self.message(op)
        if not m or m.writers or op["m"] not in self.model.up or not self.agent(op["who"]):
            return
        if not all(s.at == "DRAFT" for s in m.states):
            return
        names, _, _ = self.names(op["m"], op["who"], ".drafts")
        mine = [n for n in names if n.endswith("-" + m.given) and n.split("-", 2)[2] == m.given]
        self.model.among_drafts({n.split("-", 2)[2] for n in names}, op["m"], ".drafts")
        if len(mine) != 1:
            if mine:
                raise Wrong(f"m{m.mid}: it is in .drafts/ as {mine}")
            return
        view = self.path(op["m"], ".drafts", mine[0])
        # The prefix that a cut-off writer left is what is sent.
        got, _, _ = self.call(op["who"], "cat", path=view, flags="RDONLY", n=None)
        if got["r"] == "ok" and m.accepted:
            if got["data"] != m.body:
                raise Wrong(f"m{m.mid}: the draft has {len(got['data'])} bytes, not {len(m.body)}")
        elif got["r"] == "ok":
            m.body = got["data"]
        if op["to"] is None or not m.body:
            got, _, _ = self.call(op["who"], "unlink", path=view)
            if got["r"] == "ok":
                m.states = {State("GONE", before=State("DRAFT", mount=m.mount))}
        else:
            to = op["to"]
            got, t0, t1 = self.call(op["who"], "rename", path=view, to=self.path(op["m"], to))
            if got["r"] == "ok":
                m.given = to
                m.mount = op["m"]
                self.send(m, t0, t1)
        if got["r"] != "ok":
            raise Wrong(f"{got['text']} said {got['r']}")

    def op_grace(self, op):
        """The name of what was just sent answers, without any effect."""
        m = self.message(op)
        if not m or not m.sent_at or m.orphan or op["m"] != m.mount or m.mount not in self.model.up:
            return
        who = m.session + "w"
        if not self.agent(who) or any(o is not m and o.given == m.given for o in self.model.messages.values()):
            return
        path = self.path(m.mount, m.given)
        calls = {"stat": {}, "unlink": {}, "rename": {"to": path + "x"}, "utime": {"after": None}}
        got, _, t1 = self.call(who, op["call"], path=path, **calls[op["call"]])
        age = t1 - m.sent_at
        allowed = {"ok"} if age < GRACE_S else {"ENOENT"} if age > 2 + 8 else {"ok", "ENOENT"}
        if m.history and "graced" in m.history[-3:] or self.kills or len(self.model.up) != 1:
            allowed |= {"ENOENT"}
        m.history.append("graced")
        if got["r"] not in allowed:
            raise Wrong(f"{got['text']}, {age:.2f} s after it was sent, said {got['r']}")

    # ---- reading ---------------------------------------------------------

    def op_open(self, op):
        found = self.address(op)
        if not found or not self.agent(op["who"]):
            return
        m, name, alias = found
        got, t0, t1 = self.call(
            op["who"], "open", path=self.path(op["m"], name), flags=op["flags"], h=op["h"]
        )
        self.model.opens(m, got, self.chain(op["who"], None), op["m"], alias, t0, t1)
        if got["r"] == "ok":
            self.held(op["h"], m, op["who"], op["m"], name)

    def held(self, h, m, who, mount, name):
        serials = frozenset(s.serial for s in m.states if s.at == "CLAIM")
        self.model.handles[h] = Handle(m.mid, who, mount, name, serials=serials, body=m.body)

    def reader(self, op):
        h = self.model.handles.get(op["h"])
        if h and not h.writes and self.agent(h.who):
            return h, self.model.messages[h.mid]
        return None, None

    def op_read(self, op):
        h, m = self.reader(op)
        if not h or h.cut:
            return
        got, _, _ = self.call(h.who, "read", h=op["h"], n=op["n"])
        if got["r"] != "ok":
            raise Wrong(f"m{m.mid}: {got['text']} said {got['r']}")
        self.same(m, got["data"], h.at, got["text"])
        if not got["data"] and h.at < len(m.body):
            raise Wrong(f"m{m.mid}: {got['text']} ends at {h.at} of {len(m.body)}")
        h.at += len(got["data"])
        h.read = True
        self.model.was_read(m, h.serials)

    def op_close(self, op):
        h, m = self.reader(op)
        if not h:
            return
        _, t0, t1 = self.call(h.who, "close", h=op["h"])
        del self.model.handles[op["h"]]
        if not h.cut:
            self.reader_left(m, h.who, t0, t1)

    def reader_left(self, m, who, t0, t1):
        if not any(o.mid == m.mid and not o.writes and not o.cut for o in self.model.handles.values()):
            self.model.closed(m, who, t0, t1)

    def op_cat(self, op):
        found = self.address(op)
        if not found or not self.agent(op["who"]):
            return
        m, name, alias = found
        chain = self.chain(op["who"], self.via(op))
        got, t0, t1 = self.call(
            op["who"], "cat", self.via(op), path=self.path(op["m"], name),
            flags=op["flags"], n=op["n"],
        )
        self.catted(m, got, chain, op, alias, t0, t1)
        self.passed(chain, self.via(op), t0, t1)

    def catted(self, m, got, chain, op, alias, t0, t1):
        self.model.opens(m, got, chain, op["m"], alias, t0, t1)
        if got["r"] != "ok":
            return
        if op["n"] is None and len(got["data"]) != len(m.body):
            raise Wrong(f"m{m.mid}: {got['text']} gives {len(got['data'])} of {len(m.body)} bytes")
        self.same(m, got["data"], 0, got["text"])
        if op["n"] != 0:
            self.model.was_read(m, {s.serial for s in m.states if s.at == "CLAIM"})
        self.reader_left(m, op["who"], t0, t1)

    def op_next(self, op):
        if op["m"] not in self.model.up or not self.agent(op["who"]):
            return
        self.ls_top(op["m"], "obs")
        chain = self.chain(op["who"], self.via(op))
        got, t0, t1 = self.call(
            op["who"], "next", self.via(op), path=self.path(op["m"], ".next"), wait_ms=op["ms"]
        )
        self.nexted(op, got, chain, t0, t1)
        self.passed(chain, self.via(op), t0, t1)

    def nexted(self, op, got, chain, t0, t1):
        empty = "EINTR" if op["ms"] else "EAGAIN"
        if got["r"] == empty:
            for m in self.model.messages.values():
                if m.name and all(s.at == "READY" and s.mount == op["m"] and s.start == FOREVER for s in m.states) \
                        and not self.model.shares() and op["m"] in self.model.polling:
                    raise Wrong(f"m{m.mid}: it is ready, and .next says {empty}")
            return
        if got["r"] != "ok" or not got["name"]:
            raise Wrong(f"{got['text']} said {got['r']} {got.get('name')!r}")
        name = got["name"]
        m = next((x for x in self.model.messages.values() if x.name == name), None)
        if not m:
            # It came since: whoever was given it reads it.
            if self.via(op) is not None:
                self.bind_claimed(op, name, chain)
                return
            read, _, _ = self.call(op["who"], "cat", path=self.path(op["m"], name), flags="RDONLY", n=None)
            if read["r"] != "ok":
                raise Wrong(f"{name} was given by .next, and says {read['r']}")
            m = self.bind(self.is_body(read["data"], name), name)
            self.claimed_by_next(m, op, got, chain, t0, t1, True)
            return
        self.claimed_by_next(m, op, got, chain, t0, t1, None if m.body else True)

    def bind_claimed(self, op, name, chain):
        read, t0, t1 = self.call(op["who"], "cat", path=self.path(op["m"], name), flags="RDONLY", n=None)
        if self.via(op) == "KILL" and read["r"] != "ok":
            return
        if read["r"] != "ok":
            raise Wrong(f"{name} was given by .next, and says {read['r']}")
        m = self.bind(self.is_body(read["data"], name), name)
        self.claimed_by_next(m, op, {"r": "ok", "text": ".next"}, chain, t0, t1, None)

    def claimed_by_next(self, m, op, got, chain, t0, t1, read):
        self.model.opens(m, {"r": "ok", "text": f"{got['text']} ({m.name})"}, chain, op["m"], "", t0, t1)
        new = {s for s in m.states if s.serial == self.model.serial}
        if not new:
            raise Wrong(f"m{m.mid}: .next gave what was claimed: {self.model.tell(m)}")
        m.states = {
            s.__class__(**{**s.__dict__, "read": read, "listed_for": "", "again": frozenset([chain[0], op["who"]])})
            for s in new
        }

    # ---- handling --------------------------------------------------------

    def named_call(self, op, call, **args):
        m, name, alias = self.address(op)
        chain = self.chain(op["who"], self.via(op))
        got, t0, t1 = self.call(
            op["who"], call, self.via(op), path=self.path(op["m"], name), **args
        )
        return m, alias, chain, got, t0, t1

    def can(self, op):
        return self.address(op) and self.agent(op["who"])

    def op_rm(self, op):
        if self.can(op):
            m, alias, chain, got, t0, t1 = self.named_call(op, "unlink")
            self.model.removes(m, got, chain, op["m"], alias)
            self.passed(chain, self.via(op), t0, t1)

    def op_mv(self, op):
        if self.can(op):
            m, alias, chain, got, t0, t1 = self.named_call(op, "rename", to=self.path(op["m"], op["to"]))
            self.model.takes_as(m, got, chain, op["m"], alias, op["to"], t0, t1)
            self.passed(chain, self.via(op), t0, t1)

    def op_onto(self, op):
        other = self.model.messages.get(op["other"])
        if self.can(op) and other and other.name and other is not self.message(op):
            if any(s.at != "READY" or s.mount != op["m"] for s in other.states) or self.model.shares():
                return
            m, alias, chain, got, _, _ = self.named_call(op, "rename", to=self.path(op["m"], other.name))
            self.model.onto(m, got, chain, op["m"], alias)

    def op_move(self, op):
        if self.can(op):
            name = self.address(op)[1]
            m, alias, chain, got, t0, t1 = self.named_call(op, "rename", to=self.path(op["m"], op["where"], name))
            self.model.moves(m, got, chain, op["m"], alias, op["where"])
            self.passed(chain, self.via(op), t0, t1)

    def op_touch(self, op):
        if self.can(op):
            m, alias, chain, got, t0, t1 = self.named_call(op, "utime", after=op["after"])
            self.model.touches(m, got, chain, op["m"], alias, op["after"], t0, t1)
            self.passed(chain, self.via(op), t0, t1)

    def op_release(self, op):
        found = self.address(op)
        if found:
            m, name, _ = found
            delay = "" if op["delay"] is None else f" {op['delay']}"
            got, t0, t1 = self.told(op["m"], f"release {name}{delay}")
            self.model.releases(m, got, op["m"], op["delay"], t0, t1)

    def told(self, m, command):
        t0 = time.monotonic()
        got = self.observer.w.do({"call": "tell", "via": None, "args": {
            "path": self.path(m, ".control"), "text": command + "\n"}})
        t1 = time.monotonic()
        self.model.advance(t0, t1)
        got["text"] = f"'{command}' > q{m}/.control"
        self.note(f"{got['text']}: {got['r']}")
        return got, t0, t1

    def letter(self, op):
        m = self.message(op)
        names = [n for n, mid in self.dead_names.items() if mid == op["mid"]]
        if m and names and op["m"] in self.model.up and self.agent(op["who"]):
            return m, names[-1]
        return None, None

    def op_back(self, op):
        m, name = self.letter(op)
        if m:
            got, _, t1 = self.call(op["who"], "rename", path=self.path(op["m"], ".dead", name),
                                   to=self.path(op["m"], name))
            self.model.resurrects(m, got, t1)
            if got["r"] == "ok" and self.model.azure:
                m.name = ""

    def op_discard(self, op):
        m, name = self.letter(op)
        if m:
            got, _, _ = self.call(op["who"], "unlink", path=self.path(op["m"], ".dead", name))
            self.model.discards(m, got)

    def op_letter(self, op):
        m, name = self.letter(op)
        if m:
            got, _, _ = self.call(op["who"], "cat", path=self.path(op["m"], ".dead", name), flags="RDONLY", n=None)
            if got["r"] == "ok":
                self.same(m, got["data"], 0, got["text"])
                if len(got["data"]) != len(m.body):
                    raise Wrong(f"m{m.mid}: {got['text']} gives {len(got['data'])} bytes")
            self.model.step(m, got, lambda s: [("ok", s), ("ENOENT", s)] if s.at == "DEAD" else [("ENOENT", s)])

    # ---- several at once -------------------------------------------------

    def op_race(self, op):
        """Whatever the order was: one order must explain all answers."""
        found = self.address(op)
        if not found or not all(self.agent(w) for w in op["whos"]):
            return
        m, name, alias = found
        path = self.path(op["m"], name)
        call = {"open": "open", "rm": "unlink"}[op["kind"]]
        t0 = time.monotonic()
        for who in op["whos"]:
            args = {"path": path}
            if call == "open":
                args.update(flags="RDONLY", h=f"{op['h']}.{who}")
            self.agent(who).send({"call": call, "via": None, "args": args})
        answers = {who: self.agent(who).answer() for who in op["whos"]}
        t1 = time.monotonic()
        self.model.advance(t0, t1)
        self.note(f"race to {op['kind']}: {', '.join(w + ' ' + a['r'] for w, a in answers.items())}")
        before, after, wrong = m.states, set(), None
        for order in itertools.permutations(op["whos"]):
            m.states = before
            try:
                for who in order:
                    got = {**answers[who], "text": f"{who}, in a race, {call} {name}"}
                    if call == "open":
                        self.model.opens(m, got, self.chain(who, None), op["m"], alias, t0, t1)
                    else:
                        self.model.removes(m, got, self.chain(who, None), op["m"], alias)
                after |= m.states
            except Wrong as e:
                wrong = e
        m.states = after or before
        if not after:
            raise wrong
        for who, got in answers.items():
            if call == "open" and got["r"] == "ok":
                self.held(f"{op['h']}.{who}", m, who, op["m"], name)

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
                raise Wrong(f"the queue does not get empty: {shown}\n{self.left()}")
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
