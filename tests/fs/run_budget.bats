#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# bats file_tags=azure:slow
# Runs that end by themselves, the idle timer, every command, and .metrics for
# those who read it. What is slept here is the work of a handler.
# shellcheck disable=SC2016,SC2030,SC2031

load helpers
load run_helpers

setup_file() { build_clients try fill; }

# work SECONDS: handles one message after the other, each for so long.
work() {
	local f
	while f=$(cat "$Q/.next") && [ -n "$f" ]; do
		cat "$Q/$f" > /dev/null
		sleep "$1"
		rm "$Q/$f" && echo "$f" >> "$BASE/handled"
	done 2> /dev/null
}

# run_for OPTIONS: mounts a bounded run; its start in BEGAN.
run_for() {
	BEGAN=$(now_ms)
	spool_mount -f "$1"
	RUN=$BG
}

# ended CODE: the run ends with this exit status; how long it took in TOOK.
ended() {
	local status=0
	wait "$RUN" || status=$?
	TOOK=$(($(now_ms) - BEGAN))
	[ "$status" = "$1" ] || {
		echo "expected exit status $1, got $status"
		return 1
	}
	not_mounted "$Q"
}

# between LOW HIGH VALUE
between() {
	(($3 >= $1 && $3 <= $2)) || {
		echo "expected $1 to $2, got $3"
		return 1
	}
}

handled() { sort -u "$BASE/handled" | wc -l; }

# fill_queue COUNT: before the run, through a mount of a producer.
fill_queue() {
	spool_mount -n producer role=out,announce=off
	"$CLIENTS/fill" "$BASE/producer" job "$1"
	sync "$BASE/producer/.control"
	spool_umount "$BASE/producer"
}

# bats test_tags=sqlite:many
# man: run-for, run-under-way
@test "1: ten runs back to back on a queue that is never empty" {
	fill_queue 400
	: > "$BASE/handled"
	for i in 1 2 3 4 5 6 7 8 9 10; do
		before=$(handled)
		run_for run_for=6s,estimated_duration=200ms
		bg work 0.2
		ended 0
		echo "# run $i: $TOOK ms, $(($(handled) - before)) handled" >&3
		# The margin is 5 handlings; mounting and unmounting takes a moment.
		between 4000 6000 "$TOOK"
		between 15 30 $(($(handled) - before))
		wait_until 5 gone "$BG"
	done
	# Nothing was lost, and nothing was interrupted.
	run_for run_for=0
	expect 0 dead
	expect 0 inflight
	wait_until 5 is $((400 - $(handled))) control depth
}

@test "1: a run on an empty queue uses its time and no more" {
	run_for run_for=4s,estimated_duration=200ms,idle_time=500ms
	ended 0
	between 2900 4000 "$TOOK"
}

# man: run-idle-time
@test "2: what arrives after an empty poll is handled by the same run" {
	run_for run_for=30s,estimated_duration=1s,idle_time=1s
	wait_until 5 is waiting control state
	bg work 0
	spool_mount -n producer role=out,announce=off
	polls=$(control polls_empty)
	wait_until 5 at_least $((polls + 1)) control polls_empty
	sent=$(now_ms)
	echo late > "$BASE/producer/late"
	wait_until 5 test -s "$BASE/handled"
	between 0 1500 $(($(now_ms) - sent))
	alive "$RUN"
	tell stop
	ended 0
}

# man: run-near-end, run-under-way, next-eof
@test "near its end a run gives the unread back and lets the others finish" {
	fill_queue 3
	run_for run_for=8s,estimated_duration=1s
	wait_listed 3
	names=("$Q"/*)
	cat "${names[0]}" > /dev/null
	wait_until 10 is draining control state
	# The process that has opened it goes on listing it, and this is another.
	wait_until 5 is 0 listed
	expect '' timeout 5 cat "$Q/.next"
	# Whether the name is still known is a matter of a moment.
	for call in open unlink; do
		run timeout 5 "$CLIENTS/try" "$call" "${names[2]}"
		[ "$output" = EAGAIN ] || [ "$output" = ENOENT ]
	done
	alive "$RUN"
	cat "${names[0]}" > /dev/null
	rm "${names[0]}"
	ended 0
	between 2500 8000 "$TOOK"
	run_for run_for=0
	wait_listed 2
	expect 0 attr attempts "$(message)"
}

# man: run-kept
@test "what is still claimed at the very end is kept" {
	fill_queue 1
	run_for run_for=2s,estimated_duration=100ms
	wait_listed 1
	name=$(message)
	cat "$name" > /dev/null
	ended 0
	between 1900 3000 "$TOOK"
	run_for run_for=0
	expect 1 inflight
	expect 1 attr dequeue_count "$name"
	rm "$name"
	queue_empty
}

# man: run-stands
@test "a run ends even if someone stands in it" {
	mkfifo "$BASE/go"
	run_for run_for=2s,estimated_duration=50ms,idle_time=100ms
	bg bash -c 'cd "$Q" && echo here > "$BASE/stands" && read -r < "$BASE/go"'
	wait_until 5 test -s "$BASE/stands"
	ended 0
}

# man: run-refused
@test "a run that could never hand out a message is refused" {
	spool_refused 'run_for: too short' -o run_for=10s "$DB" "$Q"
	spool_refused 'run_for: too short' -o run_for=1m,tolerance_factor=30 "$DB" "$Q"
	run_for run_for=20s,estimated_duration=4s,tolerance_factor=4.9,poll_floor=100ms
	refuse 'Invalid argument' tell 'set tolerance_factor=5'
	expect 19600 control margin_ms
}

@test "exit status: 1 when something was buried, 0 when it was not" {
	fill_queue 2
	run_for run_for=1m
	wait_listed 2
	rm "$(message)"
	wait_until 5 is 1 dead
	tell drain
	ended 1
	run_for run_for=1m
	wait_listed 1
	cat "$(message)" > /dev/null
	rm "$(message "" "$Q/.inflight" | sed 's,/.inflight,,')"
	tell drain
	ended 0
}

# bats test_tags=sqlite:file
# bats test_tags=sqlite:file
@test "exit status: 69 when the queue did not answer any more at the end" {
	fill_queue 1
	run_for idle_timeout=7s,poll_ceiling=1s
	wait_listed 1
	lock_queue
	wait_until 15 is offline control state
	wait_until 15 grep -q 'ending: nothing was handled' "$BASE/q.log"
	unlock_queue
	ended 69
	# It is back: nothing was lost of what the run held.
	run_for run_for=1m
	wait_listed 1
	tell drain
	ended 0
}

# man: idle-timeout, idle-held, key-idle
@test "4: the idle timer waits for a handling of ten timeouts" {
	fill_queue 1
	run_for idle_timeout=400ms
	bg work 4
	wait_until 3 is 1 control in_flight
	expect held control idle_timer
	expect '' control idle_left_ms
	wait_until 10 test -s "$BASE/handled"
	ended 0
	between 4400 6000 "$TOOK"
	grep -q 'nothing was handled for idle_timeout' "$BASE/q.log"
}

@test "4: unused, a mount ends after idle_timeout" {
	run_for idle_timeout=700ms
	ended 0
	between 700 2500 "$TOOK"
	run_for idle_timeout=1h
	expect armed control idle_timer
	between 3590000 3600000 "$(control idle_left_ms)"
	tell stop
	ended 0
}

# man: key-run, key-average
@test ".control tells of the run" {
	fill_queue 2
	run_for run_for=1m,estimated_duration=1s
	expect 5000 control backoff_floor_ms
	expect 5000 control margin_ms
	expect '' control avg_handling_ms
	between 50000 60000 "$(control stop_in_ms)"
	wait_listed 2
	name=$(message)
	cat "$name" > /dev/null
	wait_until 5 at_least 1 control oldest_claim_s
	rm "$name"
	average=$(control avg_handling_ms)
	between 1000 5000 "$average"
	between $((average * 5)) $((average * 5 + 5)) "$(control margin_ms)"
	tell 'set run_for=2m'
	between 100000 120000 "$(control stop_in_ms)"
	tell 'set run_for=0'
	expect '' control stop_in_ms
	expect '' control margin_ms
}

# ---- commands ---------------------------------------------------------------

# man: cmd-pause, cmd-resume, cmd-drain, cmd-stop
@test "8: pause, resume, drain and stop in .control and in what the queue gives" {
	fill_queue 2
	run_for ''
	wait_listed 2
	tell pause
	expect paused control state
	expect 0 listed
	tell poll
	expect paused control state
	expect 0 control ready
	tell resume
	wait_listed 2
	name=$(message)
	cat "$name" > /dev/null
	tell drain
	expect draining control state
	expect 0 listed
	expect EAGAIN "$CLIENTS/try" read-nonblock "$Q/.next" || expect ok \
		"$CLIENTS/try" read-nonblock "$Q/.next"
	rm "$name"
	ended 0
	run_for ''
	wait_listed 1
	tell stop
	ended 0
}

# A value within the bounds of each live option, and one out of them.
live() {
	cat <<- END
		visibility 1m 99ms
		max_lease 2h 99ms
		inherit 2m 31d
		max_attempts 7 0
		retry_delay 1m 8d
		window 9 100001
		window_bytes 1M 1K
		poll_floor 3s 0
		poll_ceiling 50s 2d
		poll_factor 3.5 0.5
		poll_decrease halve quarter
		poll_jitter 7 101
		idle_time 9s 2d
		run_for 1h 31d
		estimated_duration 3s 2d
		tolerance_factor 2.5 1001
		idle_timeout 1h 31d
		rm_unread delete keep
		debug lease $(printf 'x%.0s' {1..300})
	END
}

# option NAME: its value, as .status.json has it.
option() { jq -r ".options.$1" "$Q/.status.json"; }

# bats test_tags=sqlite:local
# man: cmd-set, cmd-einval
@test "8: set changes every live option, and refuses the others" {
	run_for ''
	"$SPOOLFS_BUILD/spoolfs" --help > "$BASE/help"
	sed -nE 's/^  \* ([a-z_]+).*/\1/p' "$BASE/help" | sort > "$BASE/stars"
	diff <(live | cut -d' ' -f1 | sort) "$BASE/stars"
	while read -r name good bad; do
		refuse 'Invalid argument' tell "set $name=$bad"
		tell "set $name=$good"
		expect "$good" option "$name"
		refuse 'Invalid argument' tell "set $name=$bad"
		expect "$good" option "$name"
	done < <(live)
	while read -r name; do
		before=$(option "$name")
		refuse 'Invalid argument' tell "set $name=1"
		expect "$before" option "$name"
	done < <(sed -nE 's/^    ([a-z_]+)[ =].*/\1/p' "$BASE/help")
	expect 1048576 jq '.options.window_bytes | rtrimstr("M") | tonumber * 1048576' \
		"$Q/.status.json"
	tell stop
	ended 0
}

# ---- .metrics ---------------------------------------------------------------

# man: metrics, metrics-more
@test ".metrics: valid as Prometheus text and as OpenMetrics" {
	DB=$BASE/'a "quoted\ name'
	spool_mount run_for=1h,idle_timeout=30m
	for i in 1 2 3; do
		put "$i"
	done
	names=("$Q"/*)
	cat "${names[@]:0:2}" > /dev/null
	rm "${names[0]}"
	tell "release ${names[1]##*/}"
	rm "${names[2]}"
	wait_until 5 is 1 control dead
	cp "$Q/.metrics" "$BASE/metrics"
	/usr/bin/python3 - "$BASE/metrics" "$DB" << 'END'
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as om
from prometheus_client.parser import text_string_to_metric_families as prometheus

text = open(sys.argv[1]).read()
for parse in (prometheus, om):
    kinds, values = {}, {}
    for family in parse(text):
        kinds[family.name] = family.type
        for s in family.samples:
            assert s.labels.pop("queue") == sys.argv[2], s
            assert s.name.startswith("spoolfs_"), s
            values[s.name, tuple(s.labels.values())] = s.value

    def want(name, value, *labels):
        got = values["spoolfs_" + name, labels]
        assert got == value, (parse.__module__, name, labels, got, value)

    # The type of a counter has the name that OpenMetrics gives it.
    assert "unknown" not in kinds.values() or parse is prometheus, kinds
    assert kinds["spoolfs_handling_seconds"] == "histogram", kinds
    want("received_total", 3)
    want("claims_total", 2)
    want("handled_total", 1)
    want("released_total", 1)
    want("buried_total", 1)
    want("sent_total", 3)
    want("leases_lost_total", 0)
    want("errors_total", 0, "unavailable")
    want("state", 1, "waiting")
    want("state", 0, "offline")
    want("dead", 1)
    want("backoff_interval_seconds", 5)
    want("margin_seconds", values["spoolfs_margin_seconds", ()])
    assert 3500 < values["spoolfs_stop_in_seconds", ()] <= 3600
    assert 1700 < values["spoolfs_idle_left_seconds", ()] <= 1800
    assert values["spoolfs_polls_total", ()] >= values["spoolfs_polls_empty_total", ()]
    assert values["spoolfs_requests_total", ()] > 0
    want("handling_seconds_count", 2)
    want("handling_seconds_bucket", 2, "+Inf")
    want("handling_seconds_bucket", 2, "60.0")
    assert 0 < values["spoolfs_handling_seconds_sum", ()] < 60
END
}
