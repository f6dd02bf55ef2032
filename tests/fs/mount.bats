#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# bats file_tags=azure:slow
# Mounting, ending, taking over, and the options that change what a mount is.
# shellcheck disable=SC2016,SC2030,SC2031

load helpers

setup_file() { build_clients try fill hold; }

# Another user must be able to walk to the mount: a directory for all.
setup() {
	spool_setup
	PUBLIC=$(mktemp -d "${TMPDIR:-/tmp}/spoolfs-test.XXXXXX")
	chmod 755 "$PUBLIC"
}
teardown() {
	local status=0
	spool_teardown || status=1
	rm -rf --one-file-system "$PUBLIC"
	return "$status"
}

# as UID COMMAND...
as() {
	setpriv --reuid="$1" --regid="$1" --clear-groups "${@:2}"
}

# ---- beginning and ending --------------------------------------------------------

# installed COMMAND...: with spoolfs where mount(8) looks for it, in a mount
# namespace of its own: nothing is installed on this machine.
installed() {
	timeout 60 unshare --mount --propagation private bash -euc '
		mount --bind "$SPOOLFS_BUILD" /usr/local/sbin
		mkdir -p "$Q"
		trap "fusermount3 -uz $Q 2> /dev/null || :" EXIT
		# The announcer may be in the mount for a moment.
		soon() { for _ in {1..100}; do "$@" 2> /dev/null && return; sleep 0.02; done; "$@"; }
		eval "$1"' _ "$1" 3>&- 4>&-
}

@test "1: mount -t fuse.spoolfs and umount" {
	installed '
		mount -t fuse.spoolfs -o visibility=20s,nosuid,nodev "$DB" "$Q"
		test "$(findmnt -n -o FSTYPE,SOURCE "$Q" | xargs)" = "fuse.spoolfs $DB"
		findmnt -n -o OPTIONS "$Q" | grep -q nosuid
		echo hi > "$Q/x"
		soon umount "$Q"'
	wait_until 20 not_served "$Q"
	spool_mount
	wait_listed 1
}

@test "1: a line of fstab" {
	echo "$DB $Q fuse.spoolfs defaults,noauto,visibility=20s,_netdev,x-systemd.automount 0 0" \
		> "$BASE/fstab"
	installed '
		mount -T "$BASE/fstab" "$Q"
		echo hi > "$Q/x"
		soon umount "$Q"'
	wait_until 20 not_served "$Q"
	spool_mount
	wait_listed 1
}

# bats test_tags=sqlite:file
@test "1: it is in the background when it answers, and holds nothing of its caller" {
	cd "$BASE"
	mkdir q
	# A relative path that no other daemon of this machine was given.
	ln -s q "q.$$"
	echo "$Q" >> "$BASE/mounts"
	spool q.db "q.$$"
	pid=$(spool_pid "q.$$")
	is_mounted "$Q"
	expect / readlink "/proc/$pid/cwd"
	expect /dev/null readlink "/proc/$pid/fd/0"
	# A session of its own.
	expect "$pid" ps -o sid= --no-headers -p "$pid" -w || expect "$(ps -o sid= -p "$pid")" \
		ps -o sid= -p "$pid"
	[ "$(ps -o sid= -p "$pid")" != "$(ps -o sid= -p $$)" ]
	put job
	wait_until 5 fusermount3 -u "$Q"
	wait_until 20 gone "$pid"
}

@test "1: a mount that fails says so and leaves nothing" {
	mkdir "$Q"
	spool_refused 'unknown option' -o nonsense "$DB" "$Q"
	not_mounted "$Q"
	not spool_pid
	spool --help
	grep -q 'usage: spoolfs' "$OUT"
	spool --version
	grep -q '[0-9]' "$OUT"
}

# ends SIGNAL: a clean end in the foreground, with everything kept.
ends() {
	spool_mount -f
	"$CLIENTS/fill" "$Q" m 100
	put job
	cat "$(message m-000001)" > /dev/null
	rm "$(claimed m-000001)"
	echo half > "$Q/later.tmp"
	kill "-$1" "$DAEMON"
	wait "$BG"
	not_mounted "$Q"
	expect '' ls -A "$Q"
	spool_mount
	wait_listed 100
	expect 1 drafts
	expect 0 inflight
	spool_umount
}

# man: end-clean
@test "1: SIGTERM ends it cleanly" { ends TERM; }
# man: end-clean
@test "1: SIGINT ends it cleanly" { ends INT; }

# man: end-clean
@test "1: what was sent and deleted in the last moment before the end is so after" {
	for _ in 1 2 3 4 5; do
		spool_mount
		"$CLIENTS/fill" "$Q" m 40 4
		wait_listed 40
		all=("$Q"/*)
		cat "${all[@]}" > /dev/null
		rm "${all[@]}"
		"$CLIENTS/fill" "$Q" n 40 4
		kill -TERM "$DAEMON"
		wait_until 20 not_served "$Q"
		not_mounted "$Q"
		spool_mount
		wait_listed 40
		expect 40 bash -c 'cat "$Q"/* | grep -c n-'
		rm "$Q"/.inflight/* 2> /dev/null || for f in "$Q"/.inflight/*; do rm "$Q/${f##*/}"; done
		sync "$Q/.control"
		spool_umount
	done
}

# man: cmd-stop
@test "1: stop ends the mount though someone stands in it" {
	spool_mount
	mkfifo "$BASE/never"
	bg bash -c 'cd "$Q"; : > "$BASE/there"; read -r _ < "$BASE/never"'
	wait_until 10 test -e "$BASE/there"
	tell stop
	wait_until 10 not_mounted "$Q"
	kill -KILL "$BG"
	wait_until 10 gone "$DAEMON"
}

@test "1: a claim outlives a clean restart, unread messages do not wait for it" {
	spool_mount visibility=10m
	put a
	put b
	holder h "$(message a)"
	# An open file keeps umount(8) out: the daemon ends by a signal.
	kill -TERM "$DAEMON"
	wait_until 20 gone "$DAEMON"
	kill -KILL "$HOLDER"
	spool_mount
	wait_until 5 message b
}

# ---- taking over ------------------------------------------------------------------

# man: end-killed
@test "8: a killed daemon's mount gives errors at once, and the next takes it over" {
	spool_mount
	put a
	echo half > "$Q/b.tmp"
	spool_kill
	tries ENOTCONN stat "$Q/x"
	refuse 'not connected' ls "$Q"
	spool_mount
	wait_listed 1
	expect a cat "$MSG"
	expect 1 drafts
	expect 1 grep -c " $Q " /proc/self/mountinfo
}

# bats test_tags=sqlite:name
@test "8: mount -t fuse.spoolfs takes over a stale mount, too" {
	export -f spool_pid
	installed '
		mount -t fuse.spoolfs "$DB" "$Q"
		echo hi > "$Q/x"
		sync "$Q/.control"
		kill -KILL "$(spool_pid)"
		# It may be mounted still for the moment in which the daemon dies.
		until mount -t fuse.spoolfs "$DB" "$Q" 2> "$BASE/said"; do sleep 0.02; done
		until [ -e "$Q"/*-x ]; do sleep 0.02; done
		soon umount "$Q"'
	wait_until 20 not_served "$Q"
}

# ---- what lay there -----------------------------------------------------------------

# bats test_tags=sqlite:size
# man: adopt, adopt-refused
@test "5: -o adopt sends the plain files found in the mount point first" {
	mkdir "$Q"
	echo one > "$Q/one.xml"
	head -c 100000 /dev/urandom > "$Q/two.bin"
	cp "$Q/two.bin" "$BASE/two.bin"
	: > "$Q/empty"
	spool_refused "$Q" "$DB" "$Q"
	expect 3 entries "$Q"
	spool_mount adopt
	wait_listed 3
	expect one cat "$(message one.xml)"
	cmp "$BASE/two.bin" "$(message two.bin "$Q/.peek")"
	expect '' cat "$(message empty)"
	spool_umount
	expect '' ls -A "$Q"
	spool_mount
	repolled
	expect 3 listed_or_claimed
}
listed_or_claimed() { echo $(($(listed) + $(inflight))); }

# bats test_tags=sqlite:order
@test "5: -o adopt over a killed daemon's mount: what was written beneath meanwhile" {
	spool_mount
	put a
	spool_kill
	fusermount3 -uz "$Q"
	echo b > "$Q/b"
	spool_mount adopt
	wait_listed 2
	expect "$(printf 'a\nb')" cat "$Q"/*
}

# ---- roles, patterns, users -----------------------------------------------------------

# man: role-in, role-out
@test "5: -o role=out holds nothing back, -o role=in sends nothing" {
	spool_mount role=out
	echo hi > "$Q/x"
	sync "$Q/.control"
	expect 0 listed
	# A service is not asked for it by a mount that only sends.
	[ "$SPOOL_BACKEND" != sqlite ] || expect 1 control depth
	spool_umount
	spool_mount role=in
	wait_listed 1
	tries EACCES create "$Q/y"
	refuse 'Permission denied' bash -c 'echo y > "$Q/y"'
	f=$(message x)
	expect hi cat "$f"
	rm "$f"
	repolled
	queue_empty
}

# man: draft-names
@test "7: -o drafts= says which names are not sent" {
	spool_mount 'drafts=*.wip:hold-*'
	echo a > "$Q/a.wip"
	echo b > "$Q/hold-b"
	echo c > "$Q/c.tmp"
	wait_listed 1
	expect c cat "$(message c.tmp)"
	expect 2 drafts
	mv "$Q/a.wip" "$Q/a"
	mv "$Q/hold-b" "$Q/b.tmp"
	wait_until 10 message a
	wait_until 10 message b.tmp
	expect 0 drafts
}

# bats test_tags=sqlite:name
# man: drafts-send, drafts-rm
@test "7: mv out of .drafts/ sends, also under the name itself; rm discards" {
	spool_mount
	echo one > "$Q/one.tmp"
	echo two > "$Q/two.part"
	echo three > "$Q/three~"
	expect 3 drafts
	mv "$(message one.tmp "$Q/.drafts")" "$Q/uno"
	rm "$(message two.part "$Q/.drafts")"
	# Its name out of .drafts/ cannot be created, but it can be moved there.
	mv "$(message 'three~' "$Q/.drafts")" "$Q/"
	wait_listed 2
	expect one cat "$(message uno)"
	expect three cat "$(message)"
	expect 0 drafts
}

# man: drafts-restart
@test "7: drafts outlive a restart, and are not sent by it" {
	spool_mount
	echo one > "$Q/one.tmp"
	spool_umount
	spool_mount
	repolled
	expect 0 listed
	expect 1 drafts
	expect 1 control drafts
	expect one cat "$(message one.tmp "$Q/.drafts")"
}

@test "7: .outbox/ is a directory, empty when all was accepted" {
	spool_mount
	"$CLIENTS/fill" "$Q" m 20
	sync "$Q/.control"
	expect 0 entries "$Q/.outbox"
	expect 0 control outbox
	tries EPERM mkdir "$Q/.outbox/x"
}

@test "14: ro: reading only" {
	spool_mount
	put job
	spool_umount
	spool_mount ro
	wait_listed 1
	tries EROFS create "$Q/x"
	tries EROFS unlink "$MSG"
	expect job cat "$Q/.peek/${MSG##*/}"
}

@test "14: without allow_other another user reads nothing at all" {
	Q=$PUBLIC/q
	mkdir "$Q"
	ln -s "$Q" "$BASE/q"
	echo "$Q" >> "$BASE/mounts"
	chmod 777 "$Q"
	spool "$DB" "$Q"
	put job
	refuse 'Permission denied' as 65534 ls "$Q"
	refuse 'Permission denied' as 65534 cat "$MSG"
	refuse 'Permission denied' as 65534 cat "$Q/.control"
}

# public OPTIONS: a mount that everybody can walk to.
public() {
	Q=$PUBLIC/q
	mkdir "$Q"
	echo "$Q" >> "$BASE/mounts"
	spool -o "$1" "$DB" "$Q"
}

@test "14: with allow_other another user reads only what the modes allow" {
	public allow_other
	put job
	expect 700 stat -c %a "$Q"
	refuse 'Permission denied' as 65534 ls "$Q"
	refuse 'Permission denied' as 65534 cat "$MSG"
	refuse 'Permission denied' as 65534 cat "$Q/.peek/${MSG##*/}"
	refuse 'Permission denied' as 65534 cat "$Q/.next"
	refuse 'Permission denied' as 65534 sh -c 'echo stop > "$0/.control"' "$Q"
	refuse 'Permission denied' as 65534 sh -c 'echo x > "$0/x"' "$Q"
	refuse 'Permission denied' as 65534 rm -f "$MSG"
	repolled
	expect 1 listed
	expect 0 inflight
}

@test "14: uid= and gid= give the mount to a user, who works it as any" {
	public allow_other,uid=65534,gid=65534
	as 65534 sh -c 'echo hi > "$0/x"' "$Q"
	wait_listed 1
	expect '65534 65534 600' stat -c '%u %g %a' "$(message x)"
	as 65534 sh -ec 'f=$(ls "$0"); cat "$0/$f"; rm "$0/$f"' "$Q" > "$PUBLIC/got"
	expect hi cat "$PUBLIC/got"
	# Their tools set modes and times after the send.
	echo text > "$PUBLIC/file"
	as 65534 install -m 600 "$PUBLIC/file" "$Q/installed"
	as 65534 cp -p "$PUBLIC/file" "$Q/copied"
	wait_listed 2
	refuse 'Permission denied' as 65533 ls "$Q"
	refuse 'Permission denied' as 65533 cat "$(message)"
	as 65534 sh -ec 'cat "$0"/*' "$Q" > "$PUBLIC/got"
	expect 2 grep -c text "$PUBLIC/got"
}

@test "14: umask=022 lets others read, and no more" {
	public allow_other,umask=022
	put job
	expect 755 stat -c %a "$Q"
	expect 644 stat -c %a "$MSG"
	expect "${MSG##*/}" as 65534 ls "$Q"
	expect job as 65534 cat "$Q/.peek/${MSG##*/}"
	refuse 'Permission denied' as 65534 sh -c 'echo x > "$0/x"' "$Q"
	refuse 'Permission denied' as 65534 sh -c 'echo stop > "$0/.control"' "$Q"
	refuse 'Permission denied' as 65534 rm -f "$MSG"
	repolled
	expect 1 listed
	expect 0 dead
}
