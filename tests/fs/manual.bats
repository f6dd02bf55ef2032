#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# bats file_tags=azure:slow
# Sentences of spoolfs.7 that no other file shows: one small test each.
# scripts/check-man reads the pins in the lines "# man:".
# shellcheck disable=SC2016,SC2030,SC2031

load helpers

setup_file() { build_clients try fill hold; }

# ---- a queue that does not answer -------------------------------------------

# Another program holds the write lock of the queue file until unlock_queue; a
# service does not answer.
lock_queue() {
	[ "$SPOOL_BACKEND" = sqlite ] || {
		azurite_freeze
		return
	}
	bg python3 -c '
import os, sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)
db.execute("BEGIN IMMEDIATE")
open(sys.argv[2], "w").close()
while os.path.exists(sys.argv[2]):
    time.sleep(0.01)
db.execute("ROLLBACK")' "$DB" "$BASE/locked"
	LOCKER=$BG
	wait_until 20 test -e "$BASE/locked"
}
unlock_queue() {
	[ "$SPOOL_BACKEND" = sqlite ] || {
		azurite_thaw
		return
	}
	rm "$BASE/locked"
	wait_until 10 gone "$LOCKER"
}

# at_once COMMAND...: it ends before the queue is tried for the second time.
at_once() { timeout 1 "$@"; }

# man: offline-local, offline-state, key-last-error, key-state, wait-network
@test "while the queue does not answer, the mount does" {
	spool_mount visibility=1m
	put a
	put b
	echo half > "$Q/x.tmp"
	lock_queue
	tell poll
	wait_until 5 is polling control state
	wait_until 20 is offline control state
	control last_error | grep -q .
	[ "$SPOOL_BACKEND" != sqlite ] || control last_error | grep -q locked
	at_least 1 control errors_total
	at_once ls "$Q" > "$BASE/names"
	expect 2 grep -c . "$BASE/names"
	expect 2 at_once stat -c %s "$MSG"
	expect b at_once cat "$MSG"
	at_once rm "$MSG"
	at_once mv "$Q/x.tmp" "$Q/x"
	expect 1 listed
	unlock_queue
	wait_until 20 message x
	wait_until 20 is waiting control state
	sync "$Q/.control"
	expect 1 control handled_total
}

# man: dir-outbox, offline-outbox
@test "the outbox shows what was not accepted yet, and is delivered in the end" {
	spool_mount
	echo one > "$Q/one.tmp"
	echo two > "$Q/two.tmp"
	lock_queue
	mv "$Q/one.tmp" "$Q/one"
	mv "$Q/two.tmp" "$Q/two"
	expect 2 entries "$Q/.outbox"
	expect 2 control outbox
	f=$(message one.tmp "$Q/.outbox") || f=$(message one "$Q/.outbox")
	[[ ${f##*/} =~ ^[0-9]{8}T[0-9]{6}\.[0-9]{6}Z-[0-9A-Za-z]+-one ]]
	expect one cat "$f"
	unlock_queue
	wait_listed 2
	expect 0 entries "$Q/.outbox"
	expect "$(printf 'one\ntwo')" sent_order < <(cat "$Q"/*)
}

# man: rm-behind, sync-control, sync-dir, wait-interrupt
@test "rm returns before the queue has confirmed, sync of .control after" {
	spool_mount
	put a
	cat "$MSG" > /dev/null
	lock_queue
	at_once rm "$MSG"
	expect 0 inflight
	at_once sync "$Q"
	bg sync "$Q/.control"
	# It waits, and a signal ends it at once.
	wait_until 5 syncs "$BG"
	kill -TERM "$BG"
	wait_until 1 gone "$BG"
	bg sync "$Q/.control"
	wait_until 5 syncs "$BG"
	[ "$SPOOL_BACKEND" != sqlite ] || expect 1 in_the_file
	unlock_queue
	wait "$BG"
	expect 0 in_the_file
}
in_the_file() {
	[ "$SPOOL_BACKEND" = sqlite ] || {
		sdk count "$QUEUE"
		return
	}
	sqlite3 -readonly "$DB" 'SELECT count(*) FROM message'
}
syncs() { grep -qx fuse_fsync "/proc/$1/wchan" || grep -q request_wait "/proc/$1/wchan"; }

# man: sync-holds
@test "commands wait behind a sync of .control that waits, reading does not" {
	spool_mount
	put a
	cat "$MSG" > /dev/null
	lock_queue
	rm "$MSG"
	bg sync "$Q/.control"
	syncing=$BG
	wait_until 5 syncs "$syncing"
	at_once cat "$Q/.control" > /dev/null
	bg bash -c 'echo "set poll_factor=3" > "$Q/.control"'
	wait_until 5 blocked "$BG"
	expect 2 control backoff_factor
	unlock_queue
	wait "$syncing" "$BG"
	expect 3 control backoff_factor
}
blocked() { grep -q '^State:.D' "/proc/$1/status"; }

# man: crash-rm
@test "a crash between rm and its confirmation delivers once more" {
	spool_mount
	put a
	cat "$MSG" > /dev/null
	sync "$Q/.control"
	lock_queue
	rm "$MSG"
	spool_kill
	unlock_queue
	spool_mount
	wait_until 10 is 1 inflight
	expect a cat "$MSG"
	rm "$MSG"
	repolled
	queue_empty
}

# bats test_tags=sqlite:file
# man: durable-between
@test "a crash between close and send leaves the data in .drafts/" {
	spool_mount
	mkfifo "$BASE/go"
	bg bash -c 'exec 7> "$Q/job"; echo text >&7; : > "$BASE/written"
		read -r _ < "$BASE/go"; exec 7>&-; : > "$BASE/closed"'
	wait_until 10 test -e "$BASE/written"
	lock_queue
	echo > "$BASE/go"
	wait_until 1 test -e "$BASE/closed"
	wait_until 5 is 1 entries "$Q/.outbox"
	spool_kill
	unlock_queue
	spool_mount
	repolled
	expect 0 listed
	expect text cat "$(message job "$Q/.drafts")"
}

# bats test_tags=sqlite:file
# man: durable-rename
@test "a crash after a rename leaves the data in .drafts/, sync makes it a message" {
	spool_mount
	echo one > "$Q/one.tmp"
	echo two > "$Q/two.tmp"
	mv "$Q/one.tmp" "$Q/one"
	sync "$Q/.control"
	lock_queue
	at_once mv "$Q/two.tmp" "$Q/two"
	spool_kill
	unlock_queue
	spool_mount
	wait_listed 1
	repolled
	expect one cat "$(message one)"
	expect 1 drafts
	expect two cat "$(message two.tmp "$Q/.drafts")"
}

# man: end-umount
@test "umount returns before the daemon has ended" {
	spool_mount
	put a
	cat "$MSG" > /dev/null
	lock_queue
	rm "$MSG"
	pid=$DAEMON
	umount "$Q"
	not_mounted "$Q"
	alive "$pid"
	unlock_queue
	wait_until 20 gone "$pid"
	spool_mount
	repolled
	queue_empty
}

# bats test_tags=sqlite:file
# man: end-clean
@test "SIGHUP ends it, too, and a queue that does not answer cannot prevent it" {
	spool_mount
	put a
	cat "$MSG" > /dev/null
	lock_queue
	rm "$MSG"
	start=$(now_ms)
	kill -HUP "$DAEMON"
	wait_until 5 is stopped control state
	wait_until 25 gone "$DAEMON"
	clock_is $((start + 9000))
	not_mounted "$Q"
	unlock_queue
	spool_mount
	wait_until 10 at_least 1 control depth
}

# ---- the directory ------------------------------------------------------------

# man: list-alias
@test "a claimed message that was renamed is listed for everyone" {
	spool_mount
	put a
	mv "$MSG" "$Q/mine"
	expect mine ls "$Q"
	expect mine bash -c 'cat "$Q/mine" > /dev/null; ls "$Q"'
}

# man: stat-mode
@test "modes are 0666 and 0777 less umask, a draft has its own" {
	spool_mount umask=027
	put a
	expect 750 stat -c %a "$Q"
	expect 640 stat -c %a "$MSG"
	expect 750 stat -c %a "$Q/.peek"
	expect 640 stat -c %a "$Q/.control"
	(umask 022 && echo half > "$Q/x.tmp")
	expect 644 stat -c %a "$Q/x.tmp"
	chmod 600 "$Q/x.tmp"
	expect 600 stat -c %a "$Q/x.tmp"
}

# man: attr-message, attr-root
@test "attributes of a message cannot be changed, those of the root are ignored" {
	spool_mount
	put a
	tries EPERM chmod "$MSG"
	refuse 'not permitted' chown 65534 "$MSG"
	run "$CLIENTS/try" truncate "$MSG"
	[ "$output" = EPERM ]
	expect '600 0 2' stat -c '%a %u %s' "$MSG"
	before=$(stat -c '%a %u %Y' "$Q")
	chmod 755 "$Q"
	chown 65534 "$Q"
	touch -d '2001-01-01' "$Q"
	expect "$before" stat -c '%a %u %Y' "$Q"
}

# bats test_tags=sqlite:order
# man: dead-window
@test ".dead/ lists the oldest, as many as the window has room for" {
	spool_mount window=3
	for i in 1 2 3 4 5; do
		put "$i"
		mv "$MSG" "$Q/.dead/"
	done
	sync "$Q/.control"
	wait_until 10 is 5 control dead
	wait_until 10 is 3 dead
	expect "$(printf '1\n2\n3')" cat "$Q"/.dead/*
	rm "$Q"/.dead/*-1
	wait_until 10 message 4 "$Q/.dead"
}

# man: scheduled
@test ".scheduled is reserved" {
	spool_mount
	tries ENOENT stat "$Q/.scheduled"
	tries EACCES create "$Q/.scheduled"
	tries EPERM mkdir "$Q/.scheduled"
}

# man: owner-opener, owner-inherits
@test "the owner is the opener, then its nearest ancestor alive" {
	spool_mount
	put a
	put b
	holder h "$MSG"
	expect "$HOLDER" attr owner "$MSG"
	worker w "$(message a)"
	a=$(claimed a)
	expect "$WORKER" attr owner "$a"
	# A stranger may not, the script may.
	tries EBUSY unlink "$a"
	order w "rm '$a'"
	expect 1 inflight
}

# bats test_tags=sqlite:size
# man: opener-killed
@test "an opener that is killed has failed, one that dies of SIGPIPE has not" {
	spool_mount
	put a
	put b
	a=$(message a)
	bg bash -c '"$CLIENTS/hold" "$BASE/held" "$1"; : > "$BASE/after"; read -r _ < "$BASE/never"' \
		_ "$a"
	mkfifo "$BASE/never"
	wait_until 10 test -e "$BASE/held"
	pkill -KILL -P "$BG"
	wait_until 10 test -e "$BASE/after"
	# Its parent lives on, and yet it is back.
	wait_until 5 is 2 listed
	expect 1 attr attempts "$a"
	head -c 1000000 /dev/zero > "$Q/big"
	wait_until 10 message big
	big=$(message big)
	bash -c '{ cat "$1"; echo $? > "$BASE/status"; } | head -c 1 > "$BASE/one"
		until [ -s "$BASE/status" ]; do :; done
		rm "$1"' _ "$big"
	expect 141 cat "$BASE/status"
	repolled
	expect 2 listed
	expect 0 dead
}

# man: lease-left
@test "a left message waits for retry_delay where that is longer" {
	spool_mount visibility=300ms,retry_delay=2s
	put a
	put b
	a=$(message a)
	worker w "$a"
	start=$(now_ms)
	order w "cat '$MSG'"
	wait_listed 1
	clock_is $((start + 1900))
	expect 1 attr attempts "$a"
	order w "rm '$MSG'"
}

# man: back-release, back-touch, back-explicit
@test "giving back counts as an attempt, and waits retry_delay if nothing is said" {
	spool_mount retry_delay=1s
	put a
	cat "$MSG" > /dev/null
	start=$(now_ms)
	tell "release ${MSG##*/}"
	wait_until 5 is 0 inflight
	wait_listed 1
	clock_is $((start + 900))
	expect 1 attr attempts "$MSG"
	cat "$MSG" > /dev/null
	touch -d '+2 seconds' "$MSG"
	wait_until 5 is 0 inflight
	wait_listed 1
	expect 2 attr attempts "$MSG"
	refuse 'Invalid argument' tell "release ${MSG##*/}"
}

# man: back-lost
@test "rm after a lost lease: ENOENT while the message is elsewhere" {
	spool_mount max_lease=600ms,visibility=300ms,retry_delay=1h
	put a
	exec 7< "$MSG"
	head -c 1 <&7 > /dev/null
	wait_until 10 is 0 inflight
	tries ENOENT unlink "$MSG"
	exec 7<&-
	expect 1 control depth
}

# man: mv-done
@test "what nobody has read is buried by renaming it into done=" {
	spool_mount done=done
	put a
	put b
	cat "$MSG" > /dev/null
	mv "$MSG" "$Q/done/"
	mv "$(message a)" "$Q/done/"
	wait_until 5 is 1 dead
	expect unread attr reason "$(message a "$Q/.dead")"
	repolled
	expect 0 inflight
	expect 1 control handled_total
}

# ---- writing --------------------------------------------------------------------

# man: draft-globs, draft-names
@test "the names that are drafts if nothing is said" {
	spool_mount
	names=(.hidden a.tmp tmp.a a.part a.filepart a.swp 'a~')
	for name in "${names[@]}"; do
		echo "$name" > "$Q/$name"
	done
	echo sent > "$Q/a.txt"
	wait_listed 1
	repolled
	expect 1 listed
	expect 7 drafts
	for name in "${names[@]}"; do
		mv "$Q/$name" "$Q/ok.$name.txt"
	done
	wait_listed 8
	expect 0 drafts
}

# man: draft-stale
@test "a draft left alone for 10 minutes is told" {
	"${CC:-cc}" -shared -fPIC -O1 -D_GNU_SOURCE -o "$BASE/later.so" "$CLIENTS_SRC/later.c"
	echo 0 > "$BASE/later"
	export ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0
	WRAP="env LATER=$BASE/later LD_PRELOAD=$BASE/later.so" spool_mount -f announce=off
	echo half > "$Q/x.tmp"
	echo 590 > "$BASE/later"
	expect 0 control drafts_stale
	echo 610 > "$BASE/later"
	wait_until 5 is 1 control drafts_stale
	expect 1 grep -c 'draft left alone for 10 min name=x.tmp' "$BASE/q.log"
	expect half cat "$Q/x.tmp"
	rm "$Q/x.tmp"
	expect 0 control drafts_stale
}

# man: durable-fsync
@test "sync(1), by a reader, stores what another is writing" {
	spool_mount
	mkfifo "$BASE/never"
	bg bash -c 'exec 7> "$Q/job"; echo half >&7; : > "$BASE/ready"; read -r _ < "$BASE/never"'
	wait_until 10 test -e "$BASE/ready"
	sync "$(message job "$Q/.drafts")"
	spool_kill
	spool_mount
	expect half cat "$Q/.drafts/"*-job
	expect 0 listed
}

# man: durable-fsync
@test "fsync of what is being written survives a killed daemon" {
	spool_mount
	bg python3 -c '
import os, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT, 0o600)
os.write(fd, b"text\n")
os.fsync(fd)
os.write(fd, b"lost\n")
open(sys.argv[2], "w").close()
time.sleep(60)' "$Q/job" "$BASE/written"
	wait_until 10 test -e "$BASE/written"
	spool_kill
	spool_mount
	repolled
	expect 0 listed
	expect text cat "$(message job "$Q/.drafts")"
}

# man: durable-empty
@test "an empty message is durable when it is sent" {
	spool_mount
	: > "$Q/empty"
	sync "$Q/.control"
	spool_kill
	spool_mount
	wait_until 10 message empty
	expect '' cat "$(message empty)"
}

# ---- watching and polling -------------------------------------------------------

# bats test_tags=sqlite:many
# man: inotify-overflow
@test "the queue of a watcher overflows, and it is told" {
	most=$(< /proc/sys/fs/inotify/max_queued_events)
	# Three events each; a far larger queue would need far more messages.
	[ "$most" -le 16384 ]
	spool_mount window=8192
	bg python3 -c '
import ctypes, os, struct, sys, time
libc = ctypes.CDLL(None)
fd = libc.inotify_init1(0)
libc.inotify_add_watch(fd, os.fsencode(sys.argv[1]), 0x128)
print("WATCHING", flush=True)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.02)
while True:
    data = os.read(fd, 65536)
    while data:
        _, mask, _, length = struct.unpack_from("iIII", data)
        if mask & 0x4000:
            print("OVERFLOW", flush=True)
        data = data[16 + length:]' "$Q" "$BASE/read" > "$BASE/events"
	wait_until 10 grep -q WATCHING "$BASE/events"
	"$CLIENTS/fill" "$Q" m 6000
	wait_until 60 is 6000 listed
	not grep OVERFLOW "$BASE/events"
	: > "$BASE/read"
	wait_until 10 grep -q OVERFLOW "$BASE/events"
}

# man: window-count, key-ages
@test "the window holds about window_bytes" {
	spool_mount -n b role=out
	spool_mount window_bytes=64K
	head -c 40000 /dev/zero > "$BASE/blob"
	for i in 1 2 3 4; do
		cp "$BASE/blob" "$BASE/b/$i"
	done
	sync "$BASE/b/.control"
	wait_until 10 is full control state
	expect 2 listed
	cat "$(message)" > /dev/null
	control oldest_claim_s | grep -qx '[0-9]*'
	control oldest_ready_s | grep -qx '[0-9]*'
}

# ---- .control -------------------------------------------------------------------

# man: key-totals, key-now
@test ".control counts what was done and what is" {
	spool_mount retry_delay=1h
	for name in a b c d e; do
		put "$name"
	done
	echo half > "$Q/x.tmp"
	a=$(message a) b=$(message b) c=$(message c) d=$(message d)
	cat "$a" "$b" "$c" > /dev/null
	rm "$a"
	tell "release ${b##*/} 1h"
	mv "$d" "$Q/.dead/"
	sync "$Q/.control"
	wait_until 10 is 1 control dead
	wait_until 10 is 3 control depth
	for want in 5:received_total 1:handled_total 5:sent_total 1:released_total \
		1:buried_total 0:leases_lost 0:errors_total 1:ready 1:in_flight 0:outbox \
		1:drafts 0:drafts_stale 1:dead; do
		expect "${want%:*}" control "${want#*:}"
	done
}

# man: control-empty-values, key-announcer
@test "a value that does not apply is empty" {
	spool_mount announce=off
	for key in avg_handling_ms margin_ms stop_in_ms idle_left_ms oldest_claim_s \
		oldest_ready_s last_error; do
		grep -qx "$key=" "$Q/.control"
	done
	expect off control idle_timer
	expect off control announcer
}

# man: cmd-lines
@test "what stood before a bad line was done, what stands behind was not" {
	spool_mount poll_ceiling=60s
	refuse 'Invalid argument' \
		tell $'set poll_floor=7s\nnonsense\nset poll_factor=3'
	expect 7000 control backoff_floor_ms
	expect 2 control backoff_factor
}
