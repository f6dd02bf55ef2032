#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Messages through a service that fails in every way there is, mixed.
# SPOOLFS_MIXED_COUNT says how many (200).
# shellcheck disable=SC2016,SC2030,SC2031

export SPOOL_BACKEND=azure
load ../fs/helpers

COUNT=${SPOOLFS_MIXED_COUNT:-200}
export BATS_TEST_TIMEOUT=$((180 + COUNT / 5))

setup_file() { build_clients fill; }

setup() {
	spool_setup
	faults_start
	export DB=$FAULTY/$QUEUE
	# Backing off is right, but no test has minutes.
	OPTS=poll_floor=50ms,poll_ceiling=500ms,visibility=10s,retry_delay=0,max_attempts=1000
}

# Every fault at once, each rarely; what takes long, more so. Not a refusal of
# access: that stops everything for minutes, rightly.
MIXED='{"seed":4711, "real":true, "stale":"mixed", "rules":[
	{"fault":"delay", "ms":20, "p":0.2},
	{"fault":"busy", "p":0.02, "retry_after":1}, {"fault":"busy", "p":0.02},
	{"fault":"busy", "p":0.01, "retry_date":1},
	{"fault":"timeout", "p":0.01}, {"fault":"timeout", "p":0.01, "applied":true},
	{"fault":"internal", "p":0.01}, {"fault":"throttled", "p":0.01, "retry_after":1},
	{"fault":"reset", "p":0.02}, {"fault":"lost", "p":0.02}, {"fault":"cut", "p":0.01},
	{"fault":"long", "p":0.01}, {"fault":"short", "p":0.01}, {"fault":"garbage", "p":0.01},
	{"fault":"bomb", "p":0.005},
	{"fault":"deleting", "p":0.002}, {"fault":"endless", "p":0.0005, "ms":20},
	{"fault":"flood", "p":0.0005}, {"fault":"silent", "p":0.0005}]}'

consumer() {
	bg bash -c 'while f=$(cat "$Q/.next") && [ -n "$f" ]; do
			cat "$Q/$f" >> "$BASE/got" && rm "$Q/$f"
		done' 2>> "$BASE/said"
}
all_read() { [ "$(sort -u "$BASE/got" | wc -l)" -ge "$COUNT" ]; }

# The microseconds that one "ls; cat .control" takes, a line each.
looker() {
	bg python3 -c '
import os, sys, time
q = sys.argv[1]
while not os.path.exists(sys.argv[2]):
    for look in (lambda: os.listdir(q), lambda: open(q + "/.control").read()):
        start = time.monotonic()
        look()
        print(int((time.monotonic() - start) * 1e6), flush=True)
    time.sleep(0.02)' "$Q" "$BASE/looked" > "$BASE/looks"
}
# percentile P FILE
percentile() { sort -n "$2" | awk -v p="$1" '{ v[NR] = $1 } END { print v[int((NR - 1) * p / 100) + 1] }'; }

@test "every fault mixed: no message is lost, and the mount answers within 50 ms" {
	faults "$MIXED"
	: > "$BASE/got"
	spool_mount -f "$OPTS"
	looker
	consumer
	consumer
	"$CLIENTS/fill" "$Q" m "$COUNT" 8
	wait_until $((120 + COUNT / 10)) all_read
	: > "$BASE/looked"
	sort -u "$BASE/got" | diff - <(seq -f 'm-%06g' "$COUNT")
	p99=$(percentile 99 "$BASE/looks")
	echo "# $(wc -l < "$BASE/got") reads of $COUNT messages; $(wc -l < "$BASE/looks") looks, 99th $p99 us, most $(percentile 100 "$BASE/looks") us" >&3
	echo "# $(faulted '.faults | tostring')" >&3
	[ "$p99" -le 50000 ]
	expect 0 control dead
	# And it recovers.
	faults '{"real":true}'
	wait_until 60 is 0 control outbox
	wait_until 60 is 0 sdk count "$QUEUE"
}

@test "throttling raises the back-off, and Retry-After is obeyed" {
	spool_mount poll_floor=50ms,poll_ceiling=60s
	sync "$Q/.control"
	faults '{"rules":[{"on":"get","fault":"busy","retry_after":6}]}'
	tell poll
	wait_until 10 at_least 1 faulted .faults.busy
	start=$(now_ms)
	wait_until 5 at_least 3000 control next_poll_in_ms
	control last_error | grep -qi 'busy'
	n=$(faulted .requests.get)
	wait_until 10 clock_is $((start + 4000))
	expect "$n" faulted .requests.get
	faults '{}'
	tell poll
	put job
	expect job cat "$MSG"
}

@test "a date in Retry-After is obeyed as well" {
	spool_mount poll_floor=50ms,poll_ceiling=60s
	sync "$Q/.control"
	faults '{"rules":[{"on":"get","fault":"throttled","retry_date":7}]}'
	tell poll
	wait_until 10 at_least 1 faulted .faults.throttled
	wait_until 5 at_least 3000 control next_poll_in_ms
}

@test "our clock is an hour wrong: the service's Date corrects it" {
	for skew in 3600 -3600; do
		faults "{\"skew_s\":$skew}"
		spool_mount -n "b$skew"
		echo job > "$BASE/b$skew/x"
		wait_until 30 is 1 entries "$BASE/b$skew"
		rm "$BASE/b$skew"/*
		at_least 1 faulted .faults.bad_clock
		at_most=$(faulted .faults.bad_clock)
		[ "$at_most" -le 5 ]
		spool_umount "$BASE/b$skew"
		sdk clear "$QUEUE"
	done
}

@test "a queue that is being deleted is made again when that is over" {
	faults '{"rules":[{"fault":"deleting","for_s":3}]}'
	spool_mount
	echo job > "$Q/x"
	wait_until 60 is 1 listed
	at_least 1 faulted .faults.deleting
	expect job cat "$(message)"
}

@test "a reply to a send is lost: the message may come twice, and is not lost" {
	faults '{"rules":[{"on":"put","fault":"lost","times":1}]}'
	spool_mount
	echo job > "$Q/x"
	wait_until 30 at_least 1 listed
	wait_until 30 is 0 control outbox
	expect 1 bash -c 'cat "$Q"/.peek/* | sort -u | wc -l'
}

@test "a reply to a deletion is lost: it is deleted, and nobody is told of an error" {
	spool_mount
	put job
	faults '{"rules":[{"on":"delete","fault":"lost","times":1}]}'
	cat "$MSG" > /dev/null
	rm "$MSG"
	wait_until 30 timeout 5 sync "$Q/.control"
	expect 0 sdk count "$QUEUE"
	expect 0 dead
}

@test "a reply to a renewal is lost: no other consumer gets the message for it" {
	faults '{"real":true,"stale":"mixed"}'
	spool_mount visibility=3s
	put job
	cat "$MSG" > /dev/null
	faults '{"real":true,"stale":"mixed","rules":[{"on":"update","fault":"lost","times":1}]}'
	wait_until 10 at_least 1 faulted .faults.lost
	# The receipt is lost with it: what it holds is shown once more in the end, but
	# it is never held without being said.
	wait_until 30 bash -c '[ "$(cat "$Q"/.inflight/* "$Q"/.peek/* 2> /dev/null | wc -l)" -ge 1 ]'
	rm "$MSG" || { wait_until 20 is 1 listed && cat "$MSG" && rm "$MSG"; }
	wait_until 30 is 0 sdk count "$QUEUE"
}

# How it goes on when they are mended: azure_secrets.bats.
@test "refused access stops the polling, and says so" {
	spool_mount poll_floor=50ms,poll_ceiling=60s
	sync "$Q/.control"
	faults '{"rules":[{"fault":"denied"}]}'
	tell poll
	wait_until 20 bash -c 'grep -qiE "^last_error=.*(403|denied|Authentication|credential)" "$Q/.control"'
	echo "# $(control state) $(control last_error)" >&3
	n=$(faulted '[.requests[]] | add')
	end=$(($(now_ms) + 4000))
	wait_until 10 clock_is "$end"
	[ $(($(faulted '[.requests[]] | add') - n)) -le 4 ]
}

@test "replies without an end are bounded: the mount goes on within a minute" {
	spool_mount "$OPTS"
	put first
	for fault in flood endless silent bomb; do
		faults "{\"rules\":[{\"on\":\"get\",\"fault\":\"$fault\",\"times\":1,\"ms\":10}]}"
		tell poll
		wait_until 20 at_least 1 faulted ".faults.$fault"
		start=$(now_ms)
		echo "$fault" > "$Q/$fault"
		wait_until 60 grep -rqx "$fault" "$Q/.peek"
		echo "# $fault: $(($(now_ms) - start)) ms, $(awk '/VmHWM/ { print $2 }' "/proc/$DAEMON/status") kB" >&3
	done
	[ "$(awk '/VmHWM/ { print $2 }' "/proc/$DAEMON/status")" -lt 200000 ]
}
