# SPDX-License-Identifier: MIT
"""Where a measurement runs: directories, mounts, servers, clients, what they cost.

Clients and the loop they talk to share one CPU: waking an idle one costs more
than a call does, above all in a virtual machine, and whether that happens is
chance. That holds for spoolfs, nullfs and every server alike; their other
threads run where there is room. Latencies, consumers by number and shell loops
are taken without it, as a user would see them.

Nothing here is ended but by the pid of what was started here.
"""

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time

PATIENCE_S = 60     # for a state


class Failed(Exception):
    """A measurement that did not work: a sentence for people."""


class Absent(Exception):
    """A peer that is not installed, or that the system refuses."""


def until(what, is_so, patience_s=PATIENCE_S):
    end = time.monotonic() + patience_s
    while not is_so():
        if time.monotonic() > end:
            raise Failed(f"timeout: {what}")
        time.sleep(0.005)


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            raise Absent(f"{program} is not installed")


def read_file(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


class Process:
    """A process of ours and its children, as /proc shows them."""

    def __init__(self, popen):
        self.popen = popen
        self.pid = popen.pid

    def family(self):
        pids = [self.pid]
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            with contextlib.suppress(OSError):
                stat = read_file(f"/proc/{entry}/stat")
                if int(stat[stat.rindex(")") + 2:].split()[1]) == self.pid:
                    pids.append(int(entry))
        return pids

    def _tasks(self, name):
        for pid in self.family():
            with contextlib.suppress(OSError):
                for task in os.listdir(f"/proc/{pid}/task"):
                    yield read_file(f"/proc/{pid}/task/{task}/{name}")

    def cpu_ns(self):
        return sum(int(text.split()[0]) for text in self._tasks("schedstat"))

    def wakeups(self):
        found = (re.search(r"^voluntary_ctxt_switches:\s*(\d+)", text, re.M)
                 for text in self._tasks("status"))
        return sum(int(m.group(1)) for m in found if m)

    def resident_kib(self):
        total = 0
        for pid in self.family():
            m = re.search(r"^VmRSS:\s*(\d+)", read_file(f"/proc/{pid}/status"), re.M)
            total += int(m.group(1)) if m else 0
        return total


class Mount(Process):
    def __init__(self, popen, path, log):
        super().__init__(popen)
        self.path = path
        self.log = log

    def control(self, key):
        m = re.search(rf"^{key}=(.*)$", read_file(f"{self.path}/.control"), re.M)
        if m is None:
            raise Failed(f"no {key} in .control")
        return m.group(1)

    def await_ready(self, at_least):
        until(f"{at_least} messages ready, not {self.control('ready')}",
              lambda: int(self.control("ready")) >= at_least)

    def await_listed(self, at_least):
        """Where messages are announced: they are ready before they are listed."""
        until(f"{at_least} messages listed",
              lambda: len(os.listdir(self.path)) >= at_least)

    def await_control(self, key, value):
        until(f"{key}={value}, not {self.control(key)}",
              lambda: self.control(key) == str(value))


class Bed:
    def __init__(self, build, out, cpu, client_s):
        self.build = build
        self.cpu = cpu
        self.client_s = client_s    # for one client
        self.clients = os.path.join(build, "tests/bench")
        self.here = os.path.dirname(os.path.abspath(__file__))
        # The disk that is measured is the one that has the build directory.
        self.disk = tempfile.mkdtemp(prefix="work.", dir=out)
        self.ram = tempfile.mkdtemp(prefix="spoolfs-bench.", dir="/dev/shm")
        # The path of a socket is short.
        self.socks = tempfile.mkdtemp(prefix="spoolfs-bench.")
        self.figures = {}
        self.commands = {}
        self.said = []      # commands since the last figure
        self.count = 0

    def destroy(self):
        for path in (self.disk, self.ram, self.socks):
            shutil.rmtree(path, ignore_errors=True)

    # ---- directories ----------------------------------------------------------

    def fresh(self, base=None):
        self.count += 1
        path = os.path.join(base or self.disk, f"d{self.count}")
        os.mkdir(path)
        return path

    @contextlib.contextmanager
    def directory(self, base=None):
        path = self.fresh(base)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    # ---- figures --------------------------------------------------------------

    def say(self, text):
        for path, name in ((self.disk, "$DISK"), (self.ram, "$RAM"),
                           (self.socks, "$SOCKS"), (self.build, "$BUILD"),
                           (self.here, "$BENCH")):
            text = text.replace(path, name)
        self.said.append(text)

    def record(self, name, value):
        """One more figure of NAME, taken by what was said since the last."""
        self.figures.setdefault(name, []).append(float(value))
        self.commands.setdefault(name, list(self.said))

    def done(self):
        self.said = []

    # ---- clients --------------------------------------------------------------

    def run(self, argv, pinned=True, env=None):
        """What it prints; its CPU time goes to client_cpu_ns."""
        if pinned and self.cpu is not None:
            argv = ["taskset", "-c", str(self.cpu), *argv]
        self.say(" ".join(argv))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            p = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               stdin=subprocess.DEVNULL, text=True, timeout=self.client_s,
                               check=False, env={**os.environ, "LC_ALL": "C", **(env or {})})
        except subprocess.TimeoutExpired:
            raise Failed(f"{argv[:4]} takes over {self.client_s} s") from None
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.client_cpu_ns = 1e9 * (after.ru_utime + after.ru_stime
                                    - before.ru_utime - before.ru_stime)
        if p.returncode != 0:
            raise Failed(f"{' '.join(argv)[:200]}: {p.stderr.strip()[-300:]}")
        return p.stdout

    def client(self, program, *args, pinned=True):
        """The figures that a client of ours prints."""
        argv = [os.path.join(self.clients, program), *map(str, args)]
        return self._figures(self.run(argv, pinned))

    def script(self, name, *args, pinned=True):
        """The same of a client in Python, with Debian's modules."""
        argv = ["/usr/bin/python3", os.path.join(self.here, name), *map(str, args)]
        return self._figures(self.run(argv, pinned))

    @staticmethod
    def _figures(text):
        return {name: float(value) for name, value in
                (line.split() for line in text.splitlines())}

    def shell(self, script, count, env):
        """Microseconds per round of a loop, which says how many there were."""
        start = time.perf_counter()
        text = self.run(["sh", "-c", script], pinned=False,
                        env={key: str(value) for key, value in env.items()})
        took = time.perf_counter() - start
        self.said[-1] = "sh -c '" + script + "' with " + " ".join(
            f"{key}={value if len(str(value)) < 200 else '...'}" for key, value in env.items())
        self.say(self.said.pop())
        if text.strip() != str(count):
            raise Failed(f"a loop of {text.strip()!r}, not {count}: {script}")
        return took * 1e6 / count

    # ---- processes ------------------------------------------------------------

    def pin(self, process):
        """Its first thread, which is the loop."""
        if self.cpu is not None:
            self.say(f"taskset -p -c {self.cpu} PID")
            os.sched_setaffinity(process.pid, {self.cpu})

    def _spawn(self, argv, log):
        self.say(" ".join(argv) + " &")
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                env={**os.environ, "LC_ALL": "C"})

    @contextlib.contextmanager
    def server(self, argv, sock, ready=lambda: True):
        need(argv[0])
        with open(os.path.join(self.disk, "server.log"), "w", encoding="utf-8") as log:
            popen = self._spawn(argv, log)
        try:
            until(f"{argv[0]} answers",
                  lambda: popen.poll() is not None or os.path.exists(sock) and ready())
            if popen.poll() is not None:
                raise Failed(f"{argv[0]} has ended: {read_file(log.name)[-300:]}")
            process = Process(popen)
            self.pin(process)
            yield process
        finally:
            popen.send_signal(signal.SIGTERM)
            self._await_end(popen)
            with contextlib.suppress(OSError):
                os.unlink(sock)

    @contextlib.contextmanager
    def _mounted(self, argv, path, pinned):
        with open(os.path.join(self.disk, "mount.log"), "w", encoding="utf-8") as log:
            popen = self._spawn(argv, log)
        mount = Mount(popen, path, log.name)
        try:
            until(f"{argv[0]} mounts",
                  lambda: popen.poll() is not None or os.path.ismount(path))
            if popen.poll() is not None:
                raise Failed(f"{argv[0]} has ended: {read_file(log.name)[-300:]}")
            if pinned:
                self.pin(mount)
            yield mount
        except BaseException:
            self._unmount(mount, lazily=True)
            raise
        else:
            self._unmount(mount)
        finally:
            with contextlib.suppress(OSError):
                os.rmdir(path)

    def _unmount(self, mount, lazily=False):
        argv = ["fusermount3", "-u", *(["-z"] if lazily else []), mount.path]

        def unmounted():
            return subprocess.run(argv, stderr=subprocess.DEVNULL, check=False).returncode == 0 \
                or not os.path.ismount(mount.path)
        self.say(" ".join(argv))
        until(f"unmounting {mount.path}", unmounted)
        status = self._await_end(mount.popen)
        if status != 0 and not lazily:
            raise Failed(f"{mount.popen.args[0]} ended with {status}: "
                         f"{read_file(mount.log)[-300:]}")

    @staticmethod
    def _await_end(popen):
        try:
            return popen.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            popen.kill()
            return popen.wait()

    def queue(self, db, options="", pinned=True):
        """Mounts the embedded queue DB."""
        path = self.fresh()
        argv = [os.path.join(self.build, "spoolfs"), "-f",
                *(["-o", options] if options else []), db, path]
        return self._mounted(argv, path, pinned)

    def null(self, count, size):
        """Mounts what does nothing, with COUNT files of SIZE bytes."""
        path = self.fresh()
        argv = [os.path.join(self.clients, "nullfs"), str(count), str(size), path]
        return self._mounted(argv, path, pinned=True)
