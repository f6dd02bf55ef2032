# SPDX-License-Identifier: MIT
"""Where a sequence runs: the mounts of one queue, and Azurite.

Nothing here looks into a mount: an agent does, whose answer is bounded in time.
Nothing is ended but by the pid of what was started here.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

PATIENCE_S = 20
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Trouble(Exception):
    """What must not happen, whatever the sequence."""


def until(what, is_so, patience_s=PATIENCE_S):
    end = time.monotonic() + patience_s
    while not is_so():
        if time.monotonic() > end:
            raise Trouble(f"waited {patience_s} s in vain: {what}")
        time.sleep(0.005)


class Azurite:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="soak-azurite.")
        self.out = open(os.path.join(self.dir, "out"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [os.path.join(ROOT, "scripts/azurite")],
            stdin=subprocess.DEVNULL,
            stdout=self.out,
            stderr=self.out,
            start_new_session=True,
        )
        until("Azurite listens", lambda: self._url() or self.process.poll() is not None)
        self.source = f"azure-queue+{self._url()}/devstoreaccount1"
        os.environ["AZURE_STORAGE_CONNECTION_STRING"] = "UseDevelopmentStorage=true"

    def _url(self):
        with open(self.out.name, encoding="utf-8") as f:
            found = re.search(r"listens on (\S+?)\. In", f.read())
        return found and found.group(1)

    def stop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


def option_list(options):
    return ",".join(k if v is None else f"{k}={v}" for k, v in options.items())


class Mount:
    def __init__(self, bed, number):
        self.bed = bed
        self.path = os.path.join(bed.dir, f"q{number}")
        self.log = os.path.join(bed.dir, f"q{number}.log")
        self.daemon = None
        os.mkdir(self.path)

    def command(self):
        options = dict(self.bed.options)
        if self.bed.azure:
            options["state"] = os.path.join(self.bed.dir, "state")
        return ["-f", "-o", option_list(options), self.bed.source, self.path]

    def times_ready(self):
        """How often it said so: what it finds then is all there is."""
        if not os.path.exists(self.log):
            return 0
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read().count("info main: mounted ")

    def mount(self):
        before = self.times_ready()
        with open(self.log, "a", encoding="utf-8") as log:
            self.daemon = subprocess.Popen(
                [os.path.join(self.bed.build, "spoolfs"), *self.command()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until("the mount", lambda: self.times_ready() > before or self.daemon.poll() is not None)
        if self.daemon.poll() is not None:
            raise Trouble(f"the daemon ended with {self.daemon.returncode} as it started")

    def mounted(self):
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            return f" {self.path} " in f.read()

    def kill(self):
        if self.daemon.poll() is not None:
            raise Trouble(f"the daemon had ended with {self.daemon.returncode}")
        self.daemon.kill()
        self.daemon.wait()
        self.daemon = None
        if not self.mounted():
            return
        subprocess.run(["fusermount3", "-u", "-z", self.path], check=True)

    def stop(self):
        """SIGTERM ends it even if someone stands in it."""
        self.daemon.terminate()
        try:
            status = self.daemon.wait(PATIENCE_S)
        except subprocess.TimeoutExpired as e:
            raise Trouble("the daemon does not end at SIGTERM") from e
        self.daemon = None
        if status != 0:
            raise Trouble(f"the daemon ended with {status}")
        until("the unmount", lambda: not self.mounted())

    def descriptors(self):
        """Those that it has always, and those of processes that are gone: a pidfd
        of one that lives is no leak."""
        proc = f"/proc/{self.daemon.pid}"
        always = stale = 0
        for fd in os.listdir(f"{proc}/fd"):
            try:
                if "pidfd" not in os.readlink(f"{proc}/fd/{fd}"):
                    always += 1
                    continue
                with open(f"{proc}/fdinfo/{fd}", encoding="utf-8") as f:
                    stale += re.search(r"Pid:\s+-1", f.read()) is not None
            except FileNotFoundError:
                pass
        return always + stale

    def open_files(self):
        proc = f"/proc/{self.daemon.pid}/fd"
        return "\n".join(sorted(os.readlink(f"{proc}/{fd}") for fd in os.listdir(proc)))

    def memory_kb(self):
        with open(f"/proc/{self.daemon.pid}/status", encoding="utf-8") as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))

    def children(self):
        with open(
            f"/proc/{self.daemon.pid}/task/{self.daemon.pid}/children", encoding="utf-8"
        ) as f:
            return f.read().split()

    def cleanup(self):
        if self.daemon and self.daemon.poll() is None:
            self.daemon.send_signal(signal.SIGKILL)
            self.daemon.wait()
        if self.mounted():
            subprocess.run(["fusermount3", "-u", "-z", self.path], check=False)


class Bed:
    def __init__(self, build, options, azurite=None):
        self.build = os.path.abspath(build)
        self.options = dict(options)
        self.azure = azurite is not None
        self.dir = tempfile.mkdtemp(prefix="soak.")
        if azurite:
            queue = re.sub("[^a-z0-9]", "x", os.path.basename(self.dir).lower())
            self.source = f"{azurite.source}/{queue}"
            self.options.update(poll_floor="50ms", poll_ceiling="100ms", encoding="base64")
        else:
            self.source = os.path.join(self.dir, "q.db")
        self.mounts = [Mount(self, 0), Mount(self, 1)]

    def log(self, lines=15):
        out = []
        for mount in self.mounts:
            if os.path.exists(mount.log):
                with open(mount.log, encoding="utf-8", errors="replace") as f:
                    out += f.readlines()[-lines:]
        return "".join(out)

    def complaints(self):
        pattern = r"Sanitizer|runtime error:|Assertion|stack smashing|fuse: bad"
        found = re.search(pattern, self.log(100000))
        return found and found.group(0)

    def close(self):
        for mount in self.mounts:
            mount.cleanup()
        shutil.rmtree(self.dir, ignore_errors=True)
