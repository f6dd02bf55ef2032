# SPDX-License-Identifier: MIT
"""load BUILD: one mount under more than anyone would ask of it, for as long as
SPOOLFS_SOAK_SECONDS says, in turns: stress-ng's filesystem stressors in the mount,
200 processes that open and list, random reads of big messages, names by the
thousand. Beside them somebody looks every 50 ms: nothing may stay unanswered for a
second. At the end every gauge is at zero, and no descriptor or memory is left.
"""

import argparse
import mmap
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

from bed import Bed, Trouble, until

STALL_S = 1.0
# Those that work on files of one directory. Some ask for what says EPERM, EFBIG or
# ENOENT here, and stop: they do no harm, and are counted as refused.
STRESSORS = (
    "access dentry dirdeep dup fcntl file-ioctl flock fpunch fstat getdent handle hdd"
    " inode-flags inotify iomix lease locka lockofd metamix open poll readahead rename"
    " seek sync-file touch unlink utime"
).split()
SMALL = ("--hdd-bytes", "1m", "--iomix-bytes", "1m", "--readahead-bytes", "1m",
         "--seek-size", "1m", "--sync-file-bytes", "1m")  # fmt: skip
GROWTH_KB = 8192


class Watchdog(threading.Thread):
    """Looks, one call after the other, and takes the time of each."""

    LOOKS = (
        lambda q: os.stat(q + "/.control"),
        lambda q: os.listdir(q),
        lambda q: open(q + "/.control", encoding="utf-8").read(),
    )

    def __init__(self, queue):
        super().__init__(daemon=True)
        self.queue, self.since, self.enough = queue, None, False
        self.worst, self.looks, self.lag = 0.0, 0, 0.0
        self.stalls = []

    def run(self):
        while not self.enough:
            before = time.monotonic()
            time.sleep(0.05)
            # How late this machine lets anyone run says how much is ours.
            self.lag = max(0.0, time.monotonic() - before - 0.05)
            for look in self.LOOKS:
                self.since = time.monotonic()
                look(self.queue)
                self.noted(time.monotonic() - self.since)
                self.since = None

    def noted(self, took):
        self.looks += 1
        self.worst = max(self.worst, took)
        if took > STALL_S + 2 * self.lag:
            self.stalls.append(f"{took:.2f} s (the machine itself was {self.lag:.2f} s late)")


def child(work):
    """Runs WORK in a process of its own, in a session of its own."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        work()
    except OSError:
        pass
    finally:
        os._exit(0)


def wait_all(pids, bound_s):
    end = time.monotonic() + bound_s
    for pid in pids:
        while os.waitpid(pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > end:
                for left in pids:
                    try:
                        os.kill(left, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                raise Trouble(f"a client does not end within {bound_s} s")
            time.sleep(0.005)


class Load:
    def __init__(self, build, seconds):
        self.seconds = seconds
        self.flat = os.path.join(os.path.abspath(build), "soak/flat.so")
        options = {"retry_delay": "0", "max_attempts": 1000, "visibility": "30s"}
        self.bed = Bed(build, options)
        self.mount = self.bed.mounts[0]
        self.queue = self.mount.path
        self.counts = {"names": 0, "opens": 0, "reads": 0, "stressors": 0, "refused": 0}
        self.missing = not shutil.which("stress-ng")

    # ---- turns -----------------------------------------------------------

    def stress(self, name, seconds):
        """What it finds refused is its own affair; that it ends is ours."""
        command = ["stress-ng", f"--{name}", "2", "--temp-path", self.queue, "-t", f"{seconds}s",
                   "--quiet", "--oom-avoid", *SMALL]  # fmt: skip
        env = {**os.environ, "LD_PRELOAD": self.flat}
        with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, start_new_session=True) as process:  # fmt: skip
            try:
                status = process.wait(seconds + 60)
            except subprocess.TimeoutExpired as e:
                os.killpg(process.pid, signal.SIGKILL)
                raise Trouble(f"stress-ng --{name} does not end") from e
        self.counts["stressors"] += 1
        self.counts["refused"] += status != 0

    def put(self, name, body):
        with open(os.path.join(self.queue, name), "wb") as f:
            f.write(body)

    def crowd(self, seconds):
        """200 that open and list the same messages at once; one at most gets each."""
        for i in range(50):
            self.put(f"c{i}", b"x" * 100)
        self.counts["names"] += 50
        end = time.monotonic() + seconds

        def work():
            while time.monotonic() < end:
                for name in os.listdir(self.queue):
                    try:
                        with open(os.path.join(self.queue, name), "rb") as f:
                            os.fstat(f.fileno())
                    except OSError:
                        pass

        wait_all([child(work) for _ in range(200)], seconds + 60)
        self.counts["opens"] += 200
        self.take_all()

    def random_reads(self, seconds):
        """As fsx does, but reading: pread, mmap and seeks of two big messages."""
        bodies = [random.Random(i).randbytes(3_000_000 + i) for i in range(2)]
        for i, body in enumerate(bodies):
            self.put(f"big{i}", body)
        self.counts["names"] += 2
        until("big messages", lambda: sum("-big" in n for n in os.listdir(self.queue)) == 2)
        end = time.monotonic() + seconds
        for name in sorted(n for n in os.listdir(self.queue) if "-big" in n):
            body = bodies[int(name[-1])]
            with open(os.path.join(self.queue, name), "rb") as f:
                with mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as mapped:
                    self.read_at_random(f.fileno(), mapped, body, end)
        self.take_all()

    def read_at_random(self, fd, mapped, body, end):
        lot = random.Random(len(body))
        for _ in range(5000):
            at, n = lot.randrange(len(body)), lot.choice([1, 100, 4096, 70000])
            got = os.pread(fd, n, at) if lot.random() < 0.5 else mapped[at : at + n]
            if got != body[at : at + n]:
                raise Trouble(f"{n} bytes at {at} are not those that were written")
            self.counts["reads"] += 1
            if time.monotonic() > end:
                return

    def names(self, seconds):
        """Eight writers, four that take them away."""
        end = time.monotonic() + seconds

        def write(number):
            i = 0
            while time.monotonic() < end:
                self.put(f"n{number}.{i}", b"n" * 50)
                i += 1

        writers = [child(lambda w=w: write(w)) for w in range(8)]
        takers = [child(lambda: self.take(end)) for _ in range(4)]
        wait_all(writers + takers, seconds + 60)
        self.counts["names"] = int(self.control()["sent_total"])
        self.take_all()

    # ---- taking ----------------------------------------------------------

    def take(self, end):
        while time.monotonic() < end:
            for name in sorted(os.listdir(self.queue)):
                path = os.path.join(self.queue, name)
                try:
                    with open(path, "rb") as f:
                        f.read()
                    os.unlink(path)
                except OSError:
                    pass

    def control(self):
        with open(self.queue + "/.control", encoding="utf-8") as f:
            return dict(line.rstrip("\n").split("=", 1) for line in f)

    def gauges(self):
        got = self.control()
        return {k: got[k] for k in ("ready", "in_flight", "outbox", "drafts", "dead", "depth")}

    def take_all(self):
        def nothing_left():
            self.take_once()
            return all(v in ("0", "") for v in self.gauges().values())

        try:
            until("an empty queue", nothing_left, 120)
        except Trouble as e:
            raise Trouble(f"{e}: {self.gauges()}") from e

    def take_once(self):
        self.take(time.monotonic() + 0.01)
        for directory in (".dead", ".drafts"):
            for name in os.listdir(f"{self.queue}/{directory}"):
                try:
                    os.unlink(f"{self.queue}/{directory}/{name}")
                except OSError:
                    pass

    # ---- the whole -------------------------------------------------------

    def turns(self):
        yield lambda s: self.names(s)
        yield lambda s: self.crowd(s)
        for name in STRESSORS:
            yield lambda s, n=name: (self.stress(n, max(1, int(s))), self.take_all())

    def once(self, each):
        self.random_reads(each)
        for turn in self.turns():
            turn(each)
            if time.monotonic() > self.end:
                return

    def run(self):
        self.mount.mount()
        dog = Watchdog(self.queue)
        dog.start()
        try:
            fds = self.mount.descriptors()
            # What is allocated for good is, after the first of everything.
            self.end = time.monotonic() + self.seconds
            self.once(1)
            kb = self.mount.memory_kb()
            while time.monotonic() < self.end:
                self.once(min(20, max(1, self.seconds / 80)))
            self.take_all()
            dog.enough = True
            dog.join(10)
            self.at_the_end(dog, kb, fds)
        except BaseException:
            dog.enough = True
            print(self.bed.log(), file=sys.stderr)
            raise
        finally:
            self.bed.close()

    def at_the_end(self, dog, kb, fds):
        until("descriptors back", lambda: self.mount.descriptors() <= fds)
        now = self.mount.memory_kb()
        counts = " ".join(f"{k} {v}" for k, v in self.counts.items())
        print(f"soak: load: {counts} looks {dog.looks} worst_ms {dog.worst * 1000:.0f}"
              f" stalls {len(dog.stalls)} memory_kb {kb} -> {now} descriptors {fds} -> {self.mount.descriptors()}")
        if dog.stalls:
            raise Trouble("unanswered for " + ", ".join(dog.stalls[:5]))
        if now > kb + GROWTH_KB:
            raise Trouble(f"memory grew from {kb} to {now} kB")
        if self.bed.complaints():
            raise Trouble(self.bed.complaints())
        self.mount.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    load = Load(parser.parse_args().build, float(os.environ.get("SPOOLFS_SOAK_SECONDS", "180")))
    if load.missing:
        print("soak: stress-ng is missing; scripts/bootstrap soak installs it", file=sys.stderr)
        return 1
    try:
        load.run()
    except Trouble as e:
        print(f"soak: load: {e}", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
