# SPDX-License-Identifier: MIT
"""From figures to a table, to targets that are met or missed, and to JSON."""

import json
import os
import platform
import statistics
import subprocess
import time

# What the subjects are called, and when what they were told is on disk: before
# each call answers ("each"), some time later but before the measurement ends or a
# second has passed ("batches"), or whenever the system likes ("none").
SUBJECTS = {
    "spoolfs": ("spoolfs", "each"),
    "spoolfs-listed": ("spoolfs, all listed before", "each"),
    "spoolfs-announce": ("spoolfs, announcing", "each"),
    "spoolfs-sync": ("spoolfs, each rm confirmed", "each"),
    "spoolfs-run": ("spoolfs run", "each"),
    "null": ("null FUSE filesystem", "none"),
    "null+fdatasync": ("null FUSE + one fdatasync", "limit"),
    "fdatasync": ("one fdatasync", "limit"),
    "tmpfs": ("tmpfs", "none"),
    "dirq": ("dirq's calls in C", "none"),
    "dirq-sync": ("dirq's calls, synced", "each"),
    "dirq-python": ("dirq (Python)", "none"),
    "redis": ("redis, LPUSH / RPOP", "each"),
    "redis-move": ("redis, LMOVE + LREM", "each"),
    "redis-everysec": ("redis, RPOP, everysec", "batches"),
    "beanstalk": ("beanstalkd -f 0", "each"),
    "mqueue": ("POSIX mqueue", "none"),
    "redis-cli-lpush": ("redis-cli, LPUSH", "each"),
    "redis-cli": ("redis-cli, LMOVE + LREM", "each"),
    "redis-cli-rpop": ("redis-cli, RPOP", "each"),
    "beanstalk-nc": ("beanstalkd through nc", "each"),
    "maildir": ("Maildir", "none"),
    "maildir-sync": ("Maildir, synced", "each"),
    "nq": ("nq", "none"),
}

# Measures of deletions, which spoolfs confirms in batches unless it is asked.
DELETING = ("consume", "consume16", "loop", "run")


def durability_of(measure, subject):
    if measure in DELETING and subject.startswith("spoolfs") and subject != "spoolfs-sync":
        return "batches"
    return SUBJECTS[subject][1]


# Sections of the table: measure, heading. The first subject is what all are
# compared with.
SECTIONS = [
    ("consume", "consume: list, read, delete; microseconds per message"),
    ("consume16", "the same, 16 clients"),
    ("enqueue1", "enqueue, one writer"),
    ("enqueue16", "enqueue, 16 writers"),
    ("loop", "shell loop: for f in Q/*; do cat $f && rm $f; done"),
    ("loop-put", "shell loop: printf %s \"$body\" > Q/name"),
    ("run", "a program run for each message, enqueuing included"),
]

SIZE_NAMES = {"100": "100 B", "16384": "16 KiB"}


class Figures:
    def __init__(self, rounds):
        self.rounds = rounds
        self._derive()

    def _derive(self):
        """What a durable write through FUSE cannot be faster than."""
        for size in SIZE_NAMES:
            pairs = zip(self.rounds.get(f"enqueue1/null/{size}", []),
                        self.rounds.get(f"enqueue1/fdatasync/{size}", []))
            values = [a + b for a, b in pairs]
            if values:
                self.rounds[f"enqueue1/null+fdatasync/{size}"] = values

    def get(self, name):
        values = self.rounds.get(name)
        return statistics.median(values) if values else None

    def ratio(self, a, b):
        """The median of the rounds' ratios: what disturbs a round disturbs both."""
        x, y = self.rounds.get(a), self.rounds.get(b)
        if not x or not y:
            return None
        if len(x) == len(y):
            return statistics.median(i / j for i, j in zip(x, y))
        return statistics.median(x) / statistics.median(y)

    def ratio_of_bests(self, a, b):
        """What is left when other work on the machine is not in the way."""
        x, y = self.rounds.get(a), self.rounds.get(b)
        return min(x) / min(y) if x and y else None

    def subjects(self, measure):
        """In order of SUBJECTS, those that have a figure of MEASURE."""
        there = {name.split("/")[1] for name in self.rounds if name.startswith(measure + "/")}
        return [s for s in SUBJECTS if s in there]

    def family(self, prefix):
        """NUMBER: median, of PREFIX/NUMBER."""
        names = (n for n in self.rounds if n.startswith(prefix + "/"))
        return {k: self.get(f"{prefix}/{k}") for k in sorted(int(n.split("/")[1]) for n in names)}


# ---- targets --------------------------------------------------------------------

def target(ident, text, found, sign, limit, unit="", bests=None):
    met = None if found is None else found <= limit if sign == "<=" else found >= limit
    return {"target": ident, "text": text, "unit": unit, "found": found, "of_bests": bests,
            "wanted": f"{sign} {limit}", "met": met}


def speed_targets(f, size):
    for ident, text, measure, a, b, sign, limit in (
            ("1", "consume / null FUSE", "consume", "spoolfs", "null", "<=", 1.15),
            ("1", "redis / consume", "consume", "redis", "spoolfs", ">=", 2.5),
            ("1", "beanstalkd / consume", "consume", "beanstalk", "spoolfs", ">=", 2.5),
            ("2", "durable enqueue / (null FUSE + fdatasync)", "enqueue1", "spoolfs",
             "null+fdatasync", "<=", 1.25),
            ("2", "rate of 16 writers / that of null FUSE", "enqueue16", "null", "spoolfs",
             ">=", 0.75),
            ("3", "shell loop / the same on tmpfs", "loop", "spoolfs", "tmpfs", "<=", 1.15),
            ("3", "redis-cli loop / shell loop", "loop", "redis-cli", "spoolfs", ">=", 2)):
        names = (f"{measure}/{a}/{size}", f"{measure}/{b}/{size}")
        yield target(ident, f"{text}, {SIZE_NAMES[size]}", f.ratio(*names), sign, limit,
                     bests=f.ratio_of_bests(*names))


def latency_targets(f):
    for event, text in (("in_close_write", "close() to inotify event"),
                        ("next", "close() to a read of .next")):
        for at, limit in (("median", 2), ("p99", 10)):
            found = f.get(f"latency/{event}_{at}")
            yield target("4", f"{text}, {at}", None if found is None else found / 1000,
                         "<=", limit, "ms")


def crowd_targets(f):
    depths = f.family("depth-consume")
    if depths:
        few, many = min(depths), max(depths)
        names = (f"depth-consume/{many}", f"depth-consume/{few}")
        yield target("5", f"consume of {many} waiting / of {few}", f.ratio(*names), "<=", 1.1,
                     bests=f.ratio_of_bests(*names))
    for mode, text in (("take", "by .next"), ("compete", "by listing")):
        people = f.family(f"consumers-{mode}")
        if people:
            most = max(people)
            yield target("5", f"rate of {most} consumers / the best, {text}",
                         min(people.values()) / people[most], ">=", 0.9)


def idle_targets(f):
    yield target("6", "idle, of one core", f.get("idle-cpu-percent/spoolfs"), "<=", 0.1, "%")
    yield target("6", "idle, resident with its announcer", f.get("memory/idle-spoolfs"),
                 "<=", 12, "MiB")
    yield target("6", "idle, wake-ups without a deadline",
                 f.get("idle-wakeups-per-s/spoolfs-no-deadline"), "<=", 0, "/s")


def targets(f):
    found = []
    for size in SIZE_NAMES:
        found += speed_targets(f, size)
    found += latency_targets(f)
    found += crowd_targets(f)
    found += idle_targets(f)
    return found


# ---- the table -------------------------------------------------------------------

def number(value):
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def print_speeds(f):
    sizes = list(SIZE_NAMES)
    print("On disk before each call answers (each), later but before the end or within"
          " a second\n(batches), or whenever the system likes (none).")
    head = "".join(f"{SIZE_NAMES[s]:>10} {'ratio':>7}" for s in sizes)
    for measure, heading in SECTIONS:
        subjects = f.subjects(measure)
        if not subjects:
            continue
        print(f"\n{heading}\n{'':40}{head}")
        for subject in subjects:
            row = f"  {SUBJECTS[subject][0]:28}{durability_of(measure, subject):10}"
            for size in sizes:
                name = f"{measure}/{subject}/{size}"
                ratio = f.ratio(name, f"{measure}/{subjects[0]}/{size}")
                row += f"{number(f.get(name)):>10} {number(ratio):>7}"
            print(row.rstrip())


def print_family(f, prefix, heading, shown=number):
    family = f.family(prefix)
    if family:
        print(f"  {heading:38}" + "".join(f"{k:>9}: {shown(v)}" for k, v in family.items()))


def print_others(f):
    print("\nother figures")
    for event in ("in_create", "in_close_write", "next"):
        print(f"  close() to {event:27}" + "".join(
            f"{at:>9}: {number(f.get(f'latency/{event}_{at}'))}"
            for at in ("median", "p90", "p99", "max")) + " us")
    print_family(f, "depth-consume", "consume, so many waiting, us")
    print_family(f, "depth-enqueue", "16 writers, so many waiting, us")
    for mode in ("take", "compete"):
        print_family(f, f"consumers-{mode}", f"messages/s of consumers ({mode})",
                     lambda us: f"{1e6 / us:.0f}")
    print("\nCPU seconds per 10,000 messages of 100 B: server, and its client beside it")
    for measure in ("consume", "enqueue1", "enqueue16"):
        for subject in SUBJECTS:
            name = f"{measure}/{subject}/100"
            if f.get(f"cpu/{name}") is not None:
                print(f"  {measure:10} {SUBJECTS[subject][0]:28} {number(f.get(f'cpu/{name}')):>7}"
                      f" {number(f.get(f'cpu-client/{name}')):>7}")
    print_family(f, "memory-depth", "MiB resident, so many waiting")
    print(f"\n{'idle':24}{'% of a core':>13}{'wake-ups/s':>12}{'MiB':>8}"
          f"{'MiB after 100 B':>18}{'16 KiB':>8}")
    for name in ("spoolfs", "spoolfs-no-deadline", "null", "redis", "beanstalk"):
        print(f"  {name:22}" + "".join(f"{number(f.get(key)):>{width}}" for key, width in (
            (f"idle-cpu-percent/{name}", 13), (f"idle-wakeups-per-s/{name}", 12),
            (f"memory/idle-{name}", 8), (f"memory/{name}/100", 18),
            (f"memory/{name}/16384", 8))))


def print_targets(found):
    print(f"\n{'target':54}{'wanted':>9}{'found':>9}{'':20}of the best rounds")
    for t in found:
        verdict = "not measured" if t["met"] is None else "met" if t["met"] else "MISSED"
        bests = "" if t["of_bests"] is None else number(t["of_bests"])
        print(f"  {t['target']} {t['text']:50}{t['wanted']:>9}{number(t['found']):>9}"
              f" {t['unit']:4}{verdict:15}{bests}".rstrip())


# ---- JSON -----------------------------------------------------------------------

def version_of(*argv):
    try:
        p = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError:
        return None
    text = (p.stdout or p.stderr).strip()
    return text.splitlines()[0] if text else None


def circumstances(bed):
    filesystem = version_of("stat", "-f", "-c", "%T", bed.disk)
    return {
        "date": time.strftime("%FT%TZ", time.gmtime()),
        "kernel": platform.release(),
        "cpus": os.cpu_count(),
        "filesystem": filesystem,
        "pinned_to_cpu": bed.cpu,
        "versions": {
            "spoolfs": version_of(os.path.join(bed.build, "spoolfs"), "-V"),
            "redis": version_of("redis-server", "--version"),
            "beanstalkd": version_of("beanstalkd", "-v"),
        },
    }


def write_json(path, bed, f, found, extra):
    whole = {
        **circumstances(bed),
        **extra,
        "unit": "microseconds per message, where the name says nothing else",
        "targets": found,
        "figures": {name: {"median": f.get(name), "rounds": values,
                           "commands": bed.commands.get(name, [])}
                    for name, values in sorted(f.rounds.items())},
    }
    with open(path, "w", encoding="utf-8") as out:
        json.dump(whole, out, indent=1)
        out.write("\n")
