# SPDX-License-Identifier: MIT
"""model BUILD: random sequences of operations, held to the model, for as long as
SPOOLFS_SOAK_SECONDS says. A sequence that the manual does not allow is shrunk,
and printed as a shell script.

  --backend sqlite|azure   what is under the mounts
  --seed N                 the first sequence (SPOOLFS_SOAK_SEED); the next has the
                           next number
  --one                    one sequence only
  --ops N                  how long each is
  --replay FILE            what a script that was printed has kept; - is stdin
"""

import argparse
import collections
import json
import os
import random
import sys
import time

from bed import Azurite
from draw import Draw, config
from play import Hang, Player, Trouble, Wrong
from script import script
from shrink import shrink

FAULTS = (Wrong, Trouble, Hang)


class Soak:
    def __init__(self, args, azurite):
        self.args = args
        self.azurite = azurite
        self.counts = collections.Counter()
        self.memory_kb = 0

    def play(self, conf, steps):
        """STEPS(player) gives the operations. What was wrong, or None; and those done."""
        done = []
        player = Player(self.args.build, conf, self.azurite)
        log = ""
        try:
            for op in steps(player):
                done.append(op)
                player.do(op)
            player.finish()
            self.counts["leases_lost"] += player.leases_lost
            return None, done, log
        except FAULTS as e:
            log = player.bed.log()
            return e, done, log
        finally:
            self.counts["operations"] += player.done
            self.counts["kills"] += player.kills
            self.counts["twice"] += player.twins
            self.counts["messages"] += len(player.model.messages)
            self.memory_kb = max(self.memory_kb, player.memory_kb)
            player.close()

    def drawn(self, seed, length):
        draw = Draw(seed)

        def steps(player):
            for _ in range(length):
                yield draw.next(player)

        return steps

    def fails(self, conf, ops):
        """How it goes wrong, if it does: what happens in its own time may not."""
        for _ in range(self.args.tries):
            wrong, done, _ = self.play(conf, lambda player: iter(ops))
            if wrong:
                return wrong, done
        return None, ops

    def sequence(self, seed):
        conf = config(random.Random(f"options {seed}"), self.azurite is not None)
        length = self.args.ops or random.Random(f"length {seed}").choice([20, 60, 120, 200])
        wrong, done, log = self.play(conf, self.drawn(seed, length))
        self.counts["sequences"] += 1
        if wrong:
            self.report(seed, conf, wrong, done, log)
        return wrong

    def report(self, seed, conf, wrong, done, log):
        self.counts["wrong"] += 1
        print(f"seed {seed}: {type(wrong).__name__}: {wrong}\n{log}", flush=True)
        ops, last = done, wrong
        if self.args.shrink_s:
            ops, last = shrink(done, wrong, lambda some: self.fails(conf, some), self.args.shrink_s)
        print(script(seed, conf, ops, last), flush=True)

    def again(self, conf, ops):
        wrong, done = self.fails(conf, ops)
        if not wrong:
            print("nothing wrong")
            return 0
        self.report("given", conf, wrong, done, "")
        return 1

    def run(self, seconds):
        seed, end = self.args.seed, time.monotonic() + seconds
        failed = 0
        while time.monotonic() < end and failed < self.args.stop_after:
            failed += bool(self.sequence(seed))
            seed += 1
            if self.args.one:
                break
        return failed


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("--backend", default="sqlite", choices=["sqlite", "azure"])
    seed = os.environ.get("SPOOLFS_SOAK_SEED", int(time.time()) % 1000000 * 1000)
    parser.add_argument("--seed", type=int, default=int(seed))
    parser.add_argument("--one", action="store_true")
    parser.add_argument("--ops", type=int)
    parser.add_argument("--replay")
    parser.add_argument("--tries", type=int, default=2)
    parser.add_argument("--shrink-s", type=float, default=180)
    parser.add_argument("--stop-after", type=int, default=1)
    return parser.parse_args()


def main():
    args = arguments()
    seconds = float(os.environ.get("SPOOLFS_SOAK_SECONDS", "120"))
    azurite = Azurite() if args.backend == "azure" else None
    started = time.monotonic()
    try:
        soak = Soak(args, azurite)
        if args.replay:
            with open(0 if args.replay == "-" else args.replay, encoding="utf-8") as f:
                kept = json.load(f)
            return soak.again(kept["config"], kept["ops"])
        print(f"soak: {args.backend}, {seconds:.0f} s, from seed {args.seed}", flush=True)
        failed = soak.run(seconds)
        counts = " ".join(f"{k} {soak.counts[k]}" for k in (
            "sequences", "operations", "messages", "kills", "wrong", "twice", "leases_lost"))
        print(f"soak: {args.backend}: {counts} memory_kb {soak.memory_kb}"
              f" in {time.monotonic() - started:.0f} s")
        return 1 if failed else 0
    finally:
        if azurite:
            azurite.stop()


sys.exit(main())
