#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# bats file_tags=sqlite:file
# spoolfs run: a command for each message, without a mount. What is slept here is
# the work of a handler.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034

bats_require_minimum_version 1.5.0
load helpers
load run_helpers

setup_file() { build_clients forkexec; }
setup() { run_setup; }
teardown() { run_teardown; }

# ---- one message --------------------------------------------------------------

# man: run-stdin, run-environ, run-ok
@test "a handler has the body on standard input and the rest in its environment" {
	enqueue 2
	run_once 0 -- bash -c 'printf "%s\n" "$SPOOLFS_ID" "$SPOOLFS_NAME" \
		"$SPOOLFS_GIVEN" "$SPOOLFS_ATTEMPTS" "$SPOOLFS_ENQUEUED" "$SPOOLFS_SOURCE" \
		"$(cat)" > "$BASE/got.$SPOOLFS_GIVEN"'
	expect 0 rows
	mapfile -t got < "$BASE/got.m2"
	[[ ${got[0]} =~ ^[0-9]{16}$ ]]
	[[ ${got[1]} =~ ^[0-9]{8}T[0-9]{6}\.[0-9]{6}Z-${got[0]}-m2$ ]]
	[ "${got[2]} ${got[3]}" = 'm2 0' ]
	[[ ${got[4]} =~ ^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{6}Z$ ]]
	[ "${got[5]} ${got[6]}" = "$DB m2" ]
	expect m1 tail -n 1 "$BASE/got.m1"
	# Once, whatever was there before.
	enqueue 1
	SPOOLFS_ID=mine run_once 0 -- printenv SPOOLFS_ID > "$BASE/ids"
	expect 1 lines "$BASE/ids"
	not grep mine "$BASE/ids"
}

# man: run-file
@test "{} is a private file with the body, gone afterwards" {
	enqueue 1 3000000
	run_once 0 -o suffix=.xml -- bash -c 'echo "$@" > "$BASE/args"; file=${1#--in=}
		stat -c %a "$file" "$(dirname "$file")" > "$BASE/modes"; cmp "$file" - &&
		cp "$file" "$BASE/copy" && : > "$file.out"' _ '--in={}' '{}:{}' 'a{b}'
	expect "$(printf '600\n700')" cat "$BASE/modes"
	expect 3000000 stat -c %s "$BASE/copy"
	read -r one two three < "$BASE/args"
	file=${one#--in=}
	[[ $file == "$TMPDIR"/*/*Z-*-m1 ]]
	[ "$two $three" = "$file:$file a{b}" ]
	nothing_in "$TMPDIR"
}

# man: run-file
@test "the file of {} is gone before the next one comes" {
	enqueue 3
	run_once 0 -- bash -c 'ls "$(dirname "$1")" | wc -l >> "$BASE/files"' _ '{}'
	expect "$(printf '1\n1\n1')" cat "$BASE/files"
}

# man: run-file
@test "a message that is back while its old handler ends has a file of its own" {
	enqueue 1
	run_bg -P 2 -o max_lease=300ms,visibility=200ms,retry_delay=0 --grace 5s -- \
		bash -c 'trap "" TERM; echo >> "$BASE/on"
		n=0; until [ "$(wc -l < "$BASE/on")" = 2 ] || ((n++ > 500)); do sleep 0.01; done
		[ "$SPOOLFS_ATTEMPTS" = 0 ] || exit 0
		until [ -e "$BASE/look" ] || ((n++ > 500)); do sleep 0.01; done
		cat "$1" > "$BASE/copy"' _ '{}'
	wait_until 10 is 0 rows
	: > "$BASE/look"
	wait_until 10 test -s "$BASE/copy"
	expect m1 cat "$BASE/copy"
	not grep -q 'cannot start' "$BASE/run.log"
	kill -TERM "$RUN"
	exits 0
	nothing_left_behind
}

@test "a body that is not read, and a large one, hold nothing up" {
	enqueue 3 20000000
	run_once 0 -P 3 -- true
	expect 0 rows
	enqueue 1 20000000
	run_once 0 -- bash -c 'wc -c > "$BASE/count"'
	expect 20000000 cat "$BASE/count"
}

# man: run-failed
@test "what exits with another status, or is killed, comes back with an attempt" {
	enqueue 2
	run_once 0 -o retry_delay=1h -- bash -c \
		'if [ "$SPOOLFS_GIVEN" = m1 ]; then exit 3; else kill -USR1 $$; fi'
	expect 2 rows 'attempts=1 AND mount IS NULL AND visible_at>0'
	expect 0 dead_rows
}

# man: run-bury, run-exit-buried
@test "the last attempt buries, and the exit status is 1" {
	enqueue 1
	run_once 0 -o retry_delay=0,max_attempts=1000 -- bash -c \
		'echo "$SPOOLFS_ATTEMPTS" >> "$BASE/attempts"; [ "$SPOOLFS_ATTEMPTS" = 3 ]'
	expect "$(printf '0\n1\n2\n3')" cat "$BASE/attempts"
	enqueue 1
	run_once 1 -o retry_delay=0,max_attempts=2 -- false
	expect 0 rows
	expect 1 dead_rows
}

# man: run-parallel
@test "-P handlers run at a time" {
	enqueue 6
	run_once 0 -P 3 -- bash -c 'cd "$BASE"; : > "on.$SPOOLFS_GIVEN"; n=0
		until set -- on.*; [ $# = 3 ] || ((n++ > 500)); do sleep 0.01; done
		echo $# >> together; : > "off.$SPOOLFS_GIVEN"
		until set -- off.*; [ $# -ge 3 ]; do sleep 0.01; done; rm -f "on.$SPOOLFS_GIVEN"
		[ $# -lt 6 ] || exit 0'
	expect 0 rows
	expect 3 head -n 1 "$BASE/together"
	not grep -qx '[4-9]' "$BASE/together"
}

# man: run-lease
@test "the lease is renewed while the handler runs" {
	enqueue 1
	run_once 0 -o visibility=300ms -- bash -c 'sleep 1.2; echo x >> "$BASE/runs"'
	expect 1 lines "$BASE/runs"
	expect 0 rows
}

# man: run-lost
@test "a handler that runs longer than max_lease is ended, with its children" {
	enqueue 1
	run_once 1 -o max_lease=300ms,visibility=200ms,max_attempts=1 --grace 200ms -- \
		bash -c 'trap "" TERM; sleep 1000 & wait; wait; sleep 1000'
	grep -q 'lease was lost' "$BASE/run.log"
	expect 1 dead_rows
	nothing_left_behind
}

# man: run-group
@test "a handler leads a process group, and no signal is blocked or ignored" {
	enqueue 1
	run_once 0 -- bash -c 'set -- $(cut -d" " -f5 /proc/$$/stat); [ "$1" = $$ ] &&
		grep -E "^Sig(Blk|Ign)" /proc/self/status > "$BASE/signals"'
	expect 0 rows
	expect "$(grep -E '^SigBlk' /proc/self/status)" head -n 1 "$BASE/signals"
	not grep -qE '^SigIgn:.*1...$' "$BASE/signals"
}

# ---- the end of a run -----------------------------------------------------------

# man: run-drain
@test "--drain waits for nothing that is delayed, and for all that is not" {
	enqueue 300
	run_once 0 -o window=8,retry_delay=1h -P 4 -- bash -c \
		'[ "$SPOOLFS_GIVEN" != m7 ] && echo x >> "$BASE/runs"'
	expect 299 lines "$BASE/runs"
	expect 1 rows
}

# man: run-signal
@test "SIGTERM lets handlers finish, and takes no further message" {
	enqueue 5
	run_bg -- bash -c 'echo >> "$BASE/on"; sleep 1; echo >> "$BASE/off"'
	wait_until 10 test -s "$BASE/on"
	kill -TERM "$RUN"
	# Unread ones go back at once, the handler goes on.
	wait_until 5 is 4 rows visible_at=0
	not test -e "$BASE/off"
	exits 0
	expect 1 lines "$BASE/on"
	expect 1 lines "$BASE/off"
	expect 4 rows 'visible_at=0 AND attempts=0'
	nothing_left_behind
}

# man: run-signal-grace
@test "after --grace handlers get the signal, and are killed after it again" {
	enqueue 2
	run_bg -P 2 --grace 300ms -- bash -c \
		'if [ "$SPOOLFS_GIVEN" = m1 ]; then trap "echo term > $BASE/term; exit 0" TERM; fi
		[ "$SPOOLFS_GIVEN" = m1 ] || trap "" TERM
		echo >> "$BASE/on"; sleep 1000
		while :; do sleep 1000; done' _ '{}'
	wait_until 10 is 2 lines "$BASE/on"
	start=$(now_ms)
	kill -TERM "$RUN"
	exits 0
	clock_is $((start + 600))
	not clock_is $((start + 5000))
	expect term cat "$BASE/term"
	# The one ended well, of its own accord; the other did not.
	expect 1 rows
	expect 1 rows 'attempts=1'
	nothing_left_behind
}

# man: run-signal-ignored
@test "a signal that was ignored at the start stays so" {
	enqueue 1
	run_bg -- bash -c 'echo >> "$BASE/on"; sleep 0.5; echo >> "$BASE/off"'
	wait_until 10 test -s "$BASE/on"
	# As every command behind & of a script.
	kill -INT "$RUN"
	wait_until 10 test -s "$BASE/off"
	enqueue 1
	wait_until 10 is 2 lines "$BASE/off"
	kill -TERM "$RUN"
	exits 0
}

# man: run-signal-again
@test "a second signal kills at once" {
	enqueue 2
	run_bg -P 2 -o retry_delay=0 -- bash -c 'trap "" TERM; echo >> "$BASE/on"; sleep 1000' _ '{}'
	wait_until 10 is 2 lines "$BASE/on"
	start=$(now_ms)
	kill -TERM "$RUN"
	# It is seen: unread messages go back, here there is none.
	kill -HUP "$RUN"
	wait_until 5 gone "$RUN"
	not clock_is $((start + 5000))
	expect 2 rows 'attempts=1'
	nothing_left_behind
}

# man: run-killed
@test "when the run is killed, handlers, their children and files go with it" {
	enqueue 2
	run_bg -P 2 -o visibility=500ms -- bash -c 'sleep 1000 & echo >> "$BASE/on"; wait' _ '{}'
	wait_until 10 is 2 lines "$BASE/on"
	# Recorded: it will have been an attempt.
	wait_until 5 is 2 rows 'record IS NOT NULL'
	kill -KILL "$RUN"
	nothing_left_behind
	run_bg -- bash -c 'echo "$SPOOLFS_ATTEMPTS" >> "$BASE/attempts"'
	wait_until 10 is 2 lines "$BASE/attempts"
	expect 1 sort -u "$BASE/attempts"
	kill -TERM "$RUN"
	exits 0
}

# man: run-killed
@test "a killed run leaves no files, even of handlers that went on making some" {
	for i in 1 2 3 4 5 6 7 8; do
		enqueue 4
		: > "$BASE/on"
		run_bg -P 4 -- bash -c 'd=$(dirname "$1"); echo >> "$BASE/on"
			for i in 1 2; do (while :; do : > "$d/$i.$RANDOM"; done) & done
			while :; do : > "$d/$RANDOM"; done' _ '{}'
		wait_until 10 is 4 lines "$BASE/on"
		wait_until 5 test -n "$(find "$TMPDIR" -name '1.*' -print -quit)"
		kill -KILL "$RUN"
		nothing_left_behind
		rm -f "$DB"*
		run_once 0 -- true
	done
}

# man: run-bounded
@test "a handler that hangs is ended with the run" {
	enqueue 3
	start=$(now_ms)
	status=0
	run_with -o run_for=1500ms,estimated_duration=100ms -- bash -c \
		'[ "$SPOOLFS_GIVEN" = m2 ] && sleep 1000; true' || status=$?
	[ "$status" = 0 ]
	not clock_is $((start + 2500))
	expect 2 rows
	expect 1 rows 'attempts=1'
	nothing_left_behind
}

# man: run-bounded
@test "idle_timeout ends a run" {
	enqueue 1
	start=$(now_ms)
	run_with -o idle_timeout=500ms -- sleep 0.3
	clock_is $((start + 800))
	expect 0 rows
}

@test "with standard descriptors closed it works, and its handlers have them" {
	enqueue 2
	timeout 30 "$SPOOLFS" run --drain -v -P 2 "$DB" -- bash -c \
		'if [ "$SPOOLFS_GIVEN" = m2 ]; then
			n=0; until [ -e "$BASE/got.m1" ] || ((n++ > 500)); do sleep 0.01; done
			sleep 0.3 # the line about m1 is written
		fi
		for fd in 0 1 2; do [ -e "/proc/$$/fd/$fd" ] || exit 1; done
		cat > "$BASE/got.$SPOOLFS_GIVEN"' <&- >&- 2>&-
	expect 0 rows
	expect m2 cat "$BASE/got.m2"
}

# man: run-drafts
@test "a run leaves the drafts of a killed mount to the next mount" {
	spool_mount
	printf half > "$Q/cut.tmp"
	wait_until 5 is 1 drafts
	sync "$Q/.control"
	spool_kill
	run_bg -o poll_floor=50ms -- true
	enqueue 1
	wait_until 10 is 0 rows
	spool_mount
	expect 1 drafts
	expect half cat "$Q"/.drafts/*
	kill -TERM "$RUN"
	exits 0
	# One that comes and goes forgets neither them nor its own traces.
	spool_kill
	run_once 0 -- true
	run_once 0 -- true
	expect 2 sqlite3 -readonly "$DB" 'SELECT count(*) FROM mount'
	spool_mount
	expect half cat "$Q"/.drafts/*
}

# ---- how it is told ---------------------------------------------------------------

# man: run-mount-options, run-exit-usage
@test "usage: what is refused, and why" {
	for args in '' "$DB" "$DB true" "$DB -- " '-P 0 x -- true' '-P x x -- true' \
		'--grace x x -- true' '--nonsense x -- true' '-o nonsense x -- true' \
		'-o done=x x -- true' '-o role=in x -- true' '-o nosuid x -- true' \
		'-o allow_other x -- true' '-o run_for=1s x -- true' 'sb://x -- true' \
		'x -- no-such-program' 'x -- /etc/passwd' 'x -- /etc'; do
		# shellcheck disable=SC2086
		run -64 timeout 5 "$SPOOLFS" run $args
		[[ $output == 'spoolfs run: '* ]]
	done
	run -64 "$SPOOLFS" run -o done=x "$DB" -- true
	[[ $output == *'done: is for a mount'* ]]
	run -0 "$SPOOLFS" run --help
	[[ $output == *usage:* ]]
}

# man: run-exit-unavailable
@test "69 when the queue does not answer" {
	run -69 timeout 20 "$SPOOLFS" run --drain "$BASE/none/q.db" -- true
	echo nonsense nonsense nonsense > "$BASE/broken.db"
	run -69 timeout 20 "$SPOOLFS" run --drain "$BASE/broken.db" -- true
}

# man: run-exit-unavailable
@test "69 when the queue does not answer any more" {
	enqueue 1
	mkfifo "$BASE/go"
	run_bg --drain -- bash -c 'echo >> "$BASE/on"; read -r _ < "$BASE/go"'
	wait_until 10 test -e "$BASE/on"
	lock_queue
	echo > "$BASE/go"
	wait_until 30 grep -q 'receive: ' "$BASE/run.log"
	unlock_queue
	exits 69
	# And yet what was handled is.
	expect 0 rows
}

# man: run-verbose, run-summary
@test "a line for each message with -v, and a summary always" {
	enqueue 2
	: > "$BASE/run.log"
	run_once 0 -v -o retry_delay=1h -- bash -c '[ "$SPOOLFS_GIVEN" = m1 ] || exit 7'
	grep -qE '^info run: handled name=[^ ]*-m1 exit=0 ms=[0-9]+$' "$BASE/run.log"
	grep -qE '^info run: failed name=[^ ]*-m2 exit=7 ms=[0-9]+$' "$BASE/run.log"
	tail -n 1 "$BASE/run.log" | grep -qE \
		'^spoolfs run: 1 handled, 1 failed, 0 buried in [0-9.]+ s \([0-9.]+/s\)$'
}

# man: run-progress
@test "a terminal is shown the progress" {
	enqueue 3
	script -qec "'$SPOOLFS' run --drain '$DB' -- sleep 0.3" /dev/null < /dev/null > "$BASE/tty"
	grep -qE '[0-9]+ handled, 0 failed, [0-9]+ waiting, [0-9]+/s, [0-9]+ s left' "$BASE/tty"
}

# man: run-unprivileged
@test "without root and without /dev/fuse, in a user namespace" {
	export OPEN DB=$OPEN/q.db TMPDIR=$OPEN
	cp "$SPOOLFS" "$OPEN/spoolfs"
	: > "$OPEN/log"
	nobody_runs true
	chmod a+rw "$OPEN"/*
	enqueue 50
	refuse 'Permission denied' nobody bash -c ': < /dev/fuse'
	nobody_runs bash -c 'echo "$(id -u) $SPOOLFS_GIVEN" >> "$OPEN/done"; cmp - "$1"' _ '{}'
	expect 0 rows
	expect 50 bash -c 'sort -u "$OPEN/done" | grep -c "^0 m"'
}
nobody_runs() {
	nobody timeout 30 "$OPEN/spoolfs" run --drain -P 2 "$DB" -- "$@" 2>> "$OPEN/log"
}

# man: run-exit-denied
@test "77 when the queue is somebody else's" {
	export OPEN DB=$OPEN/q.db
	cp "$SPOOLFS" "$OPEN/spoolfs"
	run_once 0 -- true
	chmod 600 "$OPEN"/q.db*
	run -77 setpriv --reuid=65534 --regid=65534 --clear-groups \
		timeout 30 "$OPEN/spoolfs" run --drain "$DB" -- true
}

# ---- what an issue asked for --------------------------------------------------------

# scheduled N: a run each RUN_SECONDS (2), RUN_COUNT (8) of them, on N messages, each
# with RUN_WORK (0) seconds of work; a tenth of the handlings fails, m33 hangs.
scheduled() {
	local s=${RUN_SECONDS:-2}
	export LOG=$OPEN/handled RUN_WORK=${RUN_WORK:-0}
	enqueue "$1"
	: > "$LOG"
	chmod a+w "$LOG"
	run_every "$s" "${RUN_COUNT:-8}" -P 2 -o "run_for=${s}s,estimated_duration=100ms" \
		-o retry_delay=100ms,max_attempts=3 --grace 500ms -- bash -c \
		'if [ "$SPOOLFS_GIVEN" = m33 ]; then sleep 1000; fi
		sleep "$RUN_WORK"
		[ $((RANDOM % 10)) != 0 ] || exit 1
		echo "$SPOOLFS_GIVEN" >> "$LOG"'
	echo "# $1 messages: $(lines "$LOG") handled, $(dead_rows) dead, $(rows) left"
	table_is_good "$s" 900 # --grace, and starting and ending
	wait_until 5 no_survivors
	expect 0 rows
	# Each message is handled once, or dead.
	expect $(($1 - $(dead_rows))) lines "$LOG"
	expect "$(lines "$LOG")" bash -c 'sort -u "$LOG" | wc -l'
	at_least 1 dead_rows
	grep -q ' 1 0$' "$BASE/table"
}

# man: run-at-least-once
@test "5: runs back to back, with handlers that fail and one that hangs" {
	scheduled 500
}

# man: run-unprivileged
@test "5: the same without root and without /dev/fuse" {
	export DB=$OPEN/q.db TMPDIR=$OPEN/tmp
	mkdir -m 777 "$TMPDIR"
	cp "$SPOOLFS" "$OPEN/spoolfs"
	SPOOLFS=$OPEN/spoolfs AS=(nobody)
	refuse 'Permission denied' nobody bash -c ': < /dev/fuse'
	run_once 0 -- true
	chmod a+rw "$OPEN"/q.db*
	scheduled "${RUN_MESSAGES:-200}"
	nothing_in "$TMPDIR"
}

# man: run-at-least-once
@test "6: ended and killed at random, nothing is lost and nothing left behind" {
	rounds=${ROUNDS:-20}
	# More than they can handle.
	n=$((rounds * 30))
	enqueue "$n"
	RANDOM=6
	for ((i = 0; i < rounds; i++)); do
		: > "$BASE/on"
		run_bg -P 3 --grace 100ms -o visibility=300ms,max_attempts=1000,retry_delay=1ms \
			-- bash -c 'echo $$ >> "$BASE/on"; cmp -s - "$1" || exit 1
			sleep 0.0$((RANDOM % 10)); echo "$SPOOLFS_GIVEN" >> "$BASE/handled"' _ '{}'
		wait_until 10 at_least $((RANDOM % 8 + 1)) lines "$BASE/on"
		case $((RANDOM % 3)) in
		0) kill -TERM "$RUN" ;;
		1) kill -KILL "$RUN" ;;
		2)
			kill -KILL "-$(tail -n 1 "$BASE/on")" 2> /dev/null || :
			kill -TERM "$RUN"
			;;
		esac
		wait_until 5 gone "$RUN"
		nothing_left_behind
	done
	run_bg -P 3 -o max_attempts=1000 -- bash -c 'echo "$SPOOLFS_GIVEN" >> "$BASE/handled"'
	wait_until 30 is 0 rows
	kill -TERM "$RUN"
	exits 0
	expect 0 dead_rows
	expect "$n" bash -c 'sort -u "$BASE/handled" | wc -l'
}

# man: run-outage
@test "7: when everything fails for a while, nothing dies of it" {
	enqueue 100
	: > "$BASE/down"
	run_bg -P 4 -o retry_delay=100ms,max_attempts=3 -- bash -c \
		'echo >> "$BASE/tries"; [ ! -e "$BASE/down" ] && echo "$SPOOLFS_GIVEN" >> "$BASE/handled"'
	wait_until 10 grep -q 'all handlers fail' "$BASE/run.log"
	start=$(now_ms)
	wait_until 20 clock_is $((start + 4000))
	expect 0 dead_rows
	expect 100 rows
	# Without pauses it would have been hundreds.
	not at_least 30 lines "$BASE/tries"
	rm "$BASE/down"
	wait_until 20 is 0 rows
	grep -q 'handlers succeed again' "$BASE/run.log"
	expect 100 bash -c 'sort -u "$BASE/handled" | wc -l'
	expect 0 dead_rows
	kill -TERM "$RUN"
	exits 0
}

# man: run-outage-others
@test "7: nor when what failed is there again at once" {
	enqueue 100
	: > "$BASE/down"
	run_bg -P 2 -o retry_delay=0,max_attempts=3 -- bash -c \
		'if [ -e "$BASE/down" ]; then sleep 0.1; exit 1; fi
		echo "$SPOOLFS_GIVEN" >> "$BASE/handled"'
	wait_until 10 grep -q 'all handlers fail' "$BASE/run.log"
	expect 0 rows 'attempts>1'
	expect 0 dead_rows
	rm "$BASE/down"
	wait_until 20 is 0 rows
	expect 0 dead_rows
	expect 100 bash -c 'sort -u "$BASE/handled" | wc -l'
	kill -TERM "$RUN"
	exits 0
}

# man: run-outage
@test "bad messages at the head of the queue do not hold up the good ones" {
	enqueue 40
	run_bg -o retry_delay=1h -- bash -c '[ "${SPOOLFS_GIVEN#m}" -gt 10 ] || exit 1
		echo "$SPOOLFS_GIVEN" >> "$BASE/handled"'
	wait_until 30 is 30 lines "$BASE/handled"
	grep -q 'all handlers fail' "$BASE/run.log"
	kill -TERM "$RUN"
	exits 0
	expect 10 rows
}

# man: run-cost
@test "9: a run costs little more than starting the commands" {
	n=2000
	for ((try = 0; try < 8; try++)); do
		enqueue "$n"
		start=$(now_ms)
		"$CLIENTS/forkexec" "$n" "$(type -P true)"
		bare=$(($(now_ms) - start))
		start=$(now_ms)
		run_once 0 -- true
		took=$(($(now_ms) - start))
		echo "$n messages: $took ms, the commands alone $bare ms"
		if ((took * 10 <= bare * 13)); then return 0; fi
	done
	return 1
}
