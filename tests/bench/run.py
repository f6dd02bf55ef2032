# SPDX-License-Identifier: MIT
"""run.py BUILD [--smoke] [--only REGEX]: see scripts/bench.

What is where:
    bed.py      directories, mounts, servers and clients, and what they cost
    spool.py    spoolfs and its limits: speed, latency, depth, consumers, idle
    peers.py    what users would use instead, and with which durability
    loops.py    the same in shell
    report.py   table, targets, JSON
    plots.py    PNGs
    *.c         clients that make the calls, and a FUSE filesystem that does nothing
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import loops
import peers
import plots
import report
import spool
from bed import Absent, Bed, Failed

SIZES = (100, 16384)
BUSY_PER_CPU = 0.25     # load before the first round


class Plan:
    """How much is done in one round."""

    def __init__(self, smoke):
        self.smoke = smoke
        self.rounds = int(os.environ.get("SPOOLFS_BENCH_ROUNDS", 1 if smoke else 5))
        self.loops = 10 if smoke else 200
        self.pings = 10 if smoke else 300
        self.crowd = 200 if smoke else 2000
        self.people = (1, 32) if smoke else (1, 2, 4, 8, 16, 32)
        self.depth_turns = 1 if smoke else 4
        self.settle_s = 0.5 if smoke else 20  # the deadlines of leases that are over
        self.idle_s = 1 if smoke else 10
        deepest = int(os.environ.get("SPOOLFS_BENCH_DEPTH", 2000 if smoke else 1000000))
        self.depths = [d for d in (1000, 2000, 10000, 100000, 1000000)
                       if d <= deepest and (smoke or d != 2000)]

    def messages(self, size):
        """Those that cost no sync each."""
        if self.smoke:
            return 200
        return 4000 if size <= 1024 else 2000

    def writes(self, size):
        """Those that do."""
        if self.smoke:
            return 40
        return 1000 if size <= 1024 else 500


def steps(bed, plan):
    """(name, call), in the order of the even rounds."""
    depths = spool.Depths(bed, plan.depths)
    servers = {"redis": peers.redis, "beanstalk": peers.beanstalkd}
    by_size = {
        "null": spool.null, "spoolfs": spool.spoolfs, "spoolfs-listed": spool.spoolfs_listed,
        "disk": spool.disk, "tmpfs": spool.tmpfs, "spoolfs-announce": spool.spoolfs_announced,
        "redis": peers.redis_speed, "beanstalk": peers.beanstalk_speed, "dirq": peers.dirq,
        "dirq-python": peers.dirq_python, "mqueue": peers.mqueue, "loop-tmpfs": loops.tmpfs,
        "loop-spoolfs": loops.spoolfs, "loop-redis": loops.with_redis,
        "loop-beanstalk": loops.with_beanstalk, "loop-maildir": loops.maildir,
        "loop-nq": loops.nq, "loop-run": loops.spoolfs_run,
    }
    for size in SIZES:
        for name, call in by_size.items():
            yield f"{name}/{size}", lambda call=call, size=size: call(bed, plan, size)
    yield "latency", lambda: spool.latency(bed, plan)
    yield "depth", lambda: depths.measure(plan)
    yield "consumers", lambda: spool.consumers(bed, plan)
    yield "idle", lambda: spool.idle(bed, plan, servers)


class Run:
    def __init__(self, bed, plan, only):
        self.bed = bed
        self.plan = plan
        self.steps = [(n, c) for n, c in steps(bed, plan) if re.search(only, n)]
        self.absent = {}
        self.failed = {}
        self.load = []
        self.start = time.monotonic()

    def step(self, name, call):
        self.bed.done()
        try:
            call()
        except Absent as e:
            self.absent[name] = str(e)
        except (Failed, OSError, ValueError, subprocess.SubprocessError) as e:
            self.failed.setdefault(name, str(e))
            print(f"bench: {name}: {e}", file=sys.stderr)

    def rounds(self):
        for number in range(self.plan.rounds):
            self.load.append(os.getloadavg()[0])
            print(f"round {number + 1} of {self.plan.rounds}, load {self.load[-1]:.1f}, "
                  f"{time.monotonic() - self.start:.0f} s", file=sys.stderr)
            for name, call in self.steps if number % 2 == 0 else reversed(self.steps):
                self.step(name, call)

    def was_busy(self):
        """With other work than ours: later rounds see our own load."""
        return self.load[0] > BUSY_PER_CPU * os.cpu_count()

    def azure(self, out):
        """What scripts/bench-azure found, where there is one: see scripts/bench."""
        script = os.path.join(self.bed.here, "../../scripts/bench-azure")
        if not os.access(script, os.X_OK):
            return None
        argv = [script, self.bed.build, out, *(["--smoke"] if self.plan.smoke else [])]
        if subprocess.run(argv, check=False).returncode != 0:
            self.failed["azure"] = "scripts/bench-azure failed"
            return None
        with open(os.path.join(out, "azure.json"), encoding="utf-8") as f:
            return json.load(f)


def show(run, out):
    figures = report.Figures(run.bed.figures)
    found = report.targets(figures)
    report.print_speeds(figures)
    report.print_others(figures)
    azure = run.azure(out)
    report.print_targets(found)
    if run.was_busy():
        print(f"\nThe machine was busy before this began (load {run.load[0]:.1f} on "
              f"{os.cpu_count()} CPUs):\nneither met nor MISSED means anything; of the "
              "figures, CPU seconds and memory do.")
    extra = {"rounds": run.plan.rounds, "smoke": run.plan.smoke, "load_at_rounds": run.load,
             "was_busy": run.was_busy(),
             "seconds": round(time.monotonic() - run.start), "absent": run.absent,
             "failed": run.failed, "azure": azure}
    report.write_json(os.path.join(out, "results.json"), run.bed, figures, found, extra)
    if shutil.which("gnuplot"):
        run.step("plots", lambda: plots.draw_all(out, figures))
    else:
        run.absent["plots"] = "gnuplot is not installed"
    for name, why in run.absent.items():
        print(f"not measured: {name}: {why}")
    print(f"\nMedians of {run.plan.rounds} rounds; load when they began: "
          + " ".join(f"{load:.1f}" for load in run.load)
          + f"\n{out}/results.json has every round and the commands.")


def main():
    parser = argparse.ArgumentParser(prog="bench")
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    build = os.path.realpath(args.build)
    out = os.path.join(build, "bench")
    os.makedirs(out, exist_ok=True)
    cpu = os.environ.get("SPOOLFS_BENCH_CPU", "0")
    # Whoever ends us ends what we started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    bed = Bed(build, out, int(cpu) if cpu else None, 60 if args.smoke else 900)
    try:
        run = Run(bed, Plan(args.smoke), args.only)
        run.rounds()
        show(run, out)
    finally:
        bed.destroy()
    return 1 if run.failed else 0


sys.exit(main())
