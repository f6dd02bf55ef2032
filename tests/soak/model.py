# SPDX-License-Identifier: MIT
"""What spoolfs(7) allows, message by message. Pure: told what was done, what came
of it, and between which two moments.

Much happens in its own time: a message arrives, a lease runs out, the daemon is
killed between a deletion and its commit. So what is known of a message is a set
of possible states. Whatever is seen keeps those that could have shown it; time
adds the states that may have been reached, and takes away those that should have
ended. When none is left, something was seen that the manual does not allow.
"""

import collections
from dataclasses import dataclass, field, replace

FOREVER = float("inf")
SLACK_S = 8.0  # for what happens "at once" on a busy machine

# DRAFT   in .drafts/, sent by a close or a rename only
# WAIT    in the queue, not before `start`, at the latest at `end`
# POOL    in the queue; listed somewhere at the latest at `end`
# READY   listed in `mount`
# CLAIM   somebody's in `mount`; from `start` on, at the latest at `end`, it comes back
# DEAD    in .dead/
# GONE    deleted, discarded, or never accepted


@dataclass(frozen=True)
class State:
    at: str
    mount: int = 0
    start: float = FOREVER
    end: float = FOREVER
    attempts: int = 0
    unsure: bool = False  # attempts is one of those at and above it
    chain: tuple = ()
    owner: str = ""
    listed_for: str = ""  # who opened it sees it still
    again: frozenset = frozenset()  # who opened it again, and may see it
    read: object = False  # None: it is not said what counts
    alias: str = ""
    serial: int = 0  # of the claim
    before: object = None  # what a crash may bring back


@dataclass
class Message:
    mid: int
    body: bytes = b""
    given: str = ""
    name: str = ""  # once it is known
    states: set = field(default_factory=set)
    accepted: bool = False
    writers: set = field(default_factory=set)
    session: str = ""
    creator: str = ""
    mount: int = 0
    sent_at: float = 0.0
    # At least once: there may be two of it, and which is meant is not to be told.
    # Its bytes are looked at, its states are not.
    doubtful: bool = False
    orphan: bool = False  # a draft of an earlier mount: only in .drafts/
    history: list = field(default_factory=list)


@dataclass
class Handle:
    mid: int
    who: str
    mount: int
    name: str = ""
    writes: bool = False
    append: bool = False
    at: int = 0
    serials: frozenset = frozenset()
    body: bytes = b""
    cut: bool = False  # its mount has ended
    read: bool = False


class Wrong(Exception):
    """Something was seen that the manual does not allow."""


class Model:
    def __init__(self, config):
        self.visibility = config["visibility_s"]
        self.retry = config["retry_s"]
        self.inherit = config["inherit_s"]
        self.max_attempts = config["max_attempts"]
        self.shared = config["shared"]
        self.unread_dies = config["unread_dies"]
        self.azure = config["azure"]
        self.narrow = config["narrow"]
        self.messages = {}
        self.handles = {}
        self.up = set()  # mounts that serve
        self.polling = set()  # of those, the ones that are not paused
        self.serial = 0
        self.ended = set()  # processes
        self.lost_leases = 0

    # ---- time ------------------------------------------------------------

    def shares(self):
        return self.azure or len(self.polling) > 1

    def slack(self):
        return SLACK_S + (self.visibility if self.shares() else 0)

    def advance(self, t0, t1):
        """What has ended by T0 has; what may begin until T1 may have begun."""
        for m in self.messages.values():
            if m.states:
                m.states = self._advanced(m.states, t0, t1)
                self.must(m, "it should have come back, or be listed, by now")

    def _advanced(self, states, t0, t1):
        out, todo = set(), list(states)
        while todo:
            s = todo.pop()
            if s in out:
                continue
            out.add(s)
            todo += self._later(s, t1)
        return {s for s in out if not self._over(s, t0)}

    def _over(self, s, t0):
        if s.at == "POOL" and (self.narrow or self.azure or not self.polling):
            return False
        return s.at in ("WAIT", "POOL", "CLAIM", "READY") and t0 > s.end

    def _later(self, s, t1):
        if s.at == "WAIT" and t1 >= s.start:
            return [self.pool(s, s.end)]
        if s.at == "POOL":
            return [
                replace(s, at="READY", mount=n, start=FOREVER, end=FOREVER)
                for n in self.polling
            ]
        if s.at == "READY" and (self.shares() or t1 >= s.start):
            return [self.pool(s, FOREVER if s.end == FOREVER else s.end)]
        if s.at == "CLAIM" and t1 >= s.start:
            return self.failed(s, s.start, s.end, 0)
        return []

    def pool(self, s, since):
        return State(
            "POOL",
            end=since + self.slack(),
            attempts=s.attempts,
            unsure=s.unsure,
        )

    # ---- attempts --------------------------------------------------------

    def failed(self, s, start, end, delay):
        """One attempt more, and it waits from START + DELAY at the least."""
        n = s.attempts + 1
        out = []
        if n < self.max_attempts:
            out.append(
                State(
                    "WAIT",
                    start=start + delay,
                    end=end + delay + self.slack(),
                    attempts=n,
                    unsure=s.unsure,
                    before=self.crash_state(s),
                )
            )
        if n >= self.max_attempts or s.unsure:
            out.append(State("DEAD", before=self.crash_state(s)))
        return out

    def delay(self, s):
        return min(self.retry * 2**s.attempts, 900)

    def given_back(self, s, t0, t1, delay=None):
        least = self.delay(s) if delay is None else delay
        most = min(self.retry * 2**self.max_attempts, 900) if s.unsure else least
        out = self.failed(s, t0, t1, least)
        return out + (self.failed(s, t0, t1 + most - least, least) if most > least else [])

    @staticmethod
    def crash_state(s):
        return replace(s, before=None) if s else None

    # ---- people ----------------------------------------------------------

    @staticmethod
    def chain(who, passing):
        leader = who[:-1] + "l"
        up = [who, leader] if who.endswith("w") else [who, who[:-1] + "w", leader]
        return tuple(([passing] if passing else []) + up)

    def may(self, s, chain):
        """Whether the process at the start of CHAIN may use what S claims."""
        if self.shared or s.owner in chain:
            return True
        return chain[0] in s.chain[:-1]

    def goes_on(self, chain, t0, t1, but, certain=True):
        """A claim by CHAIN[0]: those above it are finished with what they inherited."""
        for m in self.messages.values():
            if m.mid == but:
                continue
            out = set()
            for s in m.states:
                if s.at == "CLAIM" and s.owner in chain[1:] and s.owner != s.chain[0]:
                    end = t1 + max(self.visibility, self.delay(s)) + self.slack()
                    end = min(s.end, end) if certain and not s.again else FOREVER
                    s = replace(s, start=min(s.start, t0), end=end)
                out.add(s)
            m.states = out

    def process_ended(self, who, how, t0, t1):
        """HOW: an exit status or the name of a signal."""
        self.ended.add(who)
        for m in self.messages.values():
            m.states = {n for s in m.states for n in self._inherited(s, who, how, t0, t1)}

    def _inherited(self, s, who, how, t0, t1):
        if s.at != "CLAIM" or s.owner != who:
            return [s]
        killed = isinstance(how, str) and not (how == "PIPE" and who == s.chain[0])
        heirs = [p for p in s.chain if p not in self.ended]
        opener = who == s.chain[0]
        # The end of a process is noticed, but not by those who ask at once.
        noticed = [replace(s, start=FOREVER, end=t1 + SLACK_S)]
        if s.read is not True:
            noticed.append(self.pool(s, t1))  # undone, as by a close
        if killed or not heirs:
            return noticed + self.failed(s, t0, t1 + self.delay(s), 0)
        if not opener and how != 0:
            return noticed + self.given_back(s, t0, t1)
        return [
            replace(
                s,
                owner=heirs[0],
                start=min(s.start, t0 + self.inherit),
                end=min(s.end, t1 + self.inherit + max(self.visibility, self.delay(s)) + self.slack()),
            )
        ]

    # ---- what is done to a message by its name ---------------------------

    def step(self, m, what, choices):
        """CHOICES(state) yields (result, next state); keeps those of this result."""
        if m.doubtful:
            return
        result = what["r"]
        after, allowed = set(), set()
        for s in m.states:
            for r, nxt in choices(s):
                allowed.add(r)
                if r == result:
                    after.add(nxt)
        if not after:
            raise Wrong(
                f"m{m.mid}: {what['text']} said {result}, allowed {sorted(allowed)}"
                f" in {self.tell(m)}; it was\n  " + "\n  ".join(m.history[-40:])
            )
        m.states = after
        if m.history:
            m.history[-1] += f", so {self.tell(m)}"

    def must(self, m, why):
        if not m.states:
            raise Wrong(f"m{m.mid} {m.name or m.given}: {why}; it was\n  " + "\n  ".join(m.history[-40:]))

    @staticmethod
    def tell(m):
        def one(s):
            out = s.at + (f"@{s.mount}" if s.at in ("READY", "CLAIM") else "")
            if s.at == "CLAIM":
                out += f"({s.owner} of {','.join(s.chain)} read={s.read} as={s.alias})"
            return out + f"#{s.attempts}{'+' if s.unsure else ''}"

        return "{" + ", ".join(sorted(map(one, m.states))) + "}"

    def named(self, s, alias):
        """Whether the claimed message is found under the name that was used."""
        return s.alias == alias

    def claim(self, s, chain, mount, read, how):
        return replace(
            s,
            at="CLAIM",
            mount=mount,
            start=FOREVER,
            end=FOREVER,
            chain=chain,
            owner=chain[0],
            listed_for=chain[0] if how == "open" else "",
            again=frozenset() if how == "open" else frozenset([chain[0]]),
            read=read,
            serial=self.serial,
            before=None,
        )

    def opens(self, m, what, chain, mount, alias, t0, t1):
        self.serial += 1
        first = not m.body

        def choices(s):
            if s.at == "READY" and s.mount == mount and not alias:
                yield "ok", self.claim(s, chain, mount, first, "open")
            elif s.at == "CLAIM" and s.mount == mount and self.named(s, alias):
                if self.may(s, chain):
                    yield "ok", self._opened_again(s, chain[0], first)
                else:
                    yield "EBUSY", s
            else:
                yield "ENOENT", s

        self.step(m, what, choices)
        self._claimed(m, chain, t0, t1)

    @staticmethod
    def _opened_again(s, who, first):
        # Whether an heir who opens it counts as its opener is not said.
        end = FOREVER if s.start == FOREVER or s.owner != s.chain[0] else s.end
        return replace(s, again=s.again | {who}, read=s.read or first, end=end)

    def _claimed(self, m, chain, t0, t1):
        new = [s for s in m.states if s.serial == self.serial]
        if new:
            self.goes_on(chain, t0, t1, m.mid, len(new) == len(m.states))

    def was_read(self, m, serials):
        m.states = {
            replace(s, read=True) if s.at == "CLAIM" and s.serial in serials else s
            for s in m.states
        }

    def closed(self, m, who, t0, t1):
        """The last descriptor of those that had it open was closed."""
        out = set()
        for s in m.states:
            out.add(s)
            if s.at == "CLAIM" and s.read is not True:
                out.discard(s)
                if s.read is None or s.alias:
                    out.add(s)
                # Undone is no attempt; until the release has come it is claimed.
                out.add(replace(s, end=t1 + SLACK_S))
                out.add(self.pool(s, t1))
        m.states = out

    def removes(self, m, what, chain, mount, alias):
        def choices(s):
            if s.at == "READY" and s.mount == mount and not alias:
                yield "ok", self.unread(s)
            elif s.at == "CLAIM" and s.mount == mount and self.named(s, alias):
                if not self.may(s, chain):
                    yield "EBUSY", s
                    return
                if s.read is not True:
                    yield "ok", self.unread(s)
                if s.read is not False:
                    yield "ok", State("GONE", before=self.crash_state(s))
            else:
                yield "ENOENT", s

        self.step(m, what, choices)

    def unread(self, s):
        return State("DEAD" if self.unread_dies else "GONE", before=self.crash_state(s))

    def takes_as(self, m, what, chain, mount, alias, to, t0, t1):
        """mv NAME OTHER."""
        self.serial += 1

        def choices(s):
            if s.at == "READY" and s.mount == mount and not alias:
                yield "ok", replace(self.claim(s, chain, mount, None, "mv"), alias=to)
            elif s.at == "CLAIM" and s.mount == mount and self.named(s, alias):
                if self.may(s, chain):
                    yield "ok", replace(s, alias=to)
                else:
                    yield "EBUSY", s
            else:
                yield "ENOENT", s

        self.step(m, what, choices)
        self._claimed(m, chain, t0, t1)

    def onto(self, m, what, chain, mount, alias):
        """mv NAME onto a listed name: never."""

        def choices(s):
            if s.at == "READY" and s.mount == mount and not alias:
                yield "EEXIST", s
            elif s.at == "CLAIM" and s.mount == mount and self.named(s, alias):
                yield "EEXIST", s
                if not self.may(s, chain):
                    yield "EBUSY", s
            else:
                yield "ENOENT", s

        self.step(m, what, choices)

    def moves(self, m, what, chain, mount, alias, where):
        """mv NAME .dead/, or into the directories of done and failed."""

        def choices(s):
            here = s.mount == mount
            if s.at == "READY" and here and not alias:
                yield "ok", self.unread(s) if where == "done" else self.dead(s)
            elif s.at == "CLAIM" and here and self.named(s, alias):
                if not self.may(s, chain):
                    yield "EBUSY", s
                elif where != "done":
                    yield "ok", self.dead(s)
                else:
                    if s.read is not True:
                        yield "ok", self.unread(s)
                    if s.read is not False:
                        yield "ok", State("GONE", before=self.crash_state(s))
            else:
                yield "ENOENT", s

        self.step(m, what, choices)

    def dead(self, s):
        return State("DEAD", before=self.crash_state(s))

    def resurrects(self, m, what, t1):
        def choices(s):
            if s.at == "DEAD":
                yield "ok", State("POOL", end=t1 + self.slack(), before=s)
                yield "ENOENT", s  # not shown yet
            else:
                yield "ENOENT", s

        self.step(m, what, choices)

    def discards(self, m, what):
        def choices(s):
            if s.at == "DEAD":
                yield "ok", State("GONE", before=s)
            yield "ENOENT", s

        self.step(m, what, choices)

    def touches(self, m, what, chain, mount, alias, after, t0, t1):
        """AFTER: None, or how many seconds from now the message is to be seen."""

        def choices(s):
            mine = s.at == "CLAIM" and s.mount == mount and self.named(s, alias)
            if mine and self.may(s, chain):
                if after is None:
                    yield "ok", self._renewed(s, t0, t1)
                    return
                for nxt in self.given_back(s, t0, t1, after):
                    yield "ok", nxt
            elif mine or (s.at == "READY" and s.mount == mount and not alias):
                for r in ("ok", "EBUSY", "EPERM", "EACCES"):
                    yield r, s
            else:
                yield "ENOENT", s

        self.step(m, what, choices)

    def _renewed(self, s, t0, t1):
        if s.owner == s.chain[0]:
            return s
        end = t1 + self.inherit + max(self.visibility, self.delay(s)) + self.slack()
        if s.start < t1:  # it was left before, and may still be
            return replace(s, end=max(s.end, end))
        return replace(s, start=t0 + self.inherit, end=end)

    def releases(self, m, what, mount, delay, t0, t1):
        def choices(s):
            if s.at == "CLAIM" and s.mount == mount:
                for nxt in self.given_back(s, t0, t1, delay):
                    yield "ok", nxt
                if s.alias:
                    yield "EINVAL", s
            else:
                yield "EINVAL", s
                if s.at == "READY" and s.mount == mount:
                    yield "ok", s

        self.step(m, what, choices)

    def stats(self, m, what, mount, alias):
        def choices(s):
            here = s.mount == mount
            if (s.at == "READY" and here and not alias) or (
                s.at == "CLAIM" and here and self.named(s, alias)
            ):
                n = what.get("attempts")
                if n is None or n == s.attempts or (s.unsure and n >= s.attempts):
                    yield "ok", replace(s, attempts=s.attempts if n is None else n, unsure=s.unsure and n is None)
                else:
                    yield f"{s.attempts} attempts", s
            else:
                yield "ENOENT", s

        if what["r"] == "ok" and what["size"] != len(m.body):
            raise Wrong(f"m{m.mid}: its size is {len(m.body)}, {what['text']} says {what['size']}")
        self.step(m, what, choices)

    # ---- listings --------------------------------------------------------

    def listed(self, names, mount, who, text):
        """NAMES: what `who` saw, those of them that are known."""
        for m in self.messages.values():
            self._seen(m, m.name, names, text, lambda s: self._shows(s, mount, who))
            for alias in {s.alias for s in m.states if s.alias}:
                self._seen(
                    m,
                    alias,
                    names,
                    text,
                    lambda s, a=alias: s.at == "CLAIM" and s.mount == mount and s.alias == a,
                )

    def _seen(self, m, name, names, text, shows):
        if m.doubtful:
            return
        if not name:
            keep = {s for s in m.states if shows(s) is not True}
            seen = False
        else:
            seen = name in names
            keep = {s for s in m.states if shows(s) in (seen, None)}
        if not keep:
            raise Wrong(
                f"m{m.mid}: {text} {'shows' if seen else 'does not show'}"
                f" {name or m.given}, which is {self.tell(m)}; it was\n  " + "\n  ".join(m.history[-40:])
            )
        if keep != m.states:
            m.states = keep
            line = f"{'in' if seen else 'not in'} {text}, so {self.tell(m)}"
            if line not in m.history[-3:]:
                m.history.append(line)

    @staticmethod
    def _shows(s, mount, who):
        if s.at == "READY":
            return s.mount == mount
        if s.at == "CLAIM" and s.mount == mount and not s.alias:
            if who in s.again:
                return True if s.listed_for == who else None
            return s.listed_for == who
        return False

    def in_flight(self, names, mount, text):
        for m in self.messages.values():
            shown = {m.name} | {s.alias for s in m.states if s.alias}
            seen = bool(shown & names)
            self._seen(
                m, "x", {"x"} if seen else set(), text,
                lambda s: s.at == "CLAIM" and s.mount == mount,
            )

    def among_dead(self, mids, text, late):
        """LATE: what is dead may not be shown yet."""
        for m in self.messages.values():
            self._seen(
                m, "x", {"x"} if m.mid in mids else set(), text,
                # Another mount is told a little later of what was brought back.
                lambda s: None if len(self.up) > 1 or (late and s.at == "DEAD") else s.at == "DEAD",
            )

    def among_drafts(self, given, mount, text):
        often = collections.Counter(m.given for m in self.messages.values())
        for m in self.messages.values():
            if often[m.given] > 1:
                continue  # the name does not say which
            self._seen(
                m, "x", {"x"} if m.given in given else set(), text,
                # Sent, it is a draft until the commit.
                lambda s: (s.mount == mount or None) if s.at == "DRAFT" else False,
            )

    # ---- mounts ----------------------------------------------------------

    def restamp(self, t1):
        """What waits for a mount waits anew: the mounts have changed."""
        for m in self.messages.values():
            m.states = {
                replace(s, end=max(s.end, t1 + self.slack() + self.visibility)) if s.at in ("POOL", "WAIT") else s
                for s in m.states
            }

    def paused(self, mount, t0, t1):
        self.polling.discard(mount)
        for m in self.messages.values():
            m.states = {
                replace(s, start=t0, end=t1 + SLACK_S) if s.at == "READY" and s.mount == mount else s
                for s in m.states
            }
        self.restamp(t1)

    def resumed(self, mount, t1):
        self.polling.add(mount)
        for m in self.messages.values():
            out = set()
            for s in m.states:
                if s.at == "READY" and s.mount == mount:
                    out.add(self.pool(s, t1))
                    s = replace(s, start=FOREVER, end=FOREVER)
                out.add(s)
            m.states = out
        self.restamp(t1)

    def confirmed(self, mount):
        """sync .control: no crash brings back what was before."""
        for m in self.messages.values():
            if m.mount == mount or len(self.up) == 1:
                m.states = {replace(s, before=None) for s in m.states}

    def cut(self, mount):
        for h in self.handles.values():
            if h.mount == mount:
                h.cut = True
        for m in self.messages.values():
            if m.mount == mount:
                m.sent_at = 0.0  # the next does not know the name it was sent by
        self.polling.discard(mount)
        self.up.discard(mount)

    def stopped(self, mount, t0, t1):
        self.cut(mount)
        for m in self.messages.values():
            m.states = {n for s in m.states for n in self._stopped(m, s, mount, t0, t1)}
            if m.mount == mount:
                m.states = {replace(s, before=None) for s in m.states}
                self._writers_cut(m)
        self.restamp(t1)

    def _stopped(self, m, s, mount, t0, t1):
        if s.at == "DRAFT" and s.mount == mount and not m.body:
            return [s, State("GONE")]  # there is nothing of it to keep
        if s.mount != mount or s.at not in ("READY", "CLAIM"):
            return [s]
        if s.at == "READY":
            return [self.pool(s, t1)]
        # While nobody renews it, it may run out. What is known of reading is not kept.
        read = s.read if s.read is True else None
        return [replace(s, read=read, start=min(s.start, t0 + self.visibility / 3), end=FOREVER)]

    def _writers_cut(self, m):
        if m.writers:
            m.writers = set()
            m.states = {State("DRAFT", mount=m.mount), State("GONE")}

    def killed(self, mount, t0, t1):
        self.cut(mount)
        if self.azure:
            self._moves_doubted()
        for m in self.messages.values():
            out = {n for s in m.states for n in self._killed(m, s, mount, t0, t1)}
            if m.mount == mount and m.writers:
                m.writers = set()
                out = {State("DRAFT", mount=mount), State("GONE")}
            m.states = out
        self.restamp(t1)

    def _moves_doubted(self):
        """To bury, and to bring back, is to send a copy there: a crash leaves both."""
        for m in self.messages.values():
            places = {(s.at, s.before.at) for s in m.states if s.before}
            if any(at == "DEAD" or before == "DEAD" for at, before in places):
                self.doubt(m)

    @staticmethod
    def doubt(m):
        m.doubtful = True
        m.states = {State("GONE")}

    def _killed(self, m, s, mount, t0, t1):
        out = [replace(s, before=None)]
        if s.before is not None:
            out += self._killed(m, s.before, mount, t0, t1)
        if s.at == "DRAFT" and s.mount == mount and not m.body:
            out.append(State("GONE"))  # there is nothing of it to keep
        if s.at in ("POOL", "WAIT", "READY") and m.mount == mount and not m.name:
            out.append(State("DRAFT", mount=mount))
            if not m.body:
                out.append(State("GONE"))
        if s.at in ("READY", "CLAIM") and s.mount == mount:
            out = [n for n in out if n.at not in ("READY", "CLAIM")]
            lapse = replace(self.pool(s, t1 + self.visibility), unsure=True)
            out.append(lapse)
            if s.at == "CLAIM":
                out += self.failed(replace(s, unsure=True, before=None), t0, t1 + self.delay(s), 0)
                kept = replace(s, before=None, read=None, unsure=True, start=t0, end=FOREVER)
                out.append(kept)
                if s.alias:
                    out.append(replace(kept, alias=""))
        if s.at in ("WAIT", "DEAD") and s.before is not None:
            out.append(replace(self.pool(s.before, t1 + self.visibility), unsure=True))
        if s.at == "GONE" and s.before is not None and s.before.at != "DEAD":
            out.append(replace(self.pool(s.before, t1 + self.visibility), unsure=True))
        return out

    def mounted(self, mount, t0, t1):
        self.up.add(mount)
        self.polling.add(mount)
        for m in self.messages.values():
            # It takes over the drafts of those that have ended.
            if m.mount not in self.up:
                m.mount = mount
            out = set()
            for s in m.states:
                if s.at == "DRAFT" and s.mount not in self.up:
                    s = replace(s, mount=mount)
                if s.at == "CLAIM" and s.mount == mount and t1 >= s.start:
                    out.add(self.pool(s, t1 + self.visibility))
                    out |= set(self.failed(s, t0, t1 + self.visibility + self.delay(s), 0))
                    s = replace(s, start=t0, end=FOREVER)
                elif s.at == "CLAIM" and s.mount == mount:
                    heir = s.owner != s.chain[0]
                    s = replace(s, start=t0 if heir else FOREVER, end=FOREVER)
                out.add(s)
            m.states = out
        self.restamp(t1)

    # ---- the end ---------------------------------------------------------

    def may_be(self, m, *places):
        return any(s.at in places for s in m.states)
