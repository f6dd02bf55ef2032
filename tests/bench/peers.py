# SPDX-License-Identifier: MIT
"""What users of spoolfs would use instead, each with the durability it says.

Servers listen on a unix socket, keep their files on the disk that is measured,
and are spoken to by tests/bench/peer.c, so that no client library is measured.
"""

import contextlib
import os
import subprocess

from bed import Absent, Failed, need
from spool import record_cpu

# ---- servers --------------------------------------------------------------------

@contextlib.contextmanager
def redis(bed):
    """Durability: full. With appendfsync always every command that writes is on
    disk before its answer; nothing else is written (no snapshots)."""
    sock = os.path.join(bed.socks, "redis")
    with bed.directory() as home:
        argv = ["redis-server", "--port", "0", "--unixsocket", sock, "--dir", home,
                "--appendonly", "yes", "--appendfsync", "always", "--save", "",
                "--auto-aof-rewrite-percentage", "0"]
        with bed.server(argv, sock) as process:
            process.sock = sock
            yield process


@contextlib.contextmanager
def beanstalkd(bed):
    """Durability: full. With -f 0 every put and every delete is on disk before
    its answer; a reservation is not written."""
    sock = os.path.join(bed.socks, "beanstalk")
    with bed.directory() as home:
        argv = ["beanstalkd", "-b", home, "-f", "0", "-l", f"unix:{sock}", "-z", str(1 << 20)]
        with bed.server(argv, sock) as process:
            process.sock = sock
            yield process


def redis_cli(sock, *args):
    return subprocess.run(["redis-cli", "-s", sock, *args], capture_output=True,
                          text=True, check=True).stdout.strip()


def push(bed, server, kind, n, size, clients):
    before = server.cpu_ns()
    got = bed.client("peer", kind, server.sock, "push", n, size, clients)
    bed.record(f"enqueue{clients}/{kind}/{size}", got["push"])
    record_cpu(bed, f"enqueue{clients}/{kind}/{size}", server, n, before)


def pop(bed, server, kind, n, size, clients, subject=None):
    measure = f"consume{'' if clients == 1 else clients}/{subject or kind}/{size}"
    before = server.cpu_ns()
    got = bed.client("peer", kind, server.sock, "pop", n, size, clients)
    bed.record(measure, got["pop"])
    record_cpu(bed, measure, server, n, before)


def redis_speed(bed, plan, size):
    """RPOP loses its message with the consumer: the weaker promise, at half the
    price. redis-move keeps it in a second list until it is removed from there.
    redis-everysec has deletions written once a second, as spoolfs confirms them
    in batches; what was pushed was durable."""
    need("redis-cli")
    n, writes = plan.messages(size), plan.writes(size)
    with redis(bed) as server:
        push(bed, server, "redis", writes, size, 1)
        push(bed, server, "redis", n, size, 16)
        pop(bed, server, "redis", writes // 2, size, 1)
        pop(bed, server, "redis", writes // 4, size, 16)
        pop(bed, server, "redis-move", writes // 4, size, 1)
        redis_cli(server.sock, "CONFIG", "SET", "appendfsync", "everysec")
        bed.say("redis-cli -s $SOCKS/redis CONFIG SET appendfsync everysec")
        pop(bed, server, "redis", n // 2, size, 1, "redis-everysec")
        left = writes + n - writes // 2 - 2 * (writes // 4) - n // 2
        if redis_cli(server.sock, "LLEN", "q") != str(left):
            raise Failed("redis holds another number of messages than it should")
        bed.record(f"memory/redis/{size}", server.resident_kib() / 1024)


def beanstalk_speed(bed, plan, size):
    """What is taken comes back when the consumer dies before its delete."""
    writes = plan.writes(size)
    with beanstalkd(bed) as server:
        push(bed, server, "beanstalk", writes, size, 1)
        push(bed, server, "beanstalk", writes, size, 16)
        pop(bed, server, "beanstalk", writes, size, 1)
        pop(bed, server, "beanstalk", writes, size, 16)
        bed.record(f"memory/beanstalk/{size}", server.resident_kib() / 1024)


# ---- without a server -------------------------------------------------------------

def dirq(bed, plan, size):
    """dirq's calls in C. Durability: none, as dirq has it; dirq-sync adds what it
    would take: an fdatasync of the file and an fsync of the directory."""
    n, writes = plan.messages(size), plan.writes(size)
    with bed.directory() as path:
        for writers in (1, 16):
            got = bed.client("dirq", "enqueue", path, n // 2, size, writers)
            bed.record(f"enqueue{writers}/dirq/{size}", got["enqueue"])
        got = bed.client("dirq", "consume", path, n // 2 * 2, size)
        bed.record(f"consume/dirq/{size}", got["consume"])
    with bed.directory() as path:
        for writers, count in ((1, writes // 4), (16, writes)):
            got = bed.client("dirq", "enqueue-sync", path, count, size, writers)
            bed.record(f"enqueue{writers}/dirq-sync/{size}", got["enqueue"])


def dirq_python(bed, plan, size):
    """The packaged library itself. Durability: none."""
    if not os.path.isdir("/usr/lib/python3/dist-packages/dirq"):
        raise Absent("python3-dirq is not installed")
    n = plan.writes(size)
    with bed.directory() as path:
        for mode, measure in (("enqueue", "enqueue1"), ("consume", "consume")):
            got = bed.script("dirq_python.py", mode, path, n, size)
            bed.record(f"{measure}/dirq-python/{size}", got[mode])


def mqueue(bed, plan, size):
    """POSIX message queue. Durability: none, it is in memory."""
    n = plan.messages(size)
    for writers in (1, 16):
        try:
            got = bed.client("mqueue", n, size, writers)
        except Failed as e:
            raise Absent(f"{writers} writers: {str(e).split('bench: ')[-1]}") from None
        bed.record(f"enqueue{writers}/mqueue/{size}", got["push"])
        if writers == 1:
            bed.record(f"consume/mqueue/{size}", got["pop"])
