#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# bats file_tags=azure:slow
# Three mounts on one queue, as on three machines: each has its own state.
# SPOOLFS_SHARE_COUNT says how many messages (3000).
# shellcheck disable=SC2016,SC2030,SC2031

export SPOOL_BACKEND=azure
load helpers

export BATS_TEST_TIMEOUT=${BATS_TEST_TIMEOUT:-300}
setup_file() { build_clients fill; }

# consumer NAME: on that mount, one message after the other. What it has read is in
# got.NAME, what it has removed since in done.NAME.
consumer() {
	bg bash -c 'm=$BASE/$1
		while f=$(cat "$m/.next") && [ -n "$f" ]; do
			cat "$m/$f" >> "$BASE/got.$1" || continue
			rm "$m/$f" && echo "$f" >> "$BASE/done.$1"
		done' _ "$1" 2> "$BASE/said.$1"
}

read_by() { cat "$@" 2> /dev/null | sort; }
all_read() { [ "$(read_by "$BASE"/got.* | uniq | wc -l)" -ge "$COUNT" ]; }

# Depth as the service counts it: nothing is left, invisible messages included.
drained() { [ "$(sdk count "$QUEUE")" = 0 ]; }

@test "a worker is killed with its daemon half-way: every message is handled" {
	COUNT=${SPOOLFS_SHARE_COUNT:-3000}
	options=visibility=10s,window=32
	for mount in a b c; do
		: > "$BASE/got.$mount"
		spool_mount -n "$mount" "$options"
	done
	# The third only writes, and then lists what it gets.
	"$CLIENTS/fill" "$BASE/c" m "$COUNT"
	consumer a
	consumer b
	worker_b=$BG
	wait_until 120 at_least $((COUNT / 2)) bash -c 'cat "$BASE"/got.? | wc -l'
	held=$(entries "$BASE/b/.inflight")
	kill -STOP "$worker_b"
	spool_kill "$BASE/b"
	end_tree "$worker_b"
	# Whatever the idle one holds, it holds for no longer than a lease.
	wait_until 120 all_read
	wait_until 60 drained
	read_by "$BASE"/got.* | uniq | diff - <(seq -f 'm-%06g' "$COUNT")
	# Twice only what was in flight at the kill: read and not removed, or removed
	# and not confirmed.
	twice=$(read_by "$BASE"/got.* | uniq -d | wc -l)
	echo "# $twice of $COUNT were read twice, $held claimed at the kill" >&3
	[ "$twice" -le 64 ]
	[ "$(wc -l < "$BASE/got.a")" -gt $((COUNT / 10)) ]
}

# One is let go after four leases; that it is gone then tells that others consume.
@test "a newcomer gets what an idle mount holds, all of it, in a few leases" {
	spool_mount -n c visibility=2s
	"$CLIENTS/fill" "$BASE/c" m 20
	wait_until 20 is 20 entries "$BASE/c"
	start=$(now_ms)
	COUNT=20
	spool_mount -n a visibility=2s
	consumer a
	wait_until 40 all_read
	wait_until 30 drained
	took=$(($(now_ms) - start))
	echo "# it took $took ms" >&3
	[ "$took" -le 24000 ]
}

@test "what nobody reads burns no dequeue counts for long" {
	spool_mount visibility=2s
	"$CLIENTS/fill" "$Q" m 5
	wait_listed 5
	end=$(($(now_ms) + 12000))
	wait_until 20 clock_is "$end"
	spool_umount
	counts=$(sdk peek "$QUEUE" | jq -s 'map(.dequeueCount) | max')
	echo "# dequeue count after six leases: $counts" >&3
	[ "$counts" -le 3 ]
}
