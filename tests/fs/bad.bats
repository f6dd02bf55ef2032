#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# bats file_tags=azure:slow
# Bad input: each the right error, and nothing lost.
# shellcheck disable=SC2016,SC2030,SC2031

load helpers

setup_file() { build_clients try fill; }

# A mount with one message, which must be there unharmed in the end.
with_job() {
	spool_mount
	put job 'the text'
}
unharmed() {
	repolled
	expect 1 listed
	expect 0 dead
	expect 0 inflight
	expect ready attr state "$MSG"
	expect 0 attr attempts "$MSG"
	expect 'the text' cat "$Q/.peek/${MSG##*/}"
}

# ---- in the mount ------------------------------------------------------------

@test "14: names of 300 bytes: ENAMETOOLONG" {
	with_job
	long=$(printf '%0300d' 7)
	tries ENAMETOOLONG create "$Q/$long"
	tries ENAMETOOLONG stat "$Q/$long"
	tries ENAMETOOLONG rename "$MSG" "$Q/$long"
	tries ENAMETOOLONG mkdir "$Q/$long"
	unharmed
	expect 0 drafts
}

# man: no-links
@test "14: mkdir, link, symlink, mknod: EPERM" {
	with_job
	tries EPERM mkdir "$Q/dir"
	tries EPERM link "$MSG" "$Q/other"
	tries EPERM symlink "$MSG" "$Q/other"
	tries EPERM mknod "$Q/fifo"
	tries EPERM mkdir "$Q/.dead/dir"
	tries EXDEV link "$MSG" "$BASE/outside"
	unharmed
}

# man: open-write, open-rdwr
@test "14: writing to a message: EACCES, through O_RDWR: EPERM" {
	with_job
	tries EACCES open-write "$MSG"
	tries EACCES open-append "$MSG"
	tries EACCES open-trunc "$MSG"
	refuse 'Permission denied' dash -c 'echo x > "$1"' _ "$MSG"
	refuse 'Permission denied' dash -c 'echo x >> "$1"' _ "$MSG"
	tries EPERM write-rdwr "$MSG"
	wait_until 5 is 0 inflight
	unharmed
}

@test "14: truncating a message does not change it" {
	with_job
	run "$CLIENTS/try" truncate "$MSG"
	[ "$output" = EPERM ] || [ "$output" = EACCES ]
	unharmed
}

# man: reserved
@test "14: reserved entries cannot be removed, renamed, replaced or created" {
	with_job
	for entry in .control .next .metrics .status.json; do
		run "$CLIENTS/try" unlink "$Q/$entry"
		[ "$output" = EPERM ] || [ "$output" = EACCES ]
		run "$CLIENTS/try" rename "$Q/$entry" "$Q/x"
		[ "$output" = EPERM ] || [ "$output" = EACCES ]
	done
	for entry in .dead .drafts .peek .inflight .outbox; do
		run "$CLIENTS/try" rmdir "$Q/$entry"
		[ "$output" = EPERM ] || [ "$output" = EBUSY ] || [ "$output" = EACCES ]
	done
	for dir in .peek .inflight .outbox .dead; do
		run "$CLIENTS/try" create "$Q/$dir/new"
		[ "$output" = EPERM ] || [ "$output" = EACCES ]
	done
	unharmed
}

# man: cmd-einval
@test "14: unknown and malformed commands: EINVAL, and the log says why" {
	spool_mount -f poll_ceiling=60s
	put job 'the text'
	for line in dance 'release' 'release nothing-like-this' "release ${MSG##*/} soon" set \
		'set nonsense=1' 'set visibility' 'set visibility=abc' 'set visibility=-3' \
		'set role=in' 'set poll_floor=2h' 'poll now' ''; do
		[ -n "$line" ] || continue
		refuse 'Invalid argument' tell "$line"
	done
	wait_until 5 grep -q dance "$BASE/q.log"
	grep -q nonsense "$BASE/q.log"
	# A good line behind a bad one, a long one, one that is no text.
	refuse 'Invalid argument' dash -c 'head -c 100000 /dev/zero > "$Q/.control"'
	expect 1000 control backoff_floor_ms
	unharmed
}

# bats test_tags=sqlite:local
# man: write-efbig
@test "14: a 100 MiB write: EFBIG, and no truncated message" {
	with_job
	refuse 'File too large' dd if=/dev/zero of="$Q/big" bs=1M count=100
	unharmed
	refuse 'File too large' truncate -s 100M "$Q/big.tmp"
	refuse 'File too large' dd if=/dev/zero of="$Q/holes" bs=1 count=1 seek=200M
	unharmed
}

# man: xattrs-readonly
@test "14: user.spoolfs attributes cannot be set" {
	with_job
	run setfattr -n user.spoolfs.attempts -v 7 "$MSG"
	[ "$status" -ne 0 ]
	run setfattr -n user.other -v 7 "$MSG"
	[ "$status" -ne 0 ]
	unharmed
}

# man: role-in, role-out
@test "14: role=in: creating is EACCES; role=out never receives" {
	with_job
	spool_umount
	spool_mount role=in
	wait_listed 1
	tries EACCES create "$Q/new"
	tries EACCES create "$Q/new.tmp"
	expect 'the text' cat "$MSG"
	rm "$MSG"
	spool_umount
	spool_mount role=out
	echo new > "$Q/new"
	sync "$Q/.control"
	expect 0 listed
	expect 0 inflight
	spool_umount
	spool_mount
	wait_until 10 message new
}

# ---- the disk ------------------------------------------------------------------

# small SIZE: the queue file lies on a tmpfs of that size.
small() {
	other_mount "$BASE/small" -t tmpfs -o "size=$1" none
	DB=$BASE/small/q.db
	SMALL=$BASE/small
}

# bats test_tags=sqlite:file
# man: write-enospc
@test "14: a full disk: ENOSPC, all that was accepted is there, and it goes on after" {
	small 4m
	spool_mount
	mkdir "$BASE/src"
	n=0
	while [ "$n" -lt 60 ]; do
		head -c 200000 /dev/urandom > "$BASE/src/$n"
		cp "$BASE/src/$n" "$Q/" 2> "$BASE/said" || break
		n=$((n + 1))
	done
	[ "$n" -gt 0 ] && [ "$n" -lt 60 ]
	grep -q 'No space left on device' "$BASE/said"
	is_mounted "$Q"
	control last_error | grep -q .
	at_least 1 control errors_total
	mount -o remount,size=64m "$SMALL"
	echo after > "$Q/after"
	wait_until 20 message after
	for i in $(seq 0 $((n - 1))); do
		cmp "$BASE/src/$i" "$(message "$i" "$Q/.peek")"
	done
	# What was refused never became a message of fewer bytes.
	for f in "$Q"/.peek/*; do
		case $(stat -c %s "$f") in
		200000 | 6) ;;
		*) false ;;
		esac
	done
	cat "$Q"/* > /dev/null
}

# bats test_tags=sqlite:file
@test "14: a full disk, and the daemon is killed: all that was accepted is there" {
	small 4m
	spool_mount
	n=0
	head -c 100000 /dev/urandom > "$BASE/blob"
	while [ "$n" -lt 100 ] && dd if="$BASE/blob" of="$Q/x" bs=100000 conv=fsync 2> "$BASE/said"; do
		n=$((n + 1))
	done
	[ "$n" -gt 0 ] && [ "$n" -lt 100 ]
	grep -q 'No space left on device' "$BASE/said"
	spool_kill
	mount -o remount,size=64m "$SMALL"
	spool_mount
	wait_until 10 at_least "$n" listed
	for f in "$Q"/.peek/*; do
		cmp "$BASE/blob" "$f"
	done
}

# bats test_tags=sqlite:file
@test "14: a file that is no database is refused, and left as it is" {
	head -c 20000 /dev/urandom > "$DB"
	cp "$DB" "$BASE/before"
	mkdir "$Q"
	spool_refused . "$DB" "$Q"
	not_mounted "$Q"
	cmp "$BASE/before" "$DB"
	printf 'SQLite format 3\0' | dd of="$DB" conv=notrunc status=none
	cp "$DB" "$BASE/before"
	spool_refused . "$DB" "$Q"
	cmp "$BASE/before" "$DB"
}

# bats test_tags=sqlite:file
@test "14: another program's SQLite database is refused, and left as it is" {
	python3 -c 'import sqlite3, sys; db = sqlite3.connect(sys.argv[1])
db.execute("CREATE TABLE precious(x)"); db.execute("INSERT INTO precious VALUES(7)"); db.commit()' "$DB"
	cp "$DB" "$BASE/before"
	mkdir "$Q"
	spool_refused 'not a spoolfs queue' "$DB" "$Q"
	cmp "$BASE/before" "$DB"
}

# bats test_tags=sqlite:file
@test "14: a damaged database is refused, or mounted and answers" {
	spool_mount
	"$CLIENTS/fill" "$Q" m 300
	spool_umount
	cp "$DB" "$BASE/whole"
	pages=$(($(stat -c %s "$DB") / 4096))
	for page in 1 2 $((pages / 2)) $((pages - 1)); do
		cp "$BASE/whole" "$DB"
		rm -f "$DB-wal" "$DB-shm"
		dd if=/dev/urandom of="$DB" bs=4096 seek="$page" count=1 conv=notrunc status=none
		if spool "$DB" "$Q"; then
			timeout 10 cat "$Q/.control" > /dev/null
			timeout 10 ls "$Q" > /dev/null
			timeout 10 bash -c 'echo new > "$Q/new"' || :
			# A clean end would try for ten seconds to send that.
			spool_kill
		fi
	done
	truncate -s $((pages * 2048)) "$DB"
	if spool "$DB" "$Q"; then
		timeout 10 cat "$Q/.control" > /dev/null
		spool_kill
	fi
}

# bats test_tags=sqlite:file
@test "14: a read-only database is refused" {
	small 16m
	spool_mount
	put job
	spool_umount
	mount -o remount,ro "$SMALL"
	spool_refused 'read-only' "$DB" "$Q"
	not_mounted "$Q"
	mount -o remount,rw "$SMALL"
	spool_mount
	wait_listed 1
}

# bats test_tags=sqlite:file
@test "14: a source that is a directory, in no directory, of an unknown kind" {
	mkdir "$Q" "$BASE/dir"
	spool_refused 'not a regular file' "$BASE/dir" "$Q"
	spool_refused 'does not exist' "$BASE/nowhere/q.db" "$Q"
	spool_refused . "gopher://example.org/q" "$Q"
	not_mounted "$Q"
}

# ---- the mount point -------------------------------------------------------------

# man: adopt-refused
@test "14: a mount point that is missing, a file, or not empty is refused" {
	spool_refused "$Q" "$DB" "$Q"
	: > "$Q"
	spool_refused "$Q" "$DB" "$Q"
	rm "$Q"
	mkdir "$Q"
	echo precious > "$Q/file"
	spool_refused "$Q" "$DB" "$Q"
	expect precious cat "$Q/file"
	mkdir "$BASE/q2" "$BASE/q2/dir"
	spool_refused "$BASE/q2" -o adopt "$DB" "$BASE/q2"
	[ -d "$BASE/q2/dir" ]
}

@test "14: a mount point that is in use by a live spoolfs is refused, which goes on" {
	with_job
	spool_refused "$Q" "$DB" "$Q"
	spool_refused "$Q" "$BASE/other.db" "$Q"
	expect "$DAEMON" spool_pid
	unharmed
	rm -f "$BASE/other.db"
}

@test "14: a mount point with another file system on it is refused when that has files" {
	other_mount "$Q" -t tmpfs none
	echo precious > "$Q/file"
	spool_refused "$Q" "$DB" "$Q"
	expect precious cat "$Q/file"
}

# ---- options -----------------------------------------------------------------------

# bats test_tags=sqlite:local
@test "14: options that are unknown, malformed, out of bounds or contradict each other" {
	mkdir "$Q"
	spool_refused nonsense -o nonsense "$DB" "$Q"
	spool_refused visibilty -o visibilty=3s "$DB" "$Q"
	spool_refused visibility -o visibility=soon "$DB" "$Q"
	spool_refused visibility -o visibility=0 "$DB" "$Q"
	spool_refused visibility -o visibility "$DB" "$Q"
	spool_refused max_attempts -o max_attempts=0 "$DB" "$Q"
	spool_refused role -o role=sideways "$DB" "$Q"
	spool_refused poll_floor -o poll_floor=10s,poll_ceiling=5s "$DB" "$Q"
	spool_refused idle_time -o idle_time=5s,poll_floor=1s "$DB" "$Q"
	spool_refused max_lease -o visibility=1h,max_lease=10m "$DB" "$Q"
	spool_refused 'done' -o done=x,failed=x "$DB" "$Q"
	spool_refused 'done' -o done=.hidden "$DB" "$Q"
	spool_refused failed -o failed=a/b "$DB" "$Q"
	spool_refused adopt -o ro,adopt "$DB" "$Q"
	spool_refused . "$DB"
	spool_refused . "$DB" "$Q" "$Q"
	spool_refused . -x "$DB" "$Q"
	spool_refused .
	not_mounted "$Q"
	[ ! -e "$DB" ]
}
