#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A mount with consumers in it and a run, on one queue: the daemon, the run, its
# handlers and the consumers are ended and killed at random. What is slept here is
# the work of a handler. SPOOLFS_KILL_ROUNDS says how often (25).
# shellcheck disable=SC2016,SC2030,SC2031

load ../fs/helpers
load ../fs/run_helpers

setup() { run_setup; }
teardown() { run_teardown; }

export BATS_TEST_TIMEOUT=$((60 + ${SPOOLFS_KILL_ROUNDS:-25} * 5))

# What somebody had who was killed is soon there again, however often.
OPTS=visibility=500ms,max_attempts=1000,retry_delay=1ms,poll_floor=50ms,poll_ceiling=200ms

start_daemon() { PART=daemon spool_mount "$OPTS,inherit=1s"; }

start_run() {
	PART=run run_bg -P 3 --grace 200ms -o "$OPTS" -- bash -c 'echo $$ >> "$BASE/on"
		cmp -s - "$1" || exit 1
		sleep 0.0$((RANDOM % 10)); echo "$SPOOLFS_ID $(cat "$1")" >> "$BASE/handled"' _ '{}'
}

# Handles what .next gives, whether the mount is there or not.
consume() {
	local name id
	while [ ! -e "$BASE/enough" ]; do
		name=$(timeout 2 cat "$Q/.next") || name=
		if [ -z "$name" ]; then
			sleep 0.05
			continue
		fi
		id=${name#*-}
		cat "$Q/$name" > "$BASE/body.$BASHPID" || continue
		echo "${id%%-*} $(< "$BASE/body.$BASHPID")" >> "$BASE/handled"
		rm -f "$Q/$name"
	done 2> /dev/null
}
start_consumer() {
	bg consume
	CONSUMER=$BG
}

# Whether nothing is left of that part: no process, no file.
nothing_of() {
	local file
	while read -r file; do
		file=${file#/proc/}
		not alive "${file%/environ}" || return 1
	done < <(timeout 5 grep -lsz "^PART=$1\$" /proc/[0-9]*/environ)
	[ "$1" != run ] || nothing_in "$TMPDIR"
}

# end PART SIGNAL PID: it goes, with all it had.
end() {
	kill "-$2" "$3"
	wait_until 20 gone "$3"
	wait_until 5 nothing_of "$1"
}

# What is to be handled, and never less than a few rounds need.
refill() {
	[ "$(rows)" -lt 200 ] || return 0
	enqueue 300
	OWED=$((OWED + 300))
}

play() {
	local before
	refill
	before=$(lines "$BASE/handled")
	wait_until 20 at_least $((before + 1 + RANDOM % 30)) lines "$BASE/handled"
	case $1 in
	term-run) end run TERM "$RUN" && start_run ;;
	kill-run) end run KILL "$RUN" && start_run ;;
	term-daemon)
		end daemon TERM "$DAEMON"
		not is_mounted "$Q"
		start_daemon
		;;
	kill-daemon) end daemon KILL "$DAEMON" && start_daemon ;;
	kill-handler) kill -KILL "-$(tail -n 1 "$BASE/on")" || : ;; # it may have ended
	kill-consumer)
		kill -KILL "$CONSUMER"
		start_consumer
		;;
	esac
}

# man: at-least-once, run-at-least-once, run-killed
@test "6: daemon, run, handlers and consumers ended at random: nothing lost or left" {
	local round what
	local -a whats=(term-run kill-run term-daemon kill-daemon kill-handler kill-consumer)
	OWED=0
	RANDOM=66
	: > "$BASE/on"
	: > "$BASE/handled"
	start_daemon
	start_run
	start_consumer
	start_consumer
	for ((round = 1; round <= ${SPOOLFS_KILL_ROUNDS:-25}; round++)); do
		what=${whats[RANDOM % 6]}
		play "$what" || {
			echo "round $round: $what"
			return 1
		}
	done
	: > "$BASE/enough"
	end daemon TERM "$DAEMON"
	not is_mounted "$Q"
	wait_until 30 is 0 rows
	end run TERM "$RUN"
	wait_until 10 no_survivors
	expect 'q.db q.db-lock' bash -c 'cd "$BASE" && echo q.db*'
	echo "# $OWED messages, handled $(lines "$BASE/handled") times" >&3
	expect 0 dead_rows
	expect "$OWED" bash -c 'sort -u "$BASE/handled" | wc -l'
	# Each with its own body: names go round, m1 to m300.
	expect "$OWED" awk '{ n += $2 == "m" ($1 - 1) % 300 + 1 && !seen[$1]++ } END { print n }' \
		"$BASE/handled"
}
