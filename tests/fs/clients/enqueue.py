#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""enqueue.py DB N [SIZE]: N messages, called m1, m2, ... with "m1\\n", ... as
their bodies (made SIZE bytes long by x), straight into the queue file: for tests
that have no mount. The file must have been made by spoolfs."""

import sqlite3
import sys
import time

db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)
n = int(sys.argv[2])
size = int(sys.argv[3]) if len(sys.argv) > 3 else 0
db.execute("BEGIN IMMEDIATE")
last_id, last_us = db.execute("SELECT last_id, last_us FROM state").fetchone()
now_us = max(last_us, int(time.time() * 1e6))
for i in range(1, n + 1):
    body = b"m%d\n" % i
    body = body.ljust(size, b"x")
    db.execute("INSERT INTO body VALUES(?, ?)", (last_id + i, body))
    db.execute(
        "INSERT INTO message(id, enqueued_us, size, given) VALUES(?, ?, ?, ?)",
        (last_id + i, now_us + i, len(body), "m%d" % i),
    )
db.execute(
    "UPDATE state SET last_id = ?, last_us = ?, waiting = waiting + ?",
    (last_id + n, now_us + n, n),
)
db.execute("COMMIT")
