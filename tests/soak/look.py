# SPDX-License-Identifier: MIT
"""What the player looks at: listings, attributes, gauges."""

import re
import time

from model import FOREVER, Wrong


class Looking:
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
        mids, all_known = set(), True
        for name in names:
            if name not in self.dead_names:
                message = self.identify(m, name, ".dead")
                if not message:
                    all_known = False
                    continue
                self.dead_names[name] = message.mid
                if self.model.azure:
                    message.name = name
            mids.add(self.dead_names[name])
        if all_known:
            self.model.among_dead(mids, f".dead of q{m}", True)

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
