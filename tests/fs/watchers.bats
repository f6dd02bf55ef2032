#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# bats file_tags=azure:slow
# Watchers see what other mounts and the clock do.
# shellcheck disable=SC2016,SC2030,SC2031

load helpers

setup_file() { build_clients fill hold; }

setup() {
	spool_setup
	export B=$BASE/b
}

# two_mounts [OPTIONS]: Q is watched; B, which never receives, is where others write.
two_mounts() {
	spool_mount "$@"
	spool_mount -n b role=out
}

# inotify MASK...: its lines "EVENT NAME" in BASE/events.
inotify() {
	bg inotifywait -m --format '%e %f' -e "$1" "$Q" > "$BASE/events" 2> "$BASE/said"
	wait_until 10 grep -q established "$BASE/said"
}

# event TEXT: the watcher told it.
event() { grep -qxF -- "$1" "$BASE/events"; }

# man: inotify-arrives, inotify-whole
@test "10: inotifywait sees CREATE and CLOSE_WRITE of another mount's message" {
	two_mounts
	inotify create,close_write,moved_to,delete
	echo hi > "$B/x"
	wait_listed 1
	name=$(basename "$(message x)")
	wait_until 10 event "CLOSE_WRITE,CLOSE $name"
	event "CREATE $name"
	expect 2 grep -c -- "$name" "$BASE/events"
	# At the event the message is whole, and still unread.
	expect ready attr state "$Q/$name"
	expect hi cat "$Q/$name"
	rm "$Q/$name"
	wait_until 10 event "DELETE $name"
}

@test "10: inotifywait without -m, as scripts wait" {
	two_mounts
	bg bash -c 'inotifywait -q -e close_write --format %f --exclude "\.control" "$Q" > "$BASE/name" &&
		cat "$Q/$(cat "$BASE/name")" > "$BASE/got"' 2> "$BASE/said"
	wait_until 10 inotify_watches
	echo hi > "$B/x"
	wait "$BG"
	expect hi cat "$BASE/got"
}
# Whether a process of this test watches something.
inotify_watches() {
	local pid
	for pid in $(pgrep -x inotifywait); do
		grep -qsz "^SPOOLFS_TEST=$BASE\$" "/proc/$pid/environ" &&
			grep -qs '^inotify wd' "/proc/$pid/fdinfo/"* && return 0
	done
	return 1
}

# bats test_tags=sqlite:name
# man: inotify-whole
@test "10: 500 messages: each announced once, none before it is listed" {
	two_mounts
	bg "$CLIENTS_SRC/watch.py" "$Q" > "$BASE/events"
	wait_until 10 event WATCHING
	"$CLIENTS/fill" "$B" m 500
	wait_listed 500
	ls "$Q" > "$BASE/names"
	wait_until 20 is 500 grep -c '^CLOSE_WRITE .*-m-' "$BASE/events"
	for kind in CREATE CLOSE_WRITE; do
		grep "^$kind .*-m-" "$BASE/events" | cut -d' ' -f2 | sort | diff - "$BASE/names"
	done
	expect 1000 grep -c -- -m- "$BASE/events"
}

@test "10: entr" {
	two_mounts
	# It leaves with status 2 when the directory has a new file.
	bg bash -c 'ls "$Q/.control" | entr -dn touch "$BASE/ran" > "$BASE/said" 2>&1
		echo $? > "$BASE/status"'
	wait_until 10 test -e "$BASE/ran"
	wait_until 20 entr_ends
	expect 2 cat "$BASE/status"
}
# It counts the names anew after each event, for a second: one that comes in that
# time is no change to it. So there is one more when it has had its second.
entr_ends() {
	[ ! -s "$BASE/status" ] || return 0
	clock_is "${next_ms:-0}" || return 1
	next_ms=$(($(now_ms) + 2000))
	echo hi > "$B/x"
	return 1
}

@test "10: Python, by the system calls" {
	two_mounts
	bg "$CLIENTS_SRC/watch.py" "$Q" > "$BASE/events"
	wait_until 10 event WATCHING
	echo hi > "$B/x"
	wait_listed 1
	name=$(basename "$(message x)")
	wait_until 10 event "CLOSE_WRITE $name"
	event "CREATE $name"
	cat "$Q/$name" > /dev/null
	rm "$Q/$name"
	wait_until 10 event "DELETE $name"
}

@test "10: Node's chokidar" {
	two_mounts
	export NODE_PATH=${NODE_PATH:-$BATS_TEST_DIRNAME/../../build/node/node_modules}
	bg node "$CLIENTS_SRC/watch.cjs" "$Q" > "$BASE/events"
	wait_until 20 event ready
	echo hi > "$B/x"
	wait_listed 1
	name=$(basename "$(message x)")
	wait_until 10 event "add $name"
	cat "$Q/$name" > /dev/null
	rm "$Q/$name"
	wait_until 10 event "unlink $name"
}

@test "10: one's own message is announced as well" {
	spool_mount
	inotify create,close_write,delete
	put x
	wait_until 10 event "CLOSE_WRITE,CLOSE ${MSG##*/}"
	event "CREATE ${MSG##*/}"
}

# bats test_tags=sqlite:peers
# man: inotify-leaves
@test "10: a message that another consumer takes raises DELETE" {
	spool_mount
	put a
	put b
	inotify delete
	spool_mount -n b
	bg dash -c 'for i in 1 2; do f=$(cat "$B/.next"); cat "$B/$f"; rm "$B/$f"; done' \
		> "$BASE/got"
	wait_until 15 gone "$BG"
	expect 2 grep -c . "$BASE/got"
	wait_listed 0
	wait_until 10 is 2 grep -c '^DELETE .*-[ab]$' "$BASE/events"
}

# man: inotify-again
@test "10: a message whose claim ends leaves and arrives again" {
	spool_mount max_lease=600ms,visibility=300ms,retry_delay=100ms
	put job
	name=${MSG##*/}
	inotify create,close_write,delete
	cat "$MSG" > /dev/null
	wait_until 10 event "CLOSE_WRITE,CLOSE $name"
	printf '%s\n' "DELETE $name" "CREATE $name" "CLOSE_WRITE,CLOSE $name" > "$BASE/want"
	head -n 3 <(grep -F -- "$name" "$BASE/events") | diff "$BASE/want" -
}

# man: inotify-leaves
@test "10: a message that goes to .dead/ of itself raises DELETE" {
	spool_mount max_attempts=1
	put job
	inotify delete
	not bash -c 'cat "$1"; exit 1' _ "$MSG"
	wait_until 10 event "DELETE ${MSG##*/}"
	wait_until 10 is 1 dead
}

# man: inotify-leaves
@test "10: a lost lease raises DELETE: another daemon has the message" {
	spool_mount visibility=1s
	put job
	inotify delete
	# The first daemon cannot renew: its lease runs out, another mount takes it.
	kill -STOP "$DAEMON"
	first=$DAEMON
	spool_mount -n b
	wait_until 15 is 1 entries "$B"
	cat "$(message job "$B")" > /dev/null
	rm "$B/${MSG##*/}"
	sync "$B/.control"
	kill -CONT "$first"
	wait_until 10 event "DELETE ${MSG##*/}"
	expect 0 listed
	expect 0 dead
}

# man: announce-rename
@test "10: announce=rename raises MOVED_TO alone" {
	two_mounts announce=rename
	inotify create,close_write,moved_to,moved_from,delete
	echo hi > "$B/x"
	wait_listed 1
	name=$(basename "$(message x)")
	wait_until 10 event "MOVED_TO $name"
	expect 1 grep -c -- "$name" "$BASE/events"
	expect hi cat "$Q/$name"
}

# man: announce-off
@test "10: announce=off lists at once and raises nothing" {
	two_mounts announce=off
	not announcer_pid
	inotify create,close_write,moved_to,delete
	echo hi > "$B/x"
	wait_listed 1
	repolled
	not grep -- -x "$BASE/events"
	expect hi cat "$(message x)"
}

# man: inotify-state
@test "10: a change of the poller's state raises CLOSE_WRITE on .control" {
	spool_mount
	inotify close_write
	before=$(grep -cx 'CLOSE_WRITE,CLOSE .control' "$BASE/events" || :)
	tell pause
	# One for the shell that wrote the command, one for the change.
	wait_until 10 at_least $((before + 2)) grep -cx 'CLOSE_WRITE,CLOSE .control' \
		"$BASE/events"
}

@test "10: a watch on .control sees the poller's state change" {
	spool_mount
	bg inotifywait -m -e close_write "$Q/.control" > "$BASE/events" 2> "$BASE/said"
	wait_until 10 grep -q established "$BASE/said"
	tell pause
	wait_until 10 at_least 2 grep -c CLOSE_WRITE "$BASE/events"
}

# bats test_tags=sqlite:name
# man: announcer, key-announcer
@test "10: killing the announcer changes nothing but announcer= until it is back" {
	two_mounts
	put a
	up=$(control announcer)
	[ "$up" != down ]
	old=$(announcer_pid)
	kill -KILL "$old"
	wait_until 5 gone "$old"
	expect ready attr state "$MSG"
	expect a cat "$MSG"
	rm "$MSG"
	echo b > "$B/b"
	wait_listed 1
	wait_until 20 is "$up" control announcer
	new=$(announcer_pid)
	[ "$new" != "$old" ]
	inotify create,close_write
	echo c > "$B/c"
	wait_until 15 event_of c
	expect 2 listed
}
event_of() { grep -q -- "^CLOSE_WRITE,CLOSE .*-$1\$" "$BASE/events"; }

@test "10: the announcer is killed again and again: no message is lost or listed twice" {
	two_mounts
	bg "$CLIENTS/fill" "$B" m 400 2
	filler=$BG
	until gone "$filler"; do
		kill -KILL "$(announcer_pid)" 2> /dev/null || :
		sleep 0.02
	done
	wait "$filler"
	wait_until 60 is 400 entries "$Q"
	cat "$Q"/.peek/* | diff - <(seq -f 'm-%06g' 400) || cat "$Q"/.peek/* | sort |
		diff - <(seq -f 'm-%06g' 400)
	ls "$Q" > "$BASE/names"
	sort -u "$BASE/names" | diff "$BASE/names" -
}

@test "10: with the announcer stopped the daemon works on" {
	two_mounts
	a=$(announcer_pid)
	kill -STOP "$a"
	echo a > "$Q/a"
	echo b > "$B/b"
	sync "$Q/.control"
	timeout 5 cat "$Q/.control" > /dev/null
	timeout 5 ls -la "$Q" > /dev/null
	kill -CONT "$a"
	wait_listed 2
}

# bats test_tags=sqlite:many
@test "10: umount is never EBUSY because of the announcer" {
	spool_mount -n b role=out
	# As fast as the mounts come and go, not faster: each gives back its window.
	bg bash -c 'while echo hi > "$B/x"; do sleep 0.01; done'
	for _ in $(seq 15); do
		spool_mount
		wait_until 10 at_least 1 listed
		fusermount3 -u "$Q"
		wait_until 10 not_served "$Q"
	done
}

# bats test_tags=sqlite:many
# man: umount-moment
@test "10: umount is not EBUSY in the midst of 300 announcements" {
	for _ in 1 2 3 4 5; do
		spool_mount
		"$CLIENTS/fill" "$Q" m 300
		fusermount3 -u "$Q"
		wait_until 10 not_served "$Q"
	done
}
