# SPDX-License-Identifier: MIT
"""What the player does to messages: it opens, reads, takes and gives back."""

import itertools
import time

from model import FOREVER, Handle, Wrong


class Handling:
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
        now = {s.serial for s in m.states if s.at == "CLAIM"}
        others = [o for o in self.model.handles.values() if o.mid == m.mid and not o.writes]
        if not any(o.serials & now and not o.cut for o in others):
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
        if m.doubtful:
            return
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
