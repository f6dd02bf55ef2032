#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kill -9 of the daemon at random moments under 8 writers and 2 readers. Each
# client writes down what it was told; afterwards it must have been true.
# SPOOLFS_KILL_ROUNDS says how often (25).
# shellcheck disable=SC2016,SC2030,SC2031

load ../fs/helpers

setup_file() { build_clients journal; }

export BATS_TEST_TIMEOUT=$((60 + ${SPOOLFS_KILL_ROUNDS:-25} * 5))

# Nothing waits out of sight: no delay, no .dead/, a window for all.
OPTS=retry_delay=0,max_attempts=1000,window=20000

# client HOW NAME: one of the round's clients.
client() {
	bg "$CLIENTS/journal" "$1" "$Q" "$BASE/book" "$2" 2> "$BASE/said.$2"
	CLIENTS_PIDS+=("$BG")
}

# start ROUND: 8 writers, three of which rename, and 2 readers.
start() {
	local w
	CLIENTS_PIDS=()
	for w in 1 2 3 4 5; do
		client write "r$1w$w"
	done
	for w in 6 7 8; do
		client rename "r$1w$w"
	done
	client read "r$1a"
	client read "r$1b"
}

# All clients of the round have ended by the dead mount, and by nothing else.
all_ended() {
	local pid start
	start=$(now_ms)
	for pid in "${CLIENTS_PIDS[@]}"; do
		wait_until 1 gone "$pid"
		wait "$pid" || {
			cat "$BASE"/said.*
			return 1
		}
	done
	[ $(($(now_ms) - start)) -le 1000 ] || {
		echo "the last client was gone after $(($(now_ms) - start)) ms"
		return 1
	}
}

# What the book says is there: closed or renamed, and not deleted.
owed() {
	awk '$1 == "D" { gone[$2] = 1 } $1 != "D" { there[$2] = 1 }
		END { for (n in there) if (!(n in gone)) print n }' "$BASE/book" | sort
}

# Whether all that is owed is in the mount, whole: as a message, or as a draft.
audited() {
	"$CLIENTS/journal" check "$Q" "$BASE/book" > "$BASE/found" 2> "$BASE/audit" || return 1
	cut -d' ' -f2 "$BASE/found" | sort -u > "$BASE/names"
	owed | comm -23 - "$BASE/names" > "$BASE/missing"
	[ ! -s "$BASE/missing" ]
}

# Ends the old account: the queue is emptied now and then.
settle() {
	[ "$(wc -l < "$BASE/found")" -gt 1500 ] || return 0
	spool_umount
	rm -f "$DB"*
	TOLD=$((TOLD + $(wc -l < "$BASE/book")))
	: > "$BASE/book"
	spool_mount "$OPTS"
}

# play ROUND
play() {
	local lines
	start "$1"
	lines=$(($(wc -l < "$BASE/book") + 5 + RANDOM % 400))
	"$CLIENTS/journal" kill "$Q" "$BASE/book" "$lines" "$DAEMON"
	all_ended
	wait_until 5 gone "$DAEMON"
	# Nobody is left in the dead mount, in D state or otherwise.
	wait_until 5 no_survivors
	not timeout 1 ls "$Q" 2> "$BASE/said"
	spool_mount "$OPTS"
	wait_until 15 audited || {
		echo "round $1: $(< "$BASE/audit")"
		echo "missing: $(tr '\n' ' ' < "$BASE/missing")"
		return 1
	}
	settle
}

# man: at-least-once, durable-close, cut-off
@test "8: kill -9 of the daemon under load loses nothing and truncates nothing" {
	local round
	TOLD=0
	: > "$BASE/book"
	spool_mount "$OPTS"
	for round in $(seq "${SPOOLFS_KILL_ROUNDS:-25}"); do
		play "$round"
	done
	# There was something to lose.
	[ $((TOLD + $(wc -l < "$BASE/book"))) -ge 500 ]
}
