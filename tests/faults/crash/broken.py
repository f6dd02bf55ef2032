# SPDX-License-Identifier: MIT
"""broken.py ROUNDS: sessions in which a tenth of all calls is interrupted, or short.

Nobody may notice: every call of the clients succeeds.
"""

import os
import re
import sys

import bed
import session

PERCENT = os.environ.get("BROKEN_PERCENT", "10")


def serve(b):
    env = {
        "LD_PRELOAD": os.path.join(bed.PRELOAD, "broken.so"),
        "BROKEN_PERCENT": PERCENT,
        "BROKEN_SAID": b.dir + "/said",
    }
    m = b.mount(env=env)
    if not m.ready():
        raise bed.Wrong("no mount")
    lines, in_time = bed.client(m, session.play(m.path))
    account = session.Account(lines)
    if not in_time or m.ended():
        raise bed.Wrong(f"the client hangs or lost its daemon after: {lines[-1:]}")
    if account.trouble or account.refused:
        raise bed.Wrong(f"{account.trouble} {account.refused}")
    for want in ("listed 5", "ok sync -", "ok next .next"):
        if want not in lines:
            raise bed.Wrong(f"not said: {want}")
    if m.umount():
        raise bed.Wrong(f"its exit status is {m.process.returncode}")
    b.complaints()
    if "down" in b.said() or "error" in b.said():
        raise bed.Wrong("the log tells of trouble")
    account.settle(bed.look(b.db))


def main():
    rounds, wrong, total = int(sys.argv[1]), 0, {}
    for i in range(rounds):
        with bed.Bed() as b:
            try:
                serve(b)
            except bed.Wrong as e:
                wrong += 1
                print(f"round {i}: {e}\n  log: {b.said()[-600:]!r}", flush=True)
            with open(b.dir + "/said", "a+", encoding="utf-8") as f:
                f.seek(0)
                for what, n in re.findall(r"^(\w+) (\d+)$", f.read(), re.M):
                    total[what] = total.get(what, 0) + int(n)
    counts = ", ".join(f"{n} {what}" for what, n in sorted(total.items()))
    print(f"{rounds} sessions: {counts}, {wrong} wrong")
    return 1 if wrong or not total else 0


if __name__ == "__main__":
    sys.exit(main())
