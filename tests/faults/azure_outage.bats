#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The service is away for a while, under load. Azurite is ended, not killed: killed
# it forgets its last seconds, which the service never does.
# SPOOLFS_OUTAGE_S says for how long (10).
# shellcheck disable=SC2016,SC2030,SC2031

export SPOOL_BACKEND=azure
load ../fs/helpers

export BATS_TEST_TIMEOUT=$((180 + 6 * ${SPOOLFS_OUTAGE_S:-10}))

setup() {
	spool_setup
	OUTAGE_S=${SPOOLFS_OUTAGE_S:-10}
	azurite_start "$BASE/azurite"
	export DB=$AZURE/$QUEUE
	AZURITE_PID=$(< "$BASE/azurite/pid")
}
# The mounts first: they end the sooner, and have nothing to wait for.
teardown() {
	kill -CONT "$(< "$BASE/azurite/pid")" 2> /dev/null || :
	spool_teardown
	local status=$?
	azurite_stop "$BASE/azurite"
	return "$status"
}
setup_file() { :; }
teardown_file() { :; }

away() { azurite_stop "$BASE/azurite"; }
back() { azurite_start "$BASE/azurite"; }

# writer NAME: a message each few milliseconds until BASE/enough is there; lines
# "NAME N" in BASE/sent for those that were accepted, in BASE/failed for others.
writer() {
	bg bash -c 'n=0
		until [ -e "$BASE/enough" ]; do
			n=$((n + 1))
			if printf "%s %06d\n" "$1" "$n" > "$Q/$1"; then
				echo "$1 $n" >> "$BASE/sent"
			else
				echo "$1 $n" >> "$BASE/failed"
			fi
			sleep 0.02
		done' _ "$1" 2> "$BASE/said.$1"
}

consumer() {
	bg bash -c 'while f=$(cat "$Q/.next") && [ -n "$f" ]; do
			echo "$f" >> "$BASE/names"
			cat "$Q/$f" >> "$BASE/got" && rm "$Q/$f"
		done' 2> "$BASE/said.consumer"
}

missing() {
	sort -u "$BASE/got" | awk '{ print $1, $2 + 0 }' | sort |
		comm -13 - <(sort -u "$BASE/sent") | wc -l
}

@test "the service goes away under load: no writer fails, everything arrives" {
	spool_mount visibility=10s,poll_ceiling=2s,poll_floor=100ms
	: > "$BASE/got"
	: > "$BASE/failed"
	consumer
	for w in w1 w2 w3 w4; do
		writer "$w"
	done
	wait_until 20 at_least 100 bash -c 'wc -l < "$BASE/got"'
	away
	gone_ms=$(now_ms)
	wait_until 20 is offline control state
	wait_until 20 at_least 10 control outbox
	wait_until $((OUTAGE_S + 10)) clock_is $((gone_ms + OUTAGE_S * 1000))
	before=$(wc -l < "$BASE/sent")
	# The mount answers all the while.
	timeout 1 ls "$Q" > "$BASE/names"
	timeout 1 cat "$Q/.control" > "$BASE/control"
	back
	: > "$BASE/enough"
	# The emulator takes a hundred a second or so of what was written meanwhile.
	wait_until $((60 + 4 * OUTAGE_S)) is 0 control outbox
	wait_until 60 is 0 missing
	[ "$before" -gt 150 ]
	expect '' cat "$BASE/failed"
	expect '' cat "$BASE/said.w1"
	wait_until 30 is 0 sdk count "$QUEUE"
	for key in dead drafts in_flight errors_total; do
		echo "# $key $(control "$key")"
	done
	expect 0 control dead
	expect 0 drafts
	echo "# $(wc -l < "$BASE/sent") sent, $(wc -l < "$BASE/got") read," \
		"$(sort "$BASE/names" | uniq -d | wc -l) names twice" >&3
}

# Enqueue times are whole seconds and ids are random: only the times are the
# order that the service keeps.
@test "what was written during an outage is sent in the order of each writer" {
	spool_mount role=out
	sync "$Q/.control"
	away
	for w in w1 w2; do
		writer "$w"
	done
	wait_until 20 at_least 60 bash -c 'wc -l < "$BASE/sent"'
	: > "$BASE/enough"
	wait_until 10 bash -c '[ "$(wc -l < "$BASE/sent")" = "$(ls "$Q/.outbox/" | wc -l)" ]'
	spool_umount || :
	# Days may pass, and machines start anew.
	back
	spool_mount role=out
	wait_until 60 is 0 control outbox
	spool_umount
	spool_mount role=in
	wait_until 30 is "$(wc -l < "$BASE/sent")" listed
	for f in "$Q"/*; do
		echo "$(attr enqueued "$f") $(cat "$Q/.peek/${f##*/}")"
	done > "$BASE/arrived"
	for w in w1 w2; do
		grep " $w " "$BASE/arrived" | sort -k3n > "$BASE/in_order"
		cut -d' ' -f1 "$BASE/in_order" | sort -c
		expect "$(grep -c "^$w " "$BASE/sent")" grep -c . "$BASE/in_order"
	done
}

@test "a mount begins without the service, and takes up its work when that is there" {
	away
	spool_mount
	wait_until 20 is offline control state
	echo early > "$Q/early"
	expect 1 entries "$Q/.outbox"
	back
	wait_until 60 is 1 listed
	expect early cat "$(message)"
}

@test "a service that accepts and never answers: offline, and the mount ends in time" {
	spool_mount
	put job
	kill -STOP "$AZURITE_PID"
	tell poll
	start=$(now_ms)
	wait_until 60 is offline control state
	echo "# offline after $(($(now_ms) - start)) ms" >&3
	timeout 1 ls "$Q" > "$BASE/names"
	echo later > "$Q/later"
	kill -CONT "$AZURITE_PID"
	wait_until 60 is 2 listed
}

@test "the daemon is killed during an outage: nothing is lost" {
	spool_mount role=out
	sync "$Q/.control"
	away
	for i in 1 2 3 4 5 6 7 8 9 10; do
		echo "m$i" > "$Q/m$i"
	done
	spool_kill
	back
	spool_mount
	wait_until 30 is 10 listed
	cat "$Q"/.peek/* | sort -V | diff - <(seq -f m%g 10)
}
