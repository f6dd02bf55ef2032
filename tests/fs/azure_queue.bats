#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What only this source has: creating, names, credentials, dead letters, roles,
# and a run without a mount.
# shellcheck disable=SC2016,SC2030,SC2031

bats_require_minimum_version 1.5.0
export SPOOL_BACKEND=azure
load helpers

setup_file() { build_clients try fill; }

@test "scripts/azurite says what to type, and that works as typed" {
	cd "$BASE"
	bg "$TESTS_DIR/../scripts/azurite" > "$BASE/said"
	wait_until 30 grep -q 'Ctrl-C' "$BASE/said"
	sed -n 's/^    //p' "$BASE/said" > "$BASE/typed"
	grep -q '^export AZURE_STORAGE_CONNECTION_STRING=UseDevelopmentStorage=true$' "$BASE/typed"
	unset AZURE_STORAGE_CONNECTION_STRING
	echo "$BASE/job.d" >> "$BASE/mounts"
	PATH=$SPOOLFS_BUILD:$PATH timeout 30 bash -e "$BASE/typed" 3>&- 4>&-
	echo 'order 4711' > "$BASE/job.d/x"
	wait_until 20 is 1 entries "$BASE/job.d"
	expect 'order 4711' bash -c 'cat "$BASE"/job.d/.peek/*'
	fusermount3 -u "$BASE/job.d"
	wait_until 20 not_served "$BASE/job.d"
}

@test "a queue that is missing is made, unless create=no" {
	refuse '404 QueueNotFound' sdk count "$QUEUE"
	spool_mount create=no
	wait_until 20 grep -q . <(control last_error)
	refuse '404 QueueNotFound' sdk count "$QUEUE"
	spool_umount
	spool_mount
	put job
	expect 1 sdk count "$QUEUE"
}

@test "a bad queue name is refused before the mount" {
	mkdir "$Q"
	for name in ab Jobs jobs_1 jobs--1 -jobs jobs- "$(printf '%064d' 7)" jobs/more; do
		spool_refused 'queue' "$AZURE/$name" "$Q"
	done
	for source in "$AZURE" "$AZURE/" 'https://queue.core.windows.net/jobs' \
		'azure-queue+ftp://127.0.0.1/a/jobs' 'http://127.0.0.1/a/jobs'; do
		spool_refused . "$source" "$Q"
	done
	not_mounted "$Q"
}

@test "dead letters are in QUEUE-poison, and mv brings them back" {
	spool_mount retry_delay=0,max_attempts=2
	put job
	for _ in 1 2; do
		wait_listed 1
		not bash -c 'cat "$Q"/* > /dev/null; exit 1'
	done
	wait_until 20 is 1 dead
	sync "$Q/.control"
	expect 1 sdk count "$QUEUE-poison"
	expect 0 sdk count "$QUEUE"
	expect job cat "$(message job "$Q/.dead")"
	attr reason "$(message job "$Q/.dead")" | grep -q .
	mv "$(message job "$Q/.dead")" "$Q/"
	wait_listed 1
	wait_until 10 is 0 sdk count "$QUEUE-poison"
	MSG=$(message job)
	expect job cat "$MSG"
	rm "$MSG"
	repolled
	queue_empty
}

@test "what somebody else has put into QUEUE-poison is a dead letter here" {
	sdk create "$QUEUE-poison"
	sdk put "$QUEUE-poison" "$(base64 <<< theirs)"
	spool_mount
	wait_until 20 is 1 dead
	expect theirs bash -c 'cat "$Q"/.dead/*'
	rm "$Q"/.dead/*
	sync "$Q/.control"
	wait_until 10 is 0 sdk count "$QUEUE-poison"
}

# ---- leases ---------------------------------------------------------------------

@test "a handling of three visibility timeouts keeps its lease" {
	spool_mount visibility=2s
	spool_mount -n b visibility=2s
	put job
	name=$MSG
	worker w "$(message job)"
	end=$(($(now_ms) + 6500))
	until clock_is "$end"; do
		expect 0 entries "$BASE/b"
		expect '' sdk receive "$QUEUE" 1
	done
	order w "rm '$name'"
	sync "$Q/.control"
	expect 0 sdk count "$QUEUE"
	expect 0 control leases_lost
}

@test "max_lease shorter than the handling: another has it, and the late rm says ENOENT" {
	spool_mount visibility=1s,max_lease=2s,retry_delay=0,role=in
	sdk put "$QUEUE" "$(base64 <<< job)"
	wait_listed 1
	MSG=$(message)
	worker w "$MSG"
	spool_mount -n b visibility=10s
	tell pause
	wait_until 20 is 1 entries "$BASE/b"
	cat "$BASE"/b/* > "$BASE/got"
	expect job cat "$BASE/got"
	not order w "rm '$MSG'"
	grep -q 'No such file' "$BASE/w.said"
	rm "$BASE"/b/.inflight/* || rm "$BASE/b/${MSG##*/}"
	sync "$BASE/b/.control"
	expect 0 sdk count "$QUEUE"
}

# ---- a run without a mount --------------------------------------------------------

@test "spoolfs run: handles, gives back, buries, drains" {
	sdk create "$QUEUE"
	for i in 1 2 3 4 5; do
		sdk put "$QUEUE" "$(base64 <<< "m$i")"
	done
	run -1 timeout 60 "$SPOOLFS_BUILD/spoolfs" run --drain \
		-o encoding=base64,state="$BASE/run",max_attempts=1 "$DB" -- \
		bash -c 'read -r m; echo "$m" >> "$BASE/got"; [ "$m" != m3 ]' 3>&- 4>&-
	sort "$BASE/got" | diff - <(seq -f m%g 5)
	expect 0 sdk count "$QUEUE"
	expect 1 sdk count "$QUEUE-poison"
}

@test "spoolfs run: without root and without /dev/fuse, in a user namespace" {
	sdk create "$QUEUE"
	sdk put "$QUEUE" "$(base64 <<< job)"
	OPEN=$(mktemp -d)
	chmod 777 "$OPEN"
	cp "$SPOOLFS_BUILD/spoolfs" "$OPEN/"
	mkdir "$OPEN/state"
	chmod 777 "$OPEN/state"
	run setpriv --reuid=65534 --regid=65534 --clear-groups timeout 60 \
		"$OPEN/spoolfs" run --drain -o "encoding=base64,state=$OPEN/state" "$DB" -- cat 3>&- 4>&-
	rm -rf "$OPEN"
	grep -qx job <<< "$output"
	expect 0 sdk count "$QUEUE"
}
