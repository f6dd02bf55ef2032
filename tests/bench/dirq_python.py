# SPDX-License-Identifier: MIT
"""dirq_python.py enqueue|consume DIR N SIZE: the packaged dirq itself, as it is used.

Durability: none, and no setting for it: files are written, linked and unlinked
without a sync.
"""

import sys
import time

from dirq.QueueSimple import QueueSimple


def enqueue(queue, n, size):
    body = b"x" * size
    for _ in range(n):
        queue.add(body)


def consume(queue, n, size):
    done = 0
    for name in queue:
        if not queue.lock(name):
            continue
        if len(queue.get(name)) != size:
            sys.exit(f"{name} is not of {size} bytes")
        queue.remove(name)
        done += 1
        if done == n:
            break
    if done != n:
        sys.exit(f"{done} elements, not {n}")


def main(mode, path, n, size):
    queue = QueueSimple(path)
    start = time.perf_counter()
    {"enqueue": enqueue, "consume": consume}[mode](queue, n, size)
    print(mode, f"{(time.perf_counter() - start) * 1e6 / n:.2f}")


main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
