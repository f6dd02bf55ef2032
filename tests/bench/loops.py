# SPDX-License-Identifier: MIT
"""What a script calls: loops in sh, a program for each step as usual.

Each prints how many messages it handled, which is compared. Nothing is pinned.
The programs of a loop start anew for each message, which is most of its time.
"""

import os

from bed import Failed, need
from peers import beanstalkd, redis, redis_cli
from spool import LEAST

# List, read, delete: the loop of the manual.
EAT = ('n=0; for f in "$Q"/*; do cat "$f" >/dev/null && rm "$f" && n=$((n + 1)); done; '
       "echo $n")
PUT = 'n=0; while [ $n -lt $N ]; do printf %s "$BODY" >"$Q/$n" && n=$((n + 1)); done; echo $n'

# Claimed by LMOVE, deleted by LREM: nothing is lost with the script, as above.
REDIS_EAT = ('n=0; while m=$(redis-cli -s $S LMOVE q busy RIGHT LEFT) && [ -n "$m" ]; do '
             'redis-cli -s $S LREM busy 1 "$m" >/dev/null && n=$((n + 1)); done; echo $n')
# One call, but a message is lost with the script.
REDIS_POP = ('n=0; while m=$(redis-cli -s $S RPOP q) && [ -n "$m" ]; do '
             "n=$((n + 1)); done; echo $n")
REDIS_PUT = ('n=0; while [ $n -lt $N ]; do redis-cli -s $S LPUSH q "$BODY" >/dev/null && '
             "n=$((n + 1)); done; echo $n")

# A reservation ends with its connection, so a script looks and then deletes: only
# one script at a time can do so.
NC_EAT = (r"n=0; while m=$(printf 'peek-ready\r\nquit\r\n' | nc -U $S); "
          'i=${m#FOUND }; [ "$i" != "$m" ]; do '
          r'''printf "delete ${i%% *}\r\nquit\r\n" | nc -U $S >/dev/null && n=$((n + 1)); done; '''
          "echo $n")
NC_PUT = (r"n=0; while [ $n -lt $N ]; do printf 'put 0 0 60 %d\r\n%s\r\nquit\r\n' ${#BODY} "
          '"$BODY" | nc -U $S >/dev/null && n=$((n + 1)); done; echo $n')

# cur/ is where a reader of a Maildir keeps what it has taken.
MAILDIR_EAT = ('cd "$Q" && n=0; for f in new/*; do g=cur/${f#new/}:2,; mv "$f" "$g" && '
               'cat "$g" >/dev/null && rm "$g" && n=$((n + 1)); done; echo $n')
MAILDIR_PUT = ('cd "$Q" && n=0; while [ $n -lt $N ]; do f=$n.$$.host; '
               'printf %s "$BODY" >tmp/$f && mv tmp/$f new/$f && n=$((n + 1)); done; echo $n')
MAILDIR_PUT_SYNC = MAILDIR_PUT.replace("&& mv", "&& sync -d tmp/$f && mv").replace(
    "new/$f && n", "new/$f && sync new && n")

# nq runs what it queues: the job prints the message into its log.
NQ_PUT = ('n=0; while [ $n -lt $N ]; do NQDIR="$Q" nq -q printf %s "$BODY" && '
          "n=$((n + 1)); done; echo $n")
NQ_WAIT = 'NQDIR="$Q" nq -w; echo $N'
RUN = '"$SPOOLFS" run --drain "$DB" -- cat | wc -c | { read -r c && echo $((c / SIZE)); }'


def loop(bed, name, script, n, **env):
    bed.record(name, bed.shell(script, n, {"N": n, **env}))


def body(size):
    return "x" * size


def spoolfs(bed, plan, size):
    """Durability: as a program's (spool.py). Default options: it is announced."""
    with bed.directory() as home, \
            bed.queue(os.path.join(home, "queue.db"), pinned=False) as mount:
        loop(bed, f"loop-put/spoolfs/{size}", PUT, plan.loops, Q=mount.path, BODY=body(size))
        mount.await_listed(min(LEAST, plan.loops))
        loop(bed, f"loop/spoolfs/{size}", EAT, plan.loops, Q=mount.path)
        mount.await_control("depth", 0)


def tmpfs(bed, plan, size):
    """Durability: none."""
    with bed.directory(bed.ram) as path:
        loop(bed, f"loop-put/tmpfs/{size}", PUT, plan.loops, Q=path, BODY=body(size))
        loop(bed, f"loop/tmpfs/{size}", EAT, plan.loops, Q=path)


def with_redis(bed, plan, size):
    """Durability: appendfsync always."""
    need("redis-cli")
    with redis(bed) as server:
        for script, name in ((REDIS_EAT, "redis-cli"), (REDIS_POP, "redis-cli-rpop")):
            loop(bed, f"loop-put/redis-cli-lpush/{size}", REDIS_PUT, plan.loops,
                 S=server.sock, BODY=body(size))
            loop(bed, f"loop/{name}/{size}", script, plan.loops, S=server.sock)
        if redis_cli(server.sock, "EXISTS", "q", "busy") != "0":
            raise Failed("redis is not empty")


def with_beanstalk(bed, plan, size):
    """Durability: -f 0."""
    need("nc")
    with beanstalkd(bed) as server:
        loop(bed, f"loop-put/beanstalk-nc/{size}", NC_PUT, plan.loops,
             S=server.sock, BODY=body(size))
        loop(bed, f"loop/beanstalk-nc/{size}", NC_EAT, plan.loops, S=server.sock)


def maildir(bed, plan, size):
    """Durability: none; maildir-sync adds sync(1) of the file and the directory."""
    with bed.directory() as path:
        for sub in ("tmp", "new", "cur"):
            os.mkdir(os.path.join(path, sub))
        loop(bed, f"loop-put/maildir/{size}", MAILDIR_PUT, plan.loops, Q=path, BODY=body(size))
        loop(bed, f"loop/maildir/{size}", MAILDIR_EAT, plan.loops, Q=path)
        loop(bed, f"loop-put/maildir-sync/{size}", MAILDIR_PUT_SYNC, plan.loops // 2,
             Q=path, BODY=body(size))


def nq(bed, plan, size):
    """A queue of commands, run one by one as they come. Durability: none. Each job
    looks at all before it, so few are queued."""
    need("nq")
    n = plan.loops // 2
    with bed.directory() as path:
        put = bed.shell(NQ_PUT, n, {"N": n, "Q": path, "BODY": body(size)})
        bed.record(f"loop-put/nq/{size}", put)
        waited = bed.shell(NQ_WAIT, n, {"N": n, "Q": path})
        bed.record(f"run/nq/{size}", put + waited)
        logs = [os.path.join(path, name) for name in os.listdir(path)]
        if len(logs) != n or any(size > os.path.getsize(log) for log in logs):
            raise Failed("nq has not run all of its jobs")


def spoolfs_run(bed, plan, size):
    """The same by spoolfs: written through a mount, then a program for each."""
    n = plan.loops // 2
    with bed.directory() as home:
        db = os.path.join(home, "queue.db")
        with bed.queue(db, "role=out,announce=off", pinned=False) as out:
            put = bed.shell(PUT, n, {"N": n, "Q": out.path, "BODY": body(size)})
        ran = bed.shell(RUN, n, {"N": n, "DB": db, "SPOOLFS": os.path.join(bed.build, "spoolfs"),
                                 "SIZE": size})
        bed.record(f"run/spoolfs-run/{size}", put + ran)
