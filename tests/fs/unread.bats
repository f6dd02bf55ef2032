#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A message that nobody has read is not lost by a careless rm.
# shellcheck disable=SC2016,SC2030,SC2031

load helpers

setup_file() { build_clients try fill; }

# Every one of m-000001 ... COUNT is in one of the FILES and directories.
all_there() {
	local count=$1
	shift
	for from in "$@"; do
		if [ -d "$from" ]; then
			find "$from/" -type f -exec cat {} +
		else
			cat "$from"
		fi
	done | sort -u > "$BASE/there"
	seq -f 'm-%06g' "$count" | diff - "$BASE/there"
}

# man: rm-unread
@test "5: rm of a message nobody has read buries it as unread, and the log says so" {
	spool_mount -f
	put job
	rm "$MSG"
	expect 0 listed
	wait_until 5 is 1 dead
	letter=$(message job "$Q/.dead")
	attr reason "$letter" | grep -q unread
	expect job cat "$letter"
	wait_until 5 grep -q unread "$BASE/q.log"
	mv "$letter" "$Q/"
	wait_listed 1
	MSG=$(message job)
	expect job cat "$MSG"
	rm "$MSG"
	repolled
	queue_empty
}

# man: rm-unread-delete
@test "5: -o rm_unread=delete deletes it" {
	spool_mount rm_unread=delete
	put job
	rm "$MSG"
	repolled
	queue_empty
}

@test "5: opened and closed without a read is unread" {
	spool_mount
	put job
	bash -c 'exec 3< "$1"; exec 3<&-; rm "$1"' _ "$MSG"
	wait_until 5 is 1 dead
	expect 0 listed
}

@test "5: 'cat Q/* > batch && rm Q/*' with more messages than the window loses nothing" {
	spool_mount window=50
	"$CLIENTS/fill" "$Q" m 200
	wait_listed 50
	# A shell of its own, as a user has it. rm finds no name where the listing
	# is empty at that moment.
	timeout 60 bash -c 'cat "$Q"/* > "$BASE/batch" && rm "$Q"/*' || :
	spool_umount
	spool_mount window=1000,visibility=1s
	# What rm got is either in the batch or buried; all else is still there.
	wait_until 20 all_there 200 "$BASE/batch" "$Q/.dead" "$Q/.peek" "$Q/.inflight"
}

# bats test_tags=sqlite:name
# man: rm-unread, rm-deletes
@test "5: what arrives between the two globs is buried, what was read is deleted" {
	spool_mount
	put old
	bash -c 'f=("$Q"/*); cat "${f[@]}" > "$BASE/batch"
		echo new > "$Q/new"
		until [ -e "$Q"/*-new ]; do sleep 0.02; done
		rm "${f[@]}" "$Q"/*-new'
	expect old cat "$BASE/batch"
	wait_until 5 is 1 dead
	expect new cat "$Q/.dead/"*-new
	repolled
	expect 0 listed
	expect 0 inflight
}

# bats test_tags=sqlite:size
@test "5: mv Q/* work/ moves exactly the bytes" {
	mkdir "$BASE/src" "$BASE/work"
	spool_mount
	for i in 1 100 4096 4097 70000 1000000; do
		head -c "$i" /dev/urandom > "$BASE/src/$i"
		cp "$BASE/src/$i" "$Q/"
	done
	wait_listed 6
	mv "$Q"/* "$BASE/work/"
	for i in 1 100 4096 4097 70000 1000000; do
		cmp "$BASE/src/$i" "$BASE/work/"*"-$i"
	done
	repolled
	queue_empty
}
