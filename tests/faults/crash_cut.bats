#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Power cuts: what a disk may hold then, made from a record of all that was written
# and synced, while two mounts work on one queue.

load crash

setup_file() { build_preload record; }

# man: durable-close, at-least-once
@test "whatever a power cut leaves, the queue is whole and has what was closed" {
	crash cut "${ROUNDS:-20}"
}

@test "a disk that ignores syncs is found out" {
	CUT_MESSAGES=20 not crash cut 5 1 --no-sync
	grep -q 'lost:' "$BASE/counts"
}
