#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# .next: each open gives one name.
# shellcheck disable=SC2016,SC2030,SC2031

load helpers

setup_file() { build_clients try fill blocked; }

# Whether process PID sleeps.
sleeps() { grep -q '^State:.[SD]' "/proc/$1/status"; }
# How many processes have .next of this test's mount open.
waiting() {
	find /proc/[0-9]*/fd -lname "$Q/.next" 2> /dev/null | wc -l
}

# man: next-signal, wait-interrupt
@test "9: a reader blocked in .next is gone within 50 ms of SIGTERM and of SIGKILL" {
	spool_mount
	took=$("$CLIENTS/blocked" "$Q/.next" 10)
	[ "$took" -le 50000 ]
	# They took no message with them.
	put job
	expect 0 attr attempts "$MSG"
	expect 0 inflight
}

@test '9: f=$(cat Q/.next) in dash and bash' {
	spool_mount
	for sh in dash bash; do
		put "$sh"
		"$sh" -ec 'f=$(cat "$Q/.next"); cat "$Q/$f"; rm "$Q/$f"' > "$BASE/got"
		expect "$sh" cat "$BASE/got"
	done
	repolled
	queue_empty
}

@test "9: read f < Q/.next in dash and bash" {
	spool_mount
	for sh in dash bash; do
		put "$sh"
		"$sh" -ec 'read f < "$Q/.next"; cat "$Q/$f"; rm "$Q/$f"' > "$BASE/got"
		expect "$sh" cat "$BASE/got"
	done
	repolled
	queue_empty
}

# bats test_tags=sqlite:order
# man: next-open
@test "9: one open gives one name, in reads of any size; the next open the next" {
	spool_mount
	put a
	a=${MSG##*/}
	put b
	expect "$a" dd if="$Q/.next" bs=1 status=none
	expect "${MSG##*/}" dd if="$Q/.next" bs=7 status=none
	expect 2 inflight
}

# man: next-wait
@test "9: a reader waits for the first message" {
	spool_mount
	bg cat "$Q/.next" > "$BASE/name"
	wait_until 10 is 1 waiting
	wait_until 10 sleeps "$BG"
	echo late > "$Q/late"
	wait_until 10 gone "$BG"
	f=$(cat "$BASE/name")
	expect late cat "$Q/$f"
	rm "$Q/$f"
	repolled
	queue_empty
}

# man: next-order
@test "9: 50 blocked readers: each message goes to one" {
	spool_mount
	for i in $(seq 50); do
		bg cat "$Q/.next" > "$BASE/name.$i"
	done
	wait_until 20 is 50 waiting
	"$CLIENTS/fill" "$Q" m 30
	wait_until 20 is 20 waiting
	expect 30 bash -c 'cat "$BASE"/name.* | sort -u | wc -l'
	expect 30 bash -c 'cat "$BASE"/name.* | wc -l'
	repolled
	expect 0 listed
	"$CLIENTS/fill" "$Q" n 20
	wait_until 20 is 0 waiting
	expect 50 bash -c 'cat "$BASE"/name.* | sort -u | wc -l'
	expect 50 bash -c 'cat "$BASE"/name.* | wc -l'
}

# man: next-poll
@test "9: select() on .next" {
	spool_mount
	bg "$CLIENTS_SRC/selects.py" next "$Q" "$BASE/flag" > "$BASE/name" 2> "$BASE/said"
	wait_until 10 test -e "$BASE/flag"
	wait_until 10 sleeps "$BG"
	echo hi > "$Q/x"
	wait "$BG"
	[[ $(< "$BASE/name") == *Z-* ]]
	expect '' cat "$BASE/said"
}

# man: control-poll
@test "9: select() on .control" {
	spool_mount poll_floor=50s
	bg "$CLIENTS_SRC/selects.py" control "$Q" "$BASE/flag" > "$BASE/control" 2> "$BASE/said"
	wait_until 10 test -e "$BASE/flag"
	wait_until 10 sleeps "$BG"
	tell pause
	wait "$BG"
	grep -qx state=paused "$BASE/control"
	expect '' cat "$BASE/said"
}

# man: next-nonblock
@test "9: O_NONBLOCK: EAGAIN while there is none" {
	spool_mount
	tries EAGAIN read-nonblock "$Q/.next"
	put job
	tries ok read-nonblock "$Q/.next"
	expect 1 inflight
}

# man: next-eof
@test "9: end of file when the mount is drained and when it stops" {
	spool_mount
	bg cat "$Q/.next" > "$BASE/name"
	wait_until 10 is 1 waiting
	tell drain
	wait "$BG"
	expect 0 stat -c %s "$BASE/name"
	if is_mounted "$Q"; then
		tell stop
		wait_until 10 not_mounted "$Q"
	fi
	wait_until 10 not_served "$Q"
	spool_mount
	bg cat "$Q/.next" > "$BASE/name"
	wait_until 10 is 1 waiting
	tell stop
	wait "$BG"
	expect 0 stat -c %s "$BASE/name"
	wait_until 10 not_mounted "$Q"
}

@test "9: a worker loop over .next handles all" {
	spool_mount
	"$CLIENTS/fill" "$Q" m 100
	for _ in 1 2 3; do
		bg dash -c 'while f=$(cat "$Q/.next") && [ -n "$f" ]; do
			cat "$Q/$f" >> "$BASE/got"; rm "$Q/$f"; done'
	done
	wait_until 30 is 100 control handled_total
	sort "$BASE/got" | diff - <(seq -f 'm-%06g' 100)
	repolled
	queue_empty
}
