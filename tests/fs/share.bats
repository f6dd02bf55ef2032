#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Several mounts of one queue, and one that is alone.
# shellcheck disable=SC2016,SC2030,SC2031

load helpers

setup_file() { build_clients fill; }

setup() {
	spool_setup
	export B=$BASE/b
}

# bats test_tags=sqlite:notify
# man: backoff-notice
@test "11: a second mount notices what the first wrote without waiting for a poll" {
	spool_mount role=out
	spool_mount -n b idle_time=1h
	# The first poll is over: without a notice the next is an hour away.
	wait_until 10 is waiting control state "$B"
	echo hi > "$Q/x"
	wait_until 5 is 1 entries "$B"
	expect hi cat "$(message x "$B")"
}

# bats test_tags=sqlite:peers
# man: window-share
@test "11: two mounts, only one with a consumer: it gets every message, soon" {
	spool_mount
	spool_mount -n b
	"$CLIENTS/fill" "$Q" m 300
	sync "$Q/.control"
	# Wherever they are held, and though nobody reads from the first mount.
	bg dash -c 'while f=$(cat "$B/.next") && [ -n "$f" ]; do
		cat "$B/$f" >> "$BASE/got"; rm "$B/$f"; done'
	wait_until 20 is 300 control handled_total "$B"
	sort "$BASE/got" | diff - <(seq -f 'm-%06g' 300)
	# And likewise what is written while it consumes.
	"$CLIENTS/fill" "$B" n 100
	"$CLIENTS/fill" "$Q" o 100
	wait_until 20 is 500 control handled_total "$B"
	expect 500 bash -c 'sort -u "$BASE/got" | wc -l'
	expect 0 control dead
	expect 0 control dead "$B"
	expect 0 control handled_total
}

# bats test_tags=sqlite:peers
@test "11: a glob loop at the second mount gets every message, too" {
	spool_mount
	"$CLIENTS/fill" "$Q" m 100
	wait_listed 100
	spool_mount -n b
	cat > "$BASE/loop.sh" <<- 'EOF'
		n=0
		while [ $n -lt 100 ]; do
			for f in "$B"/*; do
				[ -e "$f" ] && cat "$f" && rm "$f" && n=$((n + 1))
			done
		done
	EOF
	timeout 30 dash "$BASE/loop.sh" > "$BASE/got"
	sort "$BASE/got" | diff - <(seq -f 'm-%06g' 100)
	wait_listed 0
}

@test "11: two mounts with consumers share, and nothing is handled twice" {
	spool_mount
	spool_mount -n b
	"$CLIENTS/fill" "$Q" m 200
	for mnt in "$Q" "$B"; do
		bg dash -c 'while f=$(cat "$1/.next") && [ -n "$f" ]; do
			cat "$1/$f" >> "$BASE/got"; rm "$1/$f"; done' _ "$mnt"
	done
	"$CLIENTS/fill" "$B" n 200
	wait_until 30 is 400 total_handled
	expect 400 bash -c 'wc -l < "$BASE/got"'
	expect 400 bash -c 'sort -u "$BASE/got" | wc -l'
}
total_handled() { echo $(($(control handled_total) + $(control handled_total "$B"))); }

# bats test_tags=sqlite:peers
# man: window-quiet
@test "11: one mount alone: its listing does not flicker over 5 lease periods" {
	spool_mount visibility=1s
	"$CLIENTS/fill" "$Q" m 50
	wait_listed 50
	ls "$Q" > "$BASE/names"
	bg inotifywait -m -e create,delete,close_write,moved_to,moved_from "$Q" \
		> "$BASE/events" 2> "$BASE/said"
	wait_until 10 grep -q established "$BASE/said"
	end=$(($(now_ms) + 5500))
	until clock_is "$end"; do
		diff "$BASE/names" <(ls "$Q")
	done
	# The state of the poller raises its events on .control.
	not grep -v 'CLOSE_WRITE.* \.control$' "$BASE/events"
	expect 0 control leases_lost
	for f in "$Q"/*; do
		expect 0 attr attempts "$f"
	done
}

# bats test_tags=sqlite:peers
@test "11: two idle mounts do not pass messages to and fro" {
	spool_mount visibility=2s
	"$CLIENTS/fill" "$Q" m 40
	wait_listed 40
	spool_mount -n b visibility=2s
	wait_until 10 is 40 both_listed
	bg inotifywait -m -e create,delete "$Q" "$B" > "$BASE/events" 2> "$BASE/said"
	wait_until 10 grep -q established "$BASE/said"
	# It may share once; after that it is quiet for two lease periods.
	wait_until 20 quiet_for 4000
	expect 40 both_listed
}
both_listed() { echo $(($(entries "$Q") + $(entries "$B"))); }
quiet_for() { [ $(($(now_ms) - $(date -r "$BASE/events" +%s%3N))) -ge "$1" ]; }

@test "11: what a mount had claimed is not handed out by another" {
	spool_mount visibility=1s
	put job
	cat "$MSG" > /dev/null
	spool_mount -n b visibility=1s
	end=$(($(now_ms) + 2500))
	wait_until 10 clock_is "$end"
	expect 0 entries "$B"
	rm "$MSG"
	sync "$Q/.control"
	wait_until 10 is 0 queue_depth "$B"
}

# man: window-return, back-window
@test "11: a mount killed with its window: another has its messages after the lease" {
	spool_mount visibility=1s
	"$CLIENTS/fill" "$Q" m 20
	wait_listed 20
	spool_mount -n b
	spool_kill "$Q"
	wait_until 15 is 20 entries "$B"
	for f in "$B"/*; do
		expect 0 attr attempts "$f"
	done
}

# man: window-return, back-window
@test "11: unmounting returns what is unread, at once" {
	spool_mount visibility=10m
	"$CLIENTS/fill" "$Q" m 20
	wait_listed 20
	spool_mount -n b
	spool_umount "$Q"
	wait_until 10 is 20 entries "$B"
	for f in "$B"/*; do
		expect 0 attr attempts "$f"
	done
}
