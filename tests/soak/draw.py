# SPDX-License-Identifier: MIT
"""Draws the next operation by lot, where it has a chance to mean something."""

import random

WEIGHTS = {
    "put": 14, "burst": 2, "wopen": 5, "write": 6, "wclose": 5, "drename": 7, "drm": 1, "dview": 2,
    "grace": 2, "ls": 9, "stat": 4, "peek": 2, "refused": 1, "open": 8, "read": 9, "close": 6,
    "cat": 12, "next": 5, "rm": 11, "mv": 3, "onto": 1, "move": 3, "touch": 4, "release": 3,
    "back": 2, "discard": 1, "letter": 1, "race": 4, "pause": 1, "resume": 1, "poll": 1, "sync": 2,
    "end": 3, "settle": 9, "gauges": 2, "kill": 1, "stop": 1, "mount": 1,
}  # fmt: skip


def config(lot, azure):
    """One kind of mount, and what the model has to know of it."""
    visibility = lot.choice([2, 3]) if azure else lot.choice([1, 2, 3])
    retry = lot.choice([0.1, 0.3, 1])
    inherit = lot.choice([1, 900, 900])
    attempts = lot.choice([2, 3, 5, 5])
    shared = lot.random() < 0.15
    bury = lot.random() < 0.8
    narrow = lot.random() < 0.15
    options = {
        "visibility": f"{visibility}s",
        "retry_delay": f"{int(retry * 1000)}ms",
        "inherit": f"{inherit}s",
        "max_attempts": attempts,
        "announce": lot.choice(["create", "create", "rename", "off"]),
        "done": "done",
        "failed": "failed",
    }
    if shared:
        options["claims"] = "shared"
    if not bury:
        options["rm_unread"] = "delete"
    if narrow:
        options["window"] = 3
    return {
        "options": options, "visibility_s": visibility, "retry_s": retry, "inherit_s": inherit,
        "max_attempts": attempts, "shared": shared, "unread_dies": bury, "azure": azure,
        "narrow": narrow,
    }  # fmt: skip


class Draw:
    def __init__(self, seed, kills=True):
        self.lot = random.Random(seed)
        self.mid = 0
        self.handle = 0
        self.alias = 0
        self.part = 0
        self.session = 4
        self.live = ["1", "2", "3"]
        self.weights = dict(WEIGHTS)
        self.two = self.lot.random() < 0.3
        if not kills:
            self.weights["kill"] = 0

    # ---- parts -----------------------------------------------------------

    def who(self):
        return f"s{self.lot.choice(self.live)}{'c' if self.lot.random() < 0.3 else 'w'}"

    def m(self):
        return int(self.two and self.lot.random() < 0.4)

    def via(self):
        return self.lot.choice([None, 0, 0, 0, 1])

    def new(self):
        self.mid += 1
        return self.mid

    def size(self):
        return self.lot.choice([1, 20, 100, 100, 4000, 4090, 9000, 30000])

    def message(self, player, *places):
        """Any, but rather one that is in one of the places, or new."""
        known = player.model.messages
        fit = [m.mid for m in known.values() if player.model.may_be(m, *places)]
        if fit and self.lot.random() < 0.9:
            return self.lot.choice(fit[-8:])
        return self.lot.choice(list(known)) if known else None

    def base(self, player, *places):
        return {"who": self.who(), "m": self.m(), "mid": self.message(player, *places)}

    def held(self, player, writes):
        fit = [k for k, h in player.model.handles.items() if h.writes == writes]
        return self.lot.choice(fit) if fit else None

    # ---- operations ------------------------------------------------------

    def next(self, player):
        while True:
            kind = self.lot.choices(list(self.weights), list(self.weights.values()))[0]
            op = getattr(self, "op_" + kind)(player)
            if op is not None and op.get("mid", 0) is not None and op.get("h", "") is not None:
                return {"op": kind, **op}

    def op_put(self, player):
        mid = self.new()
        empty = self.lot.random() < 0.05 and not player.model.azure
        name = self.lot.choice([f"{'e' if empty else 'g'}{mid}"] * 4 + [f"g{mid}.tmp"])
        if self.lot.random() < 0.15 and not empty:
            name = "same"
        flags = "WRONLY|CREAT" + self.lot.choice(["|TRUNC", "|TRUNC", "|EXCL", "|APPEND", ""])
        via = self.lot.choice([None, 0, 0, 1, "KILL"] if name != "same" else [0])
        if name == "same":
            flags = "WRONLY|CREAT|TRUNC"
        return {"who": self.who(), "m": self.m(), "mid": mid, "name": name,
                "n": None if empty else self.size(), "flags": flags, "via": via}

    def op_burst(self, player):
        whos = [f"s{n}w" for n in self.lot.sample(self.live, 3)]
        mids = [self.new() for _ in whos]
        return {"m": self.m(), "name": f"b{mids[0]}", "n": self.size(), "whos": whos, "mids": mids}

    def op_wopen(self, player):
        self.handle += 1
        open_now = [h for h in player.model.handles.values() if h.writes and not h.cut]
        if open_now and self.lot.random() < 0.4:
            h = self.lot.choice(open_now)
            m = player.model.messages[h.mid]
            return {"who": h.who[:-1] + self.lot.choice("wc"), "m": h.mount, "mid": h.mid, "name": m.given,
                    "again": True, "h": f"h{self.handle}", "flags": "WRONLY|CREAT|APPEND"}
        mid = self.new()
        return {"who": self.who(), "m": self.m(), "mid": mid, "h": f"h{self.handle}",
                "name": f"g{mid}" + self.lot.choice(["", "", ".tmp", ".part", "~"]),
                "flags": "WRONLY|CREAT" + self.lot.choice(["", "|TRUNC", "|APPEND", "|EXCL"])}

    def op_write(self, player):
        self.part += 1
        return {"h": self.held(player, True), "n": self.size(), "part": self.part}

    def op_wclose(self, player):
        return {"h": self.held(player, True)}

    def draft(self, player):
        fit = [m for m in player.model.messages.values() if player.model.may_be(m, "DRAFT")]
        ready = [m for m in fit if not m.writers and not m.orphan and m.session[1:] in self.live]
        fit = ready if ready and self.lot.random() < 0.8 else fit
        return self.lot.choice(fit) if fit else None

    def op_drename(self, player):
        m = self.draft(player)
        if not m:
            return None
        to = f"r{m.mid}" + self.lot.choice(["", "", "", ".part"])
        return {"who": f"{m.session}{self.lot.choice('wc')}", "m": m.mount, "mid": m.mid, "to": to,
                "via": self.lot.choice([None, 0])}

    def op_drm(self, player):
        m = self.draft(player)
        return m and {"who": m.session + "w", "m": m.mount, "mid": m.mid, "via": 0}

    def op_dview(self, player):
        m = self.draft(player)
        if not m:
            return None
        to = self.lot.choice([None, f"v{m.mid}", f"v{m.mid}"])
        return {"who": self.who(), "m": m.mount, "mid": m.mid, "to": to}

    def op_grace(self, player):
        return {"mid": self.message(player, "POOL"), "m": self.m(),
                "call": self.lot.choice(["stat", "stat", "utime", "unlink", "rename"])}

    def op_ls(self, player):
        return {"who": self.lot.choice(["obs", self.who()]), "m": self.m(),
                "dir": self.lot.choice(["top"] * 5 + ["inflight", "dead", "drafts"])}

    def op_stat(self, player):
        return {**self.base(player, "READY", "CLAIM"), "attempts": self.lot.random() < 0.7}

    def op_peek(self, player):
        return self.base(player, "READY")

    def op_refused(self, player):
        flags = self.lot.choice(["WRONLY", "WRONLY|TRUNC", "RDWR|TRUNC", "RDONLY|TRUNC"])
        return {**self.base(player, "READY", "CLAIM"), "flags": flags}

    def op_open(self, player):
        self.handle += 1
        return {**self.base(player, "READY", "READY", "CLAIM"), "h": f"h{self.handle}",
                "flags": self.lot.choice(["RDONLY", "RDONLY", "RDWR"])}

    def op_read(self, player):
        return {"h": self.held(player, False), "n": self.lot.choice([1, 10, 4096, 100000])}

    def op_close(self, player):
        return {"h": self.held(player, False)}

    def op_cat(self, player):
        return {**self.base(player, "READY", "READY", "CLAIM"), "n": self.lot.choice([None, None, None, 0, 7]),
                "flags": self.lot.choice(["RDONLY", "RDONLY", "RDWR"]),
                "via": self.lot.choice([None, 0, 0, 0, 1, "KILL", "PIPE"])}

    def op_next(self, player):
        return {"who": self.who(), "m": self.m(), "via": self.lot.choice([None, 0]),
                "ms": self.lot.choice([0, 0, 100])}

    def op_rm(self, player):
        op = {**self.base(player, "CLAIM", "READY"), "via": self.via()}
        m = player.model.messages.get(op["mid"])
        owners = [s.owner for s in m.states if s.at == "CLAIM"] if m else []
        if owners and self.lot.random() < 0.6 and owners[0][-1] in "wc":
            op["who"] = owners[0]
            op["m"] = next(s.mount for s in m.states if s.at == "CLAIM")
        return op

    def op_mv(self, player):
        self.alias += 1
        op = self.base(player, "READY", "CLAIM")
        return {**op, "to": f"imp{op['mid']}.{self.alias}", "via": self.via()}

    def op_onto(self, player):
        return {**self.base(player, "READY", "CLAIM"), "other": self.message(player, "READY")}

    def op_move(self, player):
        where = self.lot.choice([".dead", "done", "failed"])
        return {**self.op_rm(player), "where": where}

    def op_touch(self, player):
        return {**self.op_rm(player), "after": self.lot.choice([None, None, 1.5, 3])}

    def op_release(self, player):
        return {"m": self.m(), "mid": self.message(player, "CLAIM"), "delay": self.lot.choice([None, 0, 1])}

    def op_back(self, player):
        return self.base(player, "DEAD")

    op_discard = op_back
    op_letter = op_back

    def op_race(self, player):
        self.handle += 1
        whos = [f"s{n}w" for n in self.lot.sample(self.live, self.lot.choice([2, 3]))]
        return {"whos": whos, "m": self.m(), "mid": self.message(player, "READY"), "h": f"h{self.handle}",
                "kind": self.lot.choice(["open", "open", "rm"])}

    def op_pause(self, player):
        return {"m": self.m()}

    op_resume = op_pause
    op_poll = op_pause
    op_sync = op_pause

    def op_end(self, player):
        number = self.lot.choice(self.live)
        which = self.lot.choice("wwc")
        leader = self.lot.random() < 0.3
        if which == "w":
            self.live.remove(number)
            self.live.append(str(self.session))
            self.session += 1
        return {"who": f"s{number}{which}", "how": self.lot.choice([0, 0, 1, "KILL"]),
                "leader": leader and which == "w"}

    def op_settle(self, player):
        return {"s": self.lot.choice([0.05, 0.05, 0.2, 0.5, 1.5])}

    def op_gauges(self, player):
        return {}

    def op_kill(self, player):
        return {"m": self.m(), "stay": self.lot.random() < 0.1}

    def op_stop(self, player):
        return {"m": self.m()}

    def op_mount(self, player):
        down = [m for m in ((0, 1) if self.two else (0,)) if m not in player.model.up]
        return {"m": self.lot.choice(down)} if down else None
