# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# What the tests of spoolfs run share, beside helpers.bash. What is slept in them
# is the work of a handler.

# What a run leaves in TMPDIR is looked for. OPEN is for other users.
run_setup() {
	spool_setup
	OPEN=$(mktemp -d)
	chmod 777 "$OPEN"
	export TMPDIR=$BASE/tmp
	mkdir "$TMPDIR"
	run_once 0 -- true
}

run_teardown() {
	rm -rf "$OPEN"
	spool_teardown
}

SPOOLFS=$SPOOLFS_BUILD/spoolfs

enqueue() { python3 "$CLIENTS_SRC/enqueue.py" "$DB" "$@"; }

# rows [WHERE]: how many messages there are; dead_rows: how many dead letters.
rows() { sqlite3 -readonly -cmd '.timeout 5000' "$DB" "SELECT count(*) FROM message WHERE ${1-1}"; }
dead_rows() { sqlite3 -readonly -cmd '.timeout 5000' "$DB" 'SELECT count(*) FROM dead'; }

# run_with [OPTION...] -- COMMAND...: on DB, its lines in BASE/run.log.
# AS is a command to run it under.
AS=()
run_with() {
	local -a options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	"${AS[@]}" timeout 100 "$SPOOLFS" run "${options[@]}" "$DB" "$@" 2>> "$BASE/run.log" \
		< /dev/null 3>&- 4>&-
}

# run_once CODE [OPTION...] -- COMMAND...: until the queue is empty; exits so.
run_once() {
	local want=$1 status=0
	shift
	run_with --drain "$@" || status=$?
	[ "$status" = "$want" ] || {
		echo "expected exit status $want, got $status"
		return 1
	}
}

# run_bg [OPTION...] -- COMMAND...: in the background, its pid in RUN.
run_bg() {
	local -a options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	# shellcheck disable=SC2086
	bg $WRAP "$SPOOLFS" run "${options[@]}" "$DB" "$@" 2>> "$BASE/run.log"
	RUN=$BG
}

# exits CODE: RUN ends with it.
exits() {
	local status=0
	wait_until 30 gone "$RUN"
	wait "$RUN" || status=$?
	[ "$status" = "$1" ] || {
		echo "expected exit status $1, got $status"
		return 1
	}
}

lines() { wc -l < "$1"; }
nothing_in() { [ -z "$(ls -A "$1")" ]; }
nothing_left_behind() {
	wait_until 5 no_survivors && wait_until 5 nothing_in "$TMPDIR"
}

# As somebody who has no rights but those of a user namespace.
nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups unshare -Ur "$@"; }

# Another program holds the write lock of the queue file until unlock_queue.
lock_queue() {
	bg python3 -c '
import os, sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)
db.execute("BEGIN IMMEDIATE")
open(sys.argv[2], "w").close()
while os.path.exists(sys.argv[2]):
    time.sleep(0.01)
db.execute("ROLLBACK")' "$DB" "$BASE/locked"
	wait_until 20 test -e "$BASE/locked"
}
unlock_queue() { rm "$BASE/locked"; }

# run_every SECONDS N OPTION... -- COMMAND: N runs, started so, as cron does; one
# line "START END CODE LEFT" each in BASE/table: LEFT processes of it were there
# after its end.
one_run() {
	local start end left code=0
	start=$(now_ms)
	RUN_NO=$BASHPID run_with "$@" || code=$?
	end=$(now_ms)
	left=$(timeout 5 grep -lsz "^RUN_NO=$BASHPID\$" /proc/[0-9]*/environ | wc -l) || :
	echo "$start $end $code $left" >> "$BASE/table"
}
run_every() {
	local s=$1 n=$2 start i
	local -a runs=()
	shift 2
	: > "$BASE/table"
	start=$(now_ms)
	for ((i = 0; i < n; i++)); do
		wait_until 60 clock_is $((start + i * s * 1000))
		bg one_run "$@"
		runs+=("$BG")
	done
	wait "${runs[@]}"
}

# What the table says, and whether no run was longer than its time S (in seconds)
# and GRACE (in ms), none ended otherwise than documented, and nothing outlived it.
table_is_good() {
	sort -n "$BASE/table" | awk -v ms=$(($1 * 1000)) -v grace="$2" '
		{ printf "# run %d: %d ms, exit %d, left %d\n", NR, $2 - $1, $3, $4 }
		NR > 1 && last - $1 > overlap { overlap = last - $1 }
		{ last = $2; if ($2 - $1 > longest) longest = $2 - $1 }
		$3 > 1 || $4 > 0 { bad++ }
		END {
			printf "# longest run %d ms, most overlap %d ms\n", longest, overlap
			exit bad || longest > ms + grace
		}'
}
