#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# bats file_tags=azure:slow
# .control tells the numbers of the back-off while it happens. The poll command
# makes the next poll come now: no test waits for a minute.
# shellcheck disable=SC2030,SC2031

load helpers

# What is slept now: an empty poll sleeps the interval and *then* makes it grow.
interval() { control backoff_interval_ms; }

# polled COMMAND...: COMMAND makes one more poll come, and it has ended.
polled() {
	local n
	n=$(control polls_total)
	"$@"
	wait_until 10 at_least $((n + 1)) control polls_total
	wait_until 10 is waiting control state
}

# told SECONDS...: so grows what is told, an empty poll each; the last is slept.
told() {
	local s first=1
	for s in "$@"; do
		[ -n "$first" ] || polled tell poll
		first=''
		expect $((s * 1000)) interval
	done
}

setup() {
	spool_setup
	# No lease may end while a test looks: the sleep ends then, too.
	OPTS=poll_jitter=0,role=in,visibility=1h
}

# man: backoff-empty, backoff-start, key-backoff, cmd-poll
@test "13: floor 1: 1, 2, 4 ... 60, 60" {
	spool_mount "$OPTS,poll_floor=10s,poll_ceiling=600s"
	wait_until 10 is waiting control state
	expect 10000 control backoff_floor_ms
	expect 600000 control backoff_ceiling_ms
	# Ten times 1, 2, 4 ... 60: slow machines must not see a poll by the clock.
	told 10 20 40 80 160 320 600 600
}

@test "13: floor 3: 3, 6, 12, 24, 48, 60" {
	spool_mount "$OPTS,poll_floor=30s,poll_ceiling=600s"
	wait_until 10 is waiting control state
	told 30 60 120 240 480 600 600
}

# man: backoff-empty, key-polls
@test "13: the sleep is the interval before it grew" {
	spool_mount "$OPTS,poll_floor=30s,poll_ceiling=600s"
	wait_until 10 is waiting control state
	for slept in 30000 60000 120000 240000 480000 600000 600000; do
		left=$(control next_poll_in_ms)
		[ "$left" -le "$slept" ]
		[ "$left" -ge $((slept - 20000)) ]
		polled tell poll
	done
	expect 8 control polls_empty
	expect 8 control polls_empty_in_a_row
}

# man: backoff-jitter
@test "13: jitter within its bound and the ceiling" {
	spool_mount role=in,poll_jitter=20,poll_floor=100s,poll_ceiling=100s
	wait_until 10 is waiting control state
	for _ in 1 2 3 4 5 6 7 8; do
		left=$(control next_poll_in_ms)
		[ "$left" -le 100000 ]
		[ "$left" -ge 70000 ]
		expect 100000 interval
		polled tell poll
	done
}

# arrival: another mount writes; it is taken here, and an empty poll follows.
arrival() {
	local n
	n=$(control polls_empty)
	echo hi > "$BASE/b/x"
	wait_until 10 at_least $((n + 1)) control polls_empty
	wait_until 10 is 1 listed
	wait_until 10 is waiting control state
	cat "$Q"/*-x > /dev/null
	rm "$Q"/*-x 2> /dev/null || rm "$(claimed x)"
	sync "$Q/.control"
}

# bats test_tags=sqlite:notify
# man: backoff-reset
@test "13: a message sets the interval to the floor (reset)" {
	spool_mount -n b role=out
	spool_mount "$OPTS,poll_floor=30s,poll_ceiling=600s"
	wait_until 10 is waiting control state
	told 30 60 120 240
	arrival
	expect 30000 interval
	[ "$(control next_poll_in_ms)" -le 30000 ]
	at_least 1 control polls_empty_in_a_row
}

# bats test_tags=sqlite:notify
# man: backoff-halve
@test "13: a message divides it by the factor (halve), never under the floor" {
	spool_mount -n b role=out
	spool_mount "$OPTS,poll_floor=30s,poll_ceiling=600s,poll_decrease=halve"
	wait_until 10 is waiting control state
	expect halve control backoff_decrease
	told 30 60 120 240
	arrival
	# What grew while 240 was slept is halved, or that: 480 to 240, 240 to 120.
	left=$(control next_poll_in_ms)
	[ "$left" -le 240000 ]
	[ "$left" -gt 60000 ]
	# Whatever is halved then, the floor is above it.
	tell 'set poll_floor=400s'
	arrival
	expect 400000 interval
	arrival
	expect 400000 interval
}

# man: backoff-idle-time
@test "13: a factor of 3 and idle_time" {
	spool_mount "$OPTS,poll_floor=20s,poll_ceiling=600s,poll_factor=3"
	wait_until 10 is waiting control state
	told 20 60 180 540 600 600
	tell 'set idle_time=50s'
	expect 50000 control backoff_floor_ms
	expect 50000 control backoff_ceiling_ms
	polled tell poll
	expect 50000 interval
}

@test "13: it polls by itself when the sleep is over" {
	spool_mount "$OPTS,poll_floor=100ms,poll_ceiling=200ms"
	wait_until 10 at_least 5 control polls_empty_in_a_row
	expect 200 interval
}

# man: window-count, window-full
@test "13: paused: no poll and no next; full: no poll while the window has no room" {
	spool_mount -n b role=out
	spool_mount "$OPTS,poll_floor=30s,poll_ceiling=60s,window=3"
	tell pause
	expect paused control state
	expect '' control next_poll_in_ms
	for i in 1 2 3 4 5; do
		echo "$i" > "$BASE/b/$i"
	done
	expect 0 listed
	tell resume
	wait_listed 3
	wait_until 10 is full control state
	expect '' control next_poll_in_ms
	cat "$(message 1)" > /dev/null
	rm "$(claimed 1)"
	wait_until 10 message 4
}
