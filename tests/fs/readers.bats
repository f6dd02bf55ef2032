#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# bats file_tags=azure:slow
# Readers and importers people really use: each gets exactly the bytes.
# shellcheck disable=SC2016,SC2030,SC2031

load helpers

setup_file() { build_clients try fill hold; }

setup() {
	spool_setup
	head -c "$BLOB_BYTES" /dev/urandom > "$BASE/blob"
	printf 'first\nsecond\nthird\n' > "$BASE/lines"
}

# send FILE: MSG is that message then.
send() {
	cp "$1" "$Q/"
	wait_listed 1
	MSG=$(message)
}

# It was claimed by a reader of this shell: rm deletes it, nothing is left.
removed() {
	expect 0 listed
	expect 1 inflight
	rm "$MSG"
	repolled
	queue_empty
}

# man: bytes-exact
@test "7: cat, cp, dd bs=1, dd bs=1M, od and tail" {
	spool_mount
	for reader in 'cat "$1"' 'cp "$1" /dev/stdout' 'dd if="$1" bs=1M status=none' \
		'od -An -v -tx1 "$1" | xxd -r -p' 'tail -c +1 "$1"'; do
		send "$BASE/blob"
		bash -c "$reader" _ "$MSG" | cmp - "$BASE/blob"
		removed
	done
	send "$BASE/lines"
	dd if="$MSG" bs=1 status=none | cmp - "$BASE/lines"
	removed
}

# man: claim-resolves
@test "7: head -1, then process, then rm" {
	spool_mount
	send "$BASE/lines"
	expect first head -n 1 "$MSG"
	expect third tail -n 1 "$MSG"
	expect 2 grep -c ir "$MSG"
	removed
}

@test "7: a while-read loop, a redirection, mapfile, wc, sort" {
	spool_mount
	send "$BASE/lines"
	while read -r line; do
		echo "$line"
	done < "$MSG" | cmp - "$BASE/lines"
	mapfile -t lines < "$MSG"
	[ "${#lines[@]}" -eq 3 ]
	expect third bash -c 'sort -r "$1" | head -n 1' _ "$MSG"
	expect "3 19" bash -c 'wc -lc < "$1" | xargs' _ "$MSG"
	rm "$MSG"
	repolled
	queue_empty
}

# man: bytes-exact
@test "7: mmap, sendfile, and starting programs while it is open" {
	spool_mount
	for how in mmap sendfile exec; do
		send "$BASE/blob"
		timeout 20 "$CLIENTS_SRC/odd_reader.py" "$how" "$MSG" | cmp - "$BASE/blob"
		removed
	done
}

# man: claim-resolves
@test "7: tar --remove-files, rsync --remove-source-files, mv" {
	mkdir "$BASE/out"
	spool_mount
	send "$BASE/blob"
	tar -C "$Q" -cf "$BASE/a.tar" --remove-files "${MSG##*/}"
	tar -xOf "$BASE/a.tar" | cmp - "$BASE/blob"
	repolled
	queue_empty
	send "$BASE/blob"
	rsync -a --remove-source-files "$Q/" "$BASE/out/"
	cmp "$BASE/out/${MSG##*/}" "$BASE/blob"
	repolled
	queue_empty
	send "$BASE/blob"
	mv "$MSG" "$BASE/out/moved"
	cmp "$BASE/out/moved" "$BASE/blob"
	repolled
	queue_empty
}

@test "7: find -exec and xargs handle each message" {
	spool_mount
	"$CLIENTS/fill" "$Q" m 40
	wait_listed 40
	find "$Q" -type f -name '*Z-*' | sort | head -n 20 |
		xargs -n 1 sh -c 'cat "$0" >> "$BASE/got" && rm "$0"'
	find "$Q" -type f -exec cat {} \; -delete >> "$BASE/got"
	sort "$BASE/got" > "$BASE/sorted"
	seq -f 'm-%06g' 40 | diff - "$BASE/sorted"
	repolled
	queue_empty
}

@test "7: sed -i on a message takes nothing away" {
	spool_mount
	send "$BASE/lines"
	# Its rename onto a listed or claimed name is refused: nothing is lost.
	not sed -i s/first/1st/ "$MSG"
	expect first head -n 1 "$MSG"
	expect claimed attr state "$MSG"
	expect 0 dead
}

# man: mv-claims
@test "7: an importer renames in place, and everyone sees the new name" {
	spool_mount
	send "$BASE/lines"
	mv "$MSG" "$Q/claimed.by.me"
	expect claimed.by.me ls "$Q"
	expect 1 inflight
	# Two siblings: the claim is this shell's, and so both may read it.
	bash -c 'cmp "$Q/claimed.by.me" "$BASE/lines"'
	refuse 'No such file' cat "$MSG"
	rm "$Q/claimed.by.me"
	repolled
	queue_empty
}

# man: mv-claims, mv-back
@test "7: a renamed message is claimed: strangers get EBUSY, and its end gives it back" {
	spool_mount retry_delay=100ms
	put job
	mkfifo "$BASE/never"
	bg bash -c 'mv "$1" "$Q/$$.work"; : > "$BASE/ready"; read -r _ < "$BASE/never"' _ "$MSG"
	wait_until 10 test -e "$BASE/ready"
	tries EBUSY open "$Q/$BG.work"
	tries EBUSY unlink "$Q/$BG.work"
	expect "$BG.work" ls "$Q"
	expect 0 control ready
	kill -KILL "$BG"
	wait_listed 1
	# It has its own name again.
	expect "$MSG" message
	expect 1 attr attempts "$MSG"
}

# man: list-dirs, mv-done, mv-failed
@test "7: renaming into done= deletes, into failed= buries" {
	spool_mount done=archive,failed=bad
	expect "$(printf 'archive\nbad')" ls "$Q"
	put a
	a=$MSG
	put b
	b=$MSG
	cat "$a" "$b" > /dev/null
	mv "$a" "$Q/archive/"
	mv "$b" "$Q/bad/"
	wait_until 5 is 1 dead
	expect b cat "$(message b "$Q/.dead")"
	expect "$(printf 'archive\nbad')" ls "$Q"
	repolled
	expect 0 inflight
	rm "$(message b "$Q/.dead")"
	repolled
	wait_until 10 is 0 queue_depth
}

@test "7: an importer that renames in place first, then into done= under another name" {
	spool_mount done=done
	put a
	mv "$MSG" "$Q/a.work"
	expect a cat "$Q/a.work"
	mv "$Q/a.work" "$Q/done/a.$$"
	repolled
	expect 0 inflight
	expect 0 dead
	expect 'done' ls "$Q"
	wait_until 10 is 0 queue_depth
}

# man: mv-listed, mv-eperm
@test "7: renames that are refused: EEXIST onto a listed name, EPERM elsewhere" {
	spool_mount
	put a
	a=$MSG
	put b
	for call in rename rename-noreplace; do
		tries EEXIST "$call" "$a" "$MSG"
		tries EPERM "$call" "$a" "$Q/.outbox/x"
		tries EPERM "$call" "$a" "$Q/.drafts/x"
		tries EPERM "$call" "$a" "$Q/.peek/x"
		tries EPERM "$call" "$a" "$Q/.inflight/x"
	done
	tries EXDEV rename "$a" "$BASE/outside"
	refuse '' mv -f "$a" "$MSG"
	repolled
	expect 2 listed
	expect 0 dead
	expect "$(printf 'a\nb')" cat "$a" "$MSG"
}

@test "7: an importer that opens twice" {
	spool_mount
	send "$BASE/lines"
	"$CLIENTS_SRC/odd_reader.py" twice "$MSG" | cmp - <(cat "$BASE/lines" "$BASE/lines")
	removed
}

# man: list-ready
@test "7: an importer that lists again and finds its own, copies to an archive, removes" {
	mkdir "$BASE/archive"
	spool_mount
	"$CLIENTS/fill" "$Q" m 20
	wait_listed 20
	"$CLIENTS_SRC/odd_reader.py" importer "$Q" "$BASE/archive"
	expect 20 entries "$BASE/archive"
	cat "$BASE"/archive/* | sort | diff - <(seq -f 'm-%06g' 20)
	repolled
	queue_empty
}

# man: fd-keeps
@test "7: an open descriptor reads on after the message was removed" {
	spool_mount
	send "$BASE/blob"
	exec 7< "$MSG"
	head -c 10 <&7 > /dev/null
	rm "$MSG"
	repolled
	queue_empty
	expect $((BLOB_BYTES - 10)) bash -c 'wc -c <&7'
	exec 7<&-
}

# man: fd-keeps
@test "7: a descriptor keeps its bytes though the lease was lost" {
	spool_mount max_lease=600ms,visibility=300ms,retry_delay=50ms
	send "$BASE/blob"
	exec 7< "$MSG"
	head -c 10 <&7 > /dev/null
	wait_listed 1
	expect 1 attr attempts "$MSG"
	expect $((BLOB_BYTES - 10)) bash -c 'wc -c <&7'
	exec 7<&-
}
