#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# bats file_tags=sqlite:local
# The announcer by itself, told by the test what the daemon would tell it.

load helpers

# announcer: starts one for Q; A has its pipes, A_PID its pid.
announcer() {
	spool_mount announce=off
	coproc A { exec "$SPOOLFS_BUILD/spoolfs-announcer" "$Q" 2> /dev/null; }
	echo "$A_PID" >> "$BASE/pids"
}

# record KIND NAME: one, as the announcer reads it.
record() {
	printf '%s%b%s' "$1" "$(printf '\\x%02x\\x%02x' $((${#2} & 255)) $((${#2} >> 8)))" "$2"
}

# answers N: the next N answers.
answers() {
	local text
	read -r -N "$1" -t 10 -u "${A[0]}" text
	echo "$text"
}

# does WANT KIND NAME
does() {
	record "$2" "$3" >&"${A[1]}"
	expect "$1" answers 1
}

# state PID: R, S, Z, ...
state() { sed 's/.*) //; s/ .*//' "/proc/$1/stat"; }

@test "6: announcer: creates, opens and unlinks, with one answer each" {
	announcer
	does . C x
	wait_listed 1
	does . T .control
	does ! T nothing
	f=$(basename "$(message x)")
	does ! C "$f"
	does . D "$f"
	wait_listed 0
	does ! D "$f"
	does ! R x
}

@test "6: announcer: a batch is answered in order, a cut record when it is whole" {
	announcer
	{
		record D nothing
		record T .control
		record X .control
		record T .control
		printf 'T\010\000.con'
	} > "$BASE/batch"
	cat "$BASE/batch" >&"${A[1]}"
	expect '!.!.' answers 4
	printf 'trolT\010' >&"${A[1]}"
	expect . answers 1
	printf '\000.control' >&"${A[1]}"
	expect . answers 1
}

@test "6: announcer: no name leads out of the mount" {
	announcer
	does ! C ../out
	does ! C .
	does ! C ..
	does ! C ''
	does ! C /tmp/out
	does ! C "$(printf 'x%.0s' {1..256})"
	does ! C "$(printf 'x%.0s' {1..9000})"
	does ! D ../mounts
	does ! T ../mounts
	does . T .control
	[ ! -e "$BASE/out" ]
	[ -e "$BASE/mounts" ]
}

@test "6: announcer: keeps no descriptor and no directory" {
	exec 8< "$BASE"
	announcer
	exec 8<&-
	does . T .control
	expect '0 1 2 ' eval "ls /proc/$A_PID/fd | tr '\\n' ' '"
	expect / readlink "/proc/$A_PID/cwd"
}

@test "6: announcer: does not hold the mount, and leaves alone what is below" {
	announcer
	does . T .control
	spool_umount
	does ! C x
	expect '' ls -A "$Q"
}

@test "6: announcer: touches nothing where it never saw a mount" {
	announcer
	spool_umount
	does ! C x
	expect '' ls -A "$Q"
}

@test "6: announcer: a dead mount is an error, and no reason to spin" {
	announcer
	does . T .control
	spool_kill
	does ! C x
	wait_until 10 is S state "$A_PID"
	does ! T .control
}

@test "6: announcer: ends with its pipe, not by a signal" {
	announcer
	does . T .control
	kill -TERM "$A_PID"
	kill -INT "$A_PID"
	kill -HUP "$A_PID"
	does . T .control
	pid=$A_PID in=${A[1]}
	exec {in}>&-
	wait "$pid"
}

@test "6: announcer: goes on when nobody reads its answers" {
	spool_mount announce=off
	mkfifo "$BASE/in" "$BASE/answers"
	exec 8<> "$BASE/answers" 9<> "$BASE/in"
	# shellcheck disable=SC2016
	bg bash -c 'exec "$0" "$1" < "$2/in" > "$2/answers"' \
		"$SPOOLFS_BUILD/spoolfs-announcer" "$Q" "$BASE"
	# A pipe holds 65536.
	printf 'X\001\000a%.0s' {1..70000} >&9
	record C x >&9
	wait_listed 1
	exec 8>&- 9>&-
}
