#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Who may have a message, and what becomes of it when its owner ends.
#
# The shell that runs a test is the parent of all its commands: it inherits what
# they have read. Another owner is a process beside them that lives on (worker,
# holder); a command of the test is a stranger to it.

# shellcheck disable=SC2016,SC2030,SC2031,SC2153

load helpers

setup_file() { build_clients try fill hold consume; }

attempts() { attr attempts "$1"; }

# fresh NAME...: a mount with those messages, and short times.
fresh() {
	spool_mount "${OPTS-visibility=30s,retry_delay=1s}"
	for name in "$@"; do
		put "$name"
	done
}

# ---- 3: one owner ------------------------------------------------------------

# race WORKERS MESSAGES SHELL...: workers started by one SHELL handle them all.
race() {
	local n=$1 messages=$2
	shift 2
	spool_mount window=4096
	"$CLIENTS/fill" "$Q" m "$messages"
	wait_listed "$messages"
	cat > "$BASE/start.sh" <<- EOF
		for i in \$(seq $n); do
			"$CLIENTS_SRC/loop.sh" "$Q" "$BASE/w\$i" &
		done
		wait
	EOF
	timeout 120 "$@" "$BASE/start.sh"
	cat "$BASE"/w*.done | sort > "$BASE/got"
	seq -f 'm-%06g' "$messages" | diff - "$BASE/got"
	for f in "$BASE"/w*.bad; do
		expect '' cat "$f"
	done
	# Losing says one of these, nothing else.
	not grep -hvE 'Device or resource busy|No such file' "$BASE"/w*.err
	repolled
	queue_empty
	expect "$messages" control handled_total
}

# bats test_tags=sqlite:many
# man: owner-workers
@test "3: two workers over one glob handle each message once" {
	race 2 2000 bash
}

# bats test_tags=sqlite:many
# man: owner-workers
@test "3: eight workers over one glob handle each message once" {
	race 8 2000 dash
}

@test "3: two workers of a shell that leads its own session do, too" {
	race 2 300 setsid -w bash
}

# man: claim-open, owner-ebusy
@test "3: a loser gets EBUSY from open, unlink and rename" {
	fresh job
	worker w "$MSG"
	refuse 'Device or resource busy' cat "$MSG"
	tries EBUSY open "$MSG"
	tries EBUSY unlink "$MSG"
	tries EBUSY rename "$MSG" "$Q/other"
	tries EBUSY rename "$MSG" "$Q/.dead/${MSG##*/}"
	expect 1 inflight
	expect 0 attempts "$MSG"
	expect 0 listed
	order w "rm '$MSG'"
	repolled
	queue_empty
}

@test "3: 'cat f; rm f' by a loser deletes nothing" {
	fresh job
	holder h "$MSG"
	run bash -c 'cat "$1"; rm "$1"' _ "$MSG"
	[ "$status" -ne 0 ]
	expect 1 inflight
	expect 0 dead
	expect 0 attempts "$MSG"
	expect claimed attr state "$MSG"
}

# man: owner-relatives
@test "3: a script may open its own message again and again" {
	fresh job
	bash -ec 'head -1 "$1"; cat "$1"; (cat "$1"); grep -q job "$1"; wc -c < "$1"; x=$(cat "$1")
		cp "$1" "$2"; exec 5< "$1"; cat <&5; rm "$1"' _ "$MSG" "$BASE/copy"
	expect job cat "$BASE/copy"
	repolled
	queue_empty
}

# man: owner-relatives, owner-inherits
@test "3: the shell that started a reader may remove what it read" {
	fresh job
	cat "$MSG" > /dev/null
	rm "$MSG"
	put job2
	(cat "$MSG" > /dev/null)
	(rm "$MSG")
	put job3
	timeout 10 bash -c 'bash -c "cat $1; :"; :' _ "$MSG" > /dev/null
	rm "$MSG"
	repolled
	queue_empty
}

# man: owner-setsid
@test "3: a reader that leads its own session counts for its parent's" {
	fresh job
	setsid -w cat "$MSG" > /dev/null
	expect 1 inflight
	rm "$MSG"
	repolled
	queue_empty
}

# bats test_tags=sqlite:many
@test "3: C and Python programs that open files themselves, or fork a reader" {
	spool_mount window=2048
	"$CLIENTS/fill" "$Q" m 900
	wait_listed 900
	pids=()
	for worker in "$CLIENTS/consume" "$CLIENTS/consume -f" \
		"$CLIENTS_SRC/consume.py" "$CLIENTS_SRC/consume.py -f"; do
		for i in 1 2; do
			# shellcheck disable=SC2086
			bg $worker "$Q" "$BASE/got" 2>> "$BASE/said"
			pids+=("$BG")
		done
	done
	for pid in "${pids[@]}"; do
		wait "$pid"
	done
	sort "$BASE/got" > "$BASE/sorted"
	seq -f 'm-%06g' 900 | diff - "$BASE/sorted"
	repolled
	queue_empty
	expect 0 control leases_lost
}

# man: claims-shared
@test "3: claims=shared turns ownership off" {
	OPTS=claims=shared fresh job
	holder h "$MSG"
	expect job cat "$MSG"
	rm "$MSG"
	repolled
	queue_empty
}

# man: owner-unseen
@test "3: callers whose pid cannot be seen share their claims, with one warning" {
	WRAP='unshare --pid --fork --kill-child' spool_mount -f
	put a
	holder h "$MSG"
	expect a cat "$MSG"
	rm "$MSG"
	put b
	cat "$MSG" > /dev/null
	rm "$MSG"
	repolled
	queue_empty
	expect 1 grep -ciE 'warn.*(pid|namespace)' "$BASE/q.log"
}

# ---- 4: owners that end --------------------------------------------------------

# man: inheritor-failed, back-kill
@test "4: a worker killed with SIGKILL: its 10 messages are listed within 2 s" {
	fresh m0 m1 m2 m3 m4 m5 m6 m7 m8 m9
	worker w "$Q"/*
	expect 0 listed
	expect 10 inflight
	kill -KILL "$WORKER"
	wait_until 2 is 10 listed
	for f in "$Q"/*; do
		expect 1 attempts "$f"
	done
}

# How an opener ended does not matter where it was a tool of a script that lives
# on. One that was cut off by a signal was a worker itself: its work is not done.
@test "4: a program killed with SIGKILL: the 10 messages it opened are listed within 2 s" {
	fresh m0 m1 m2 m3 m4 m5 m6 m7 m8 m9
	holder h "$Q"/*
	expect 10 inflight
	kill -KILL "$HOLDER"
	wait_until 2 is 10 listed
	for f in "$Q"/*; do
		expect 1 attempts "$f"
	done
}

# man: back-kill, back-delay
@test "4: only the first redelivery after a kill is immediate" {
	OPTS=retry_delay=700ms fresh job
	worker w "$MSG"
	kill -KILL "$WORKER"
	wait_until 2 is 1 listed
	worker w2 "$MSG"
	start=$(now_ms)
	kill -TERM "$WORKER"
	wait_listed 1
	# Twice the delay: it is the second attempt.
	clock_is $((start + 1300))
	expect 2 attempts "$MSG"
}

# man: inheritor-failed, back-attempt, back-delay
@test "4: a handler that exits 1: back after retry_delay" {
	fresh job
	start=$(now_ms)
	not bash -c 'cat "$1" > /dev/null; exit 1' _ "$MSG"
	wait_listed 1
	clock_is $((start + 900))
	expect 1 attempts "$MSG"
	expect job cat "$MSG"
}

# man: inheritor-ok
@test "4: a handler that exits 0 leaves its message with the shell" {
	fresh job
	bash -c 'cat "$1" > /dev/null; exit 0' _ "$MSG"
	repolled
	expect 0 listed
	expect 1 inflight
	expect 0 attempts "$MSG"
	rm "$MSG"
	repolled
	queue_empty
}

# man: opener-end
@test "4: how the opener ended does not matter" {
	OPTS=retry_delay=100ms fresh job
	bash -c 'grep nothing "$1"; head -c 1 "$1"; cat "$1" | true; rm "$1"' _ "$MSG"
	repolled
	queue_empty
}

@test "4: twenty handlers that fail at once: one attempt each" {
	spool_mount retry_delay=100ms
	"$CLIENTS/fill" "$Q" m 20
	wait_listed 20
	for f in "$Q"/*; do
		bg bash -c 'cat "$1" > /dev/null; exit 1' _ "$f"
	done
	wait_until 20 is 20 all_attempts
	expect 1 attempts_seen
}
all_attempts() {
	for f in "$Q"/*; do
		attempts "$f"
		echo
	done | grep -c 1
}
attempts_seen() {
	for f in "$Q"/*; do
		attempts "$f"
		echo
	done | sort -u
}

# man: claim-unread
@test "4: a handler that reads nothing: no attempt" {
	fresh job
	not bash -c ': < "$1"; exit 1' _ "$MSG"
	wait_until 5 is 1 listed
	expect 0 attempts "$MSG"
	flock "$MSG" true
	wait_until 5 is 1 listed
	expect 0 attempts "$MSG"
	expect 0 inflight
}

# man: claim-empty
@test "4: an empty message counts as read" {
	spool_mount retry_delay=100ms
	: > "$Q/empty"
	wait_listed 1
	MSG=$(message empty)
	not bash -c 'cat "$1"; exit 1' _ "$MSG"
	wait_until 5 is 1 attempts "$MSG"
	wait_listed 1
	cat "$MSG"
	rm "$MSG"
	repolled
	queue_empty
}

# man: lease-went-on, lease-left
@test "4: a loop that goes on: what it left comes back after the visibility timeout" {
	OPTS=visibility=1s,retry_delay=100ms fresh a b
	a=$(message a) b=$MSG
	worker w "$a"
	start=$(now_ms)
	order w "cat '$b'"
	wait_listed 1
	expect "$a" message
	clock_is $((start + 900))
	expect 1 attempts "$a"
	expect claimed attr state "$b"
	expect 0 attempts "$b"
	order w "rm '$b'"
}

# man: lease-renew
@test "4: a handler that runs for 5 visibility timeouts keeps its message" {
	OPTS=visibility=1s fresh a b
	end=$(($(now_ms) + 5500))
	worker w "$(message a)"
	holder h "$(message b)"
	wait_until 20 clock_is "$end"
	expect 0 listed
	expect 2 inflight
	expect 0 control leases_lost
	a=$(claimed a)
	tries EBUSY open "$a"
	expect 0 attempts "$a"
	order w "rm '$a'"
	wait_until 5 is 1 inflight
}

# man: back-bury, dead-revive, dir-dead, xattrs
@test "4: a message that fails 5 times lies in .dead/, and mv brings it back" {
	OPTS=retry_delay=20ms fresh job
	for i in 1 2 3 4 5; do
		wait_listed 1
		expect $((i - 1)) attempts "$MSG"
		not bash -c 'cat "$1" > /dev/null; exit 1' _ "$MSG"
	done
	wait_until 10 is 1 dead
	repolled
	expect 0 listed
	expect 0 inflight
	letter=$(message job "$Q/.dead")
	expect job cat "$letter"
	attr reason "$letter" | grep -q .
	mv "$letter" "$Q/"
	wait_listed 1
	MSG=$(message job)
	expect 0 attempts "$MSG"
	expect 0 dead
	expect job cat "$MSG"
	rm "$MSG"
	repolled
	queue_empty
}

# man: dead-bury, dead-discard
@test "4: mv into .dead/ buries, rm .dead/NAME discards, over a restart" {
	fresh a b
	mv "$(message a)" "$Q/.dead/"
	mv "$(message b)" "$Q/.dead/"
	wait_until 5 is 2 dead
	expect 0 listed
	spool_umount
	spool_mount
	wait_until 5 is 2 dead
	expect a cat "$(message a "$Q/.dead")"
	rm "$(message a "$Q/.dead")"
	sync "$Q/.control"
	expect 1 dead
	mv "$(message b "$Q/.dead")" "$Q/"
	wait_listed 1
	expect b cat "$(message b)"
}

# man: lease-restart
@test "4: a daemon stopped and started again under a running handler: its rm deletes" {
	fresh a b
	worker w "$(message a)"
	spool_umount
	spool_mount
	wait_listed 1
	a=$(claimed a)
	tries EBUSY open "$a"
	order w "rm '$a'"
	sync "$Q/.control"
	expect 0 inflight
	expect 1 listed
	expect 0 dead
}

# man: lease-restart
@test "4: a daemon killed and started again under a running handler: its rm deletes" {
	fresh a
	worker w "$MSG"
	# The claim is on disk in a moment, not before the cat ends.
	sync "$Q/.control"
	spool_kill
	spool_mount
	wait_until 10 is 1 inflight
	refuse 'Device or resource busy' cat "$MSG"
	order w "rm '$MSG'"
	repolled
	queue_empty
}

# man: lease-restart
@test "4: a worker that ended while no daemon ran: its message comes back" {
	fresh a
	worker w "$MSG"
	spool_umount
	kill -KILL "$WORKER"
	wait_until 5 gone "$WORKER"
	spool_mount
	# The shell of the test is the next ancestor alive: it has it now, or it is
	# back, where the kernel told how the worker ended.
	wait_until 10 at_least 1 listed_or_claimed
	expect a cat "$MSG"
	rm "$MSG"
	repolled
	queue_empty
}
listed_or_claimed() { echo $(($(listed) + $(inflight))); }

# man: no-ancestor
@test "4: when no recorded ancestor lives any more, it is released" {
	fresh job
	setsid -w bash -c 'cat "$1" > /dev/null; true' _ "$MSG"
	wait_until 5 is 1 listed
	expect 1 attempts "$MSG"
}

# man: lease-inherit, lease-touch
@test "4: inherit ends a claim of a shell that lives on; touch starts it anew" {
	OPTS=inherit=1s,visibility=500ms,retry_delay=100ms fresh a b
	worker w "$(message a)"
	worker v "$(message b)"
	end=$(($(now_ms) + 2500))
	until clock_is "$end"; do
		order v "touch '$MSG'"
	done
	wait_listed 1
	expect 1 attempts "$(message a)"
	expect claimed attr state "$MSG"
	expect 0 attempts "$MSG"
}

# man: lease-max
@test "4: max_lease ends even the claim of an opener that lives" {
	OPTS=max_lease=1s,visibility=500ms,retry_delay=100ms fresh job
	start=$(now_ms)
	holder h "$MSG"
	wait_until 10 is 1 listed
	clock_is $((start + 900))
	expect 1 attempts "$MSG"
	expect job cat "$MSG"
}

# man: back-touch
@test "4: touch -d gives a message back to be seen then" {
	fresh job
	cat "$MSG" > /dev/null
	start=$(now_ms)
	touch -d '+2 seconds' "$MSG"
	wait_until 5 is 0 inflight
	expect 0 listed
	wait_listed 1
	clock_is $((start + 1000))
	expect job cat "$MSG"
}

# man: owner-release, cmd-release, back-release, back-explicit
@test "4: release gives a message back, also one of another owner" {
	fresh a b
	holder h "$(message a)" "$(message b)"
	a=$(claimed a) b=$(claimed b)
	tell "release ${a##*/} 0"
	wait_until 5 is 1 listed
	start=$(now_ms)
	tell "release ${b##*/} 1500ms"
	wait_until 5 is 0 inflight
	wait_listed 2
	clock_is $((start + 1400))
	expect 1 attempts "$(message a)"
}

# man: back-lost
@test "4: a lost lease: EBUSY from rm when another owner here has the message" {
	OPTS=max_lease=600ms,visibility=300ms,retry_delay=100ms fresh job
	worker w "$MSG"
	wait_until 10 is 1 listed
	tell 'set max_lease=1h'
	holder h "$MSG"
	not order w "rm '$MSG'"
	grep -q 'busy' "$BASE/w.said"
	expect 1 inflight
}
