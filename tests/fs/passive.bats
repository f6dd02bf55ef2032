#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# bats file_tags=azure:slow
# Nothing but opening claims: tools that look leave every state and count.
# shellcheck disable=SC2016,SC2030,SC2031

load helpers

setup_file() { build_clients try fill; }

# One line for each fact that looking must not change.
facts() {
	for key in ready in_flight dead drafts outbox handled_total leases_lost; do
		echo "$key $(control "$key")"
	done
	for f in "$Q"/*; do
		echo "${f##*/} $(attr state "$f") $(attr attempts "$f") $(attr dequeue_count "$f")"
	done
	find "$Q/.dead/" "$Q/.drafts/" -mindepth 1 | sort
}

# Three ready messages, a dead letter, a draft.
some_of_each() {
	spool_mount
	for name in a x b c; do
		put "$name" "text of $name"
	done
	wait_listed 4
	mv "$(message x)" "$Q/.dead/"
	echo half > "$Q/later.tmp"
	wait_until 5 is 1 dead
	wait_until 5 is 1 drafts
	facts > "$BASE/before"
}

# unchanged COMMAND...: it succeeds, and all is as before.
unchanged() {
	"$@" > "$BASE/said" || return 1
	wait_until 5 same || {
		facts | diff "$BASE/before" -
		return 1
	}
}
same() { facts | cmp -s "$BASE/before" -; }

# man: look-harmless, only-open-claims
@test "6: ls, find, du, stat, test, getfattr, grep in .peek leave all as it was" {
	some_of_each
	unchanged ls -laR "$Q"
	not grep -q peek "$BASE/said"
	unchanged ls -la "$Q/.peek" "$Q/.inflight" "$Q/.dead" "$Q/.drafts" "$Q/.outbox"
	unchanged find "$Q" -ls
	unchanged find "$Q" -newer /etc/passwd -size +0 -type f
	unchanged du -a "$Q"
	unchanged stat "$Q"/*
	unchanged getfattr --absolute-names -d "$Q"/*
	unchanged test -r "$(message a)"
	unchanged bash -c '[[ -s $1 && -r $1 && -w $1 && ! -x $1 ]]' _ "$(message a)"
	unchanged ls --color=always "$Q"
	unchanged grep -r 'text of b' "$Q/.peek"
	expect 1 grep -c . "$BASE/said"
	unchanged wc -c "$Q"/.peek/*
	unchanged cp -r "$Q/.peek" "$BASE/backup"
	expect 'text of c' cat "$(message c "$BASE/backup")"
	unchanged cat "$Q/.control"
	unchanged cat "$Q/.status.json"
	unchanged cat "$Q/.metrics"
	unchanged df "$Q"
}

# man: claim-unread
@test "6: flock and opening without a read leave all as it was" {
	some_of_each
	unchanged flock "$(message a)" true
	unchanged flock "$Q" true
	unchanged bash -c 'exec 3< "$1"' _ "$(message b)"
	unchanged head -c 0 "$(message c)"
	unchanged python3 -c 'import os, sys; os.close(os.open(sys.argv[1], os.O_PATH))' \
		"$(message a)"
}

# man: look-harmless
@test "6: a running inotifywait -r leaves all as it was" {
	some_of_each
	bg inotifywait -rm "$Q" > "$BASE/events" 2> "$BASE/inotify"
	wait_until 10 grep -q established "$BASE/inotify"
	unchanged ls -la "$Q"
	end_tree "$BG"
	unchanged true
}

# man: dot-entries
@test "6: find, rsync and rm -rf never meet a dot entry" {
	some_of_each
	find "$Q" -type f -printf '%f\n' | sort | diff - <(ls "$Q")
	mkdir "$BASE/d"
	rsync -a "$Q/" "$BASE/d/"
	find "$BASE/d" -mindepth 1 -printf '%f\n' | sort > "$BASE/copied"
	expect "$(sed -n 's/ ready .*//p' "$BASE/before")" cat "$BASE/copied"
	expect 'text of a' cat "$(message a "$BASE/d")"
	repolled
	# rsync read them and this shell has inherited them: they are claimed.
	for f in "$BASE"/d/*; do
		tell "release ${f##*/} 0"
	done
	wait_listed 3
	not rm -rf "$Q/" 2> "$BASE/rm"
	# Only the mount point itself withstood.
	expect 1 grep -c . "$BASE/rm"
	not grep -q '/\.' "$BASE/rm"
	expect 1 drafts
	# Nobody had read them in this life of theirs.
	wait_until 5 is 4 dead
}

# man: show-control
@test "6: -o show_control lists the dot entries" {
	spool_mount show_control
	ls -A "$Q" > "$BASE/all"
	for entry in .control .status.json .metrics .next .inflight .peek .dead .outbox \
		.drafts; do
		grep -qxF -- "$entry" "$BASE/all"
	done
	expect '' ls "$Q"
}

# man: dir-peek
@test "6: .peek shows the bytes of ready messages, and only reads" {
	spool_mount
	put a
	put b
	expect 2 entries "$Q/.peek"
	expect "$(printf 'a\nb')" sent_order < <(cat "$Q"/.peek/*)
	expect 2 listed
	b=$MSG
	cat "$b" > /dev/null
	expect 1 entries "$Q/.peek"
	rm "$b"
	a=$Q/.peek/$(basename "$(message a)")
	run "$CLIENTS/try" unlink "$a"
	[ "$output" = EPERM ] || [ "$output" = EACCES ]
	expect 1 listed
}
