# SPDX-License-Identifier: MIT
"""What the player does to drafts, and to what has just been sent."""

import base64
import random
import re
import time

from model import Handle, Message, State, Wrong

DRAFT = re.compile(r"^\.|\.tmp$|\.part$|~$")
GRACE_S = 1.5


def body_of(mid, n, part=0):
    """N bytes, of which the first line says whose they are."""
    head = f"#{mid}\n".encode() if part == 0 else b""
    noise = random.Random(f"{mid}/{part}").choices(b"abcdefghijklmnopqrstuvwxyz \n", k=n)
    return head + bytes(noise)


class Writing:
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
        if self.model.azure and at + op["n"] > 45000:
            return  # that is too big a message there
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
        if "graced" in m.history:
            allowed |= {"ENOENT"}
        m.history.append("graced")
        if got["r"] not in allowed:
            raise Wrong(f"{got['text']}, {age:.2f} s after it was sent, said {got['r']}")
