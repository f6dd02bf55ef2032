#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# bats file_tags=azure:slow
# Writers people really use: each makes one message with the right bytes.
# shellcheck disable=SC2016,SC2030,SC2031

load helpers

setup_file() { build_clients try odd_writer; }

setup() {
	spool_setup
	mkdir "$BASE/src"
	echo 'the text' > "$BASE/src/x.xml"
}

# sent GIVEN [FILE]: the queue holds one message, of that name, with the bytes of
# FILE (src/x.xml), and nothing else anywhere. Consumes it.
sent() {
	local want=${2:-$BASE/src/x.xml}
	wait_listed 1
	repolled
	expect 1 listed
	MSG=$(message "$1")
	cmp "$want" "$MSG"
	rm "$MSG"
	repolled
	queue_empty
}

# man: write-close, write-empty
@test "7: echo >, cat >, >>, printf and an empty file" {
	spool_mount
	echo 'the text' > "$Q/x.xml"
	sent x.xml
	cat "$BASE/src/x.xml" > "$Q/x.xml"
	sent x.xml
	echo 'the text' >> "$Q/x.xml"
	sent x.xml
	dash -c 'echo "the text" > "$Q/x.xml"'
	sent x.xml
	: > "$Q/empty"
	sent empty /dev/null
	touch "$Q/empty2"
	sent empty2 /dev/null
}

# man: write-last-close
@test "7: { a; b; } > and exec 3> are one message" {
	spool_mount
	printf 'one\ntwo\nthree\n' > "$BASE/want"
	{
		echo one
		bash -c 'echo two'
		(echo three)
	} > "$Q/group"
	sent group "$BASE/want"
	bash -c 'exec 3> "$Q/held"; echo one >&3; bash -c "echo two >&3"; echo three >&3; exec 3>&-'
	sent held "$BASE/want"
	bash -c 'exec 3> "$Q/held2"; echo one >&3; echo two >&3; echo three >&3'
	sent held2 "$BASE/want"
}

# man: write-last-close
@test "7: nothing is sent before the last close" {
	spool_mount
	exec 7> "$Q/job"
	echo one >&7
	bash -c 'echo two >&7; exec 7>&-'
	repolled
	expect 0 listed
	echo three >&7
	exec 7>&-
	printf 'one\ntwo\nthree\n' > "$BASE/want"
	sent job "$BASE/want"
}

@test "7: cp, cp -p, cp -a, mv from another filesystem, install, tee" {
	spool_mount
	cp "$BASE/src/x.xml" "$Q/"
	sent x.xml
	cp -p "$BASE/src/x.xml" "$Q/"
	sent x.xml
	cp -a "$BASE/src/x.xml" "$Q/"
	sent x.xml
	cp "$BASE/src/x.xml" "$BASE/moved"
	mv "$BASE/moved" "$Q/"
	sent moved
	[ ! -e "$BASE/moved" ]
	install -m 640 "$BASE/src/x.xml" "$Q/"
	sent x.xml
	install -m 600 -o root -g root "$BASE/src/x.xml" "$Q/y.xml"
	sent y.xml
	tee "$Q/x.xml" < "$BASE/src/x.xml" > /dev/null
	sent x.xml
}

@test "7: dd conv=fsync, gzip, tar x, sponge, curl-like append by bytes" {
	spool_mount
	dd if="$BASE/src/x.xml" of="$Q/x.xml" conv=fsync bs=3 status=none
	sent x.xml
	gzip -nc < "$BASE/src/x.xml" > "$BASE/want.gz"
	gzip -nc < "$BASE/src/x.xml" > "$Q/x.gz"
	sent x.gz "$BASE/want.gz"
	tar -C "$BASE/src" -cf "$BASE/a.tar" x.xml
	tar -C "$Q" -xf "$BASE/a.tar"
	sent x.xml
	sponge "$Q/x.xml" < "$BASE/src/x.xml"
	sent x.xml
	"$CLIENTS/odd_writer" bytes "$Q/y.xml" 'the text'
	sent y.xml
}

# man: draft-names
@test "7: rsync, plain, of a directory, --inplace" {
	spool_mount
	# A new name each time: it compares with one that still answers.
	rsync "$BASE/src/x.xml" "$Q/a.xml"
	sent a.xml
	rsync -a "$BASE/src/" "$Q/"
	sent x.xml
	rsync --inplace -a "$BASE/src/x.xml" "$Q/b.xml"
	sent b.xml
	rsync --inplace "$BASE/src/x.xml" "$Q/c.xml"
	sent c.xml
}

# man: draft-names, write-relatives
@test "7: mktemp in the directory, then > and mv" {
	spool_mount
	f=$(mktemp -p "$Q")
	echo 'the text' > "$f"
	repolled
	expect 0 listed
	expect 1 drafts
	mv "$f" "$Q/x.xml"
	sent x.xml
	f=$(mktemp "$Q/.hidden.XXXXXX")
	cat "$BASE/src/x.xml" > "$f"
	mv "$f" "$Q/x.xml"
	sent x.xml
}

# man: draft-names
@test "7: write-then-rename, dot-tmp and dot" {
	spool_mount
	echo 'the text' > "$Q/x.xml.tmp"
	mv "$Q/x.xml.tmp" "$Q/x.xml"
	sent x.xml
	"$CLIENTS_SRC/renames.py" dot-tmp "$Q" x.xml 'the text'
	sent x.xml
	"$CLIENTS_SRC/renames.py" python-dot "$Q" x.xml 'the text'
	sent x.xml
}

@test "7: write-then-rename of Java, and of Python without a dot" {
	spool_mount
	"$CLIENTS_SRC/renames.py" java "$Q" x.xml 'the text'
	sent x.xml
	# Its temporary name is no draft's: it was sent at its close, the rename
	# within the moment after that has no further effect.
	"$CLIENTS_SRC/renames.py" python "$Q" x.xml 'the text'
	sent
	bash -c 'echo "the text" > "$Q/x.out"; mv "$Q/x.out" "$Q/x.xml"'
	sent x.out
}

# man: draft-names
@test "7: vim" {
	spool_mount
	vim=$(command -v vim || command -v vim.tiny)
	"$vim" -u NONE -N -es -c 'set swapfile' -c 'call setline(1, "the text")' -c wq \
		"$Q/x.xml" < /dev/null > /dev/null
	sent x.xml
	"$vim" -u DEFAULTS -es -c 'call setline(1, "the text")' -c 'set backup' -c wq \
		"$Q/y.xml" < /dev/null > /dev/null
	sent y.xml
}

# man: write-last-close, write-relatives
@test "7: a program that forks and writes from both, one whose child closes last" {
	spool_mount
	"$CLIENTS/odd_writer" fork "$Q/x.xml" 'the text'
	sent x.xml
	"$CLIENTS/odd_writer" late "$Q/y.xml" 'the text'
	sent y.xml
}

# man: durable-mmap
@test "7: a program that starts others while it has its file open" {
	spool_mount
	timeout 20 "$CLIENTS/odd_writer" exec "$Q/x.xml" 'the text'
	sent x.xml
}

@test "7: an mmap writer" {
	spool_mount
	"$CLIENTS/odd_writer" mmap "$Q/x.xml" 'the text'
	sent x.xml
}

# bats test_tags=sqlite:size
@test "7: 1 byte, 1 MiB, binary, and all sizes about a page" {
	spool_mount
	for size in 1 4095 4096 4097 131072 131073 1048576; do
		head -c "$size" /dev/urandom > "$BASE/src/blob"
		cp "$BASE/src/blob" "$Q/"
		sent blob "$BASE/src/blob"
	done
	truncate -s 10000 "$BASE/src/holes"
	cp --sparse=always "$BASE/src/holes" "$Q/"
	sent holes "$BASE/src/holes"
}

@test "7: writing at offsets, cutting and reading back what was written" {
	spool_mount
	python3 - "$Q/x.xml" <<- 'EOF'
		import os, sys
		fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_EXCL)
		os.pwrite(fd, b"text\nand more", 4)
		os.pwrite(fd, b"the ", 0)
		os.ftruncate(fd, 9)
		assert os.pread(fd, 100, 0) == b"the text\n"
		assert os.fstat(fd).st_size == 9
		os.close(fd)
	EOF
	sent x.xml
}

# man: name-safe
@test "7: names: spaces, UTF-8, newlines, a leading dash, a name of 255 bytes" {
	spool_mount
	long=$(printf '%0255d' 7)
	for name in 'a b' 'Ärger' $'two\nlines' '-rf' "$long"; do
		cp -- "$BASE/src/x.xml" "$Q/$name"
		wait_listed 1
		f=$(message)
		f=${f##*/}
		[ "$(printf %s "$f" | wc -c)" -le 255 ]
		[[ $f != *$'\n'* ]]
		cat "$Q/$f" > /dev/null
		rm "$Q/$f"
	done
	repolled
	queue_empty
	expect 5 control handled_total
}

# bats test_tags=sqlite:name
@test "7: -o suffix= ends the name of a message that was given none" {
	spool_mount
	echo x > "$Q/given"
	echo y > "$Q/other"
	sync "$Q/.control"
	spool_umount
	# As another program may have put it there.
	python3 -c 'import sqlite3, sys; db = sqlite3.connect(sys.argv[1])
db.execute("UPDATE message SET given = NULL WHERE given = ?", ("other",)); db.commit()' "$DB"
	spool_mount suffix=.xml
	wait_listed 2
	message given
	[[ $(basename "$Q"/*.xml) =~ ^[0-9]{8}T[0-9]{6}\.[0-9]{6}Z-[0-9A-Za-z]+\.xml$ ]]
	expect y cat "$Q"/.peek/*.xml
}

# eight_writers [OPTIONS]: of one name, each of which has it open with the others.
eight_writers() {
	spool_mount "$@"
	cat > "$BASE/writer.sh" <<- 'EOF'
		{
			for i in 1 2 3 4 5 6 7 8 9 10; do
				echo "$1 line $i"
			done
			until [ -e "$BASE/go" ]; do sleep 0.02; done
			echo "$1 end"
		} > "$Q/job"
	EOF
	# Each has the file open while the others open it.
	for w in 1 2 3 4 5 6 7 8; do
		bg bash "$BASE/writer.sh" "w$w"
	done
	wait_until 15 is 8 drafts
	: > "$BASE/go"
	wait_listed 8
	for f in "$Q"/*; do
		expect 1 bash -c 'cut -d" " -f1 "$1" | sort -u | wc -l' _ "$Q/.peek/${f##*/}"
		expect 11 bash -c 'wc -l < "$1"' _ "$Q/.peek/${f##*/}"
	done
	repolled
	expect 8 listed
	expect 0 drafts
}

# man: write-independent
@test "7: 8 writers of one name at once: 8 whole messages" { eight_writers; }

# man: write-independent
@test "7: claims=shared shares claims, no drafts: 8 writers are 8 messages" {
	eight_writers claims=shared
}

# bats test_tags=sqlite:order
# man: write-append, write-anew
@test "7: appending to a name that was sent, and writing it anew, are new messages" {
	spool_mount
	echo one > "$Q/job"
	echo two >> "$Q/job"
	echo three > "$Q/job"
	wait_listed 3
	expect "$(printf 'one\ntwo\nthree')" cat "$Q"/*-job
}

# man: write-moment
@test "7: for a moment after the send the name answers, with no further effect" {
	spool_mount
	cp "$BASE/src/x.xml" "$Q/"
	tries ok stat "$Q/x.xml"
	tries ok chmod "$Q/x.xml"
	tries ok utimens "$Q/x.xml"
	chown 0:0 "$Q/x.xml"
	expect 'the text' cat "$Q/x.xml"
	tries ok unlink "$Q/x.xml"
	sent x.xml
	cp "$BASE/src/x.xml" "$Q/"
	tries ok rename "$Q/x.xml" "$Q/y.xml"
	sent x.xml
	cp "$BASE/src/x.xml" "$Q/"
	wait_until 10 tries ENOENT stat "$Q/x.xml"
	sent x.xml
}

# man: name-late
@test "7: a late touch enqueues nothing" {
	spool_mount
	echo 'the text' > "$Q/x.xml"
	touch "$Q/x.xml"
	sent x.xml
	put job
	cat "$MSG" > /dev/null
	touch "$MSG"
	rm "$MSG"
	refuse 'No such file' touch "$MSG"
	tries ENOENT create "$MSG"
	tries ENOENT create-excl "$Q/20200101T000000.000000Z-0000000000000017-x"
	tries ENOENT create "$Q/20200101T000000.000000Z-0000000000000017"
	repolled
	queue_empty
}

# man: draft-rm, draft-resolves, dir-drafts
@test "7: drafts resolve by name, are listed in .drafts/ only, and rm discards them" {
	spool_mount
	echo half > "$Q/x.tmp"
	expect 0 listed
	expect half cat "$Q/x.tmp"
	expect 1 drafts
	[[ $(message x.tmp "$Q/.drafts") =~ /[0-9]{8}T[0-9]{6}\.[0-9]{6}Z-[0-9A-Za-z]+-x\.tmp$ ]]
	expect half cat "$(message x.tmp "$Q/.drafts")"
	rm "$Q/x.tmp"
	expect 0 drafts
	repolled
	queue_empty
}

# man: dir-drafts
@test "7: a draft that was renamed is in .drafts/ under the name it has now" {
	spool_mount
	echo half > "$Q/x.tmp"
	message x.tmp "$Q/.drafts"
	mv "$Q/x.tmp" "$Q/y.part"
	not message x.tmp "$Q/.drafts"
	expect half cat "$(message y.part "$Q/.drafts")"
	mv "$(message y.part "$Q/.drafts")" "$Q/."
	wait_listed 1
	message y.part
}

# man: durable-close
@test "7: a closed draft survives a killed daemon" {
	spool_mount
	echo half > "$Q/x.tmp"
	spool_kill
	spool_mount
	expect 1 drafts
	expect 0 listed
	mv "$(message x.tmp "$Q/.drafts")" "$Q/x"
	wait_listed 1
	expect half cat "$(message x)"
}

@test "7: rm of a name that is being written: nobody gets it" {
	spool_mount
	run "$CLIENTS/odd_writer" never "$Q/job" text
	[ "$status" -eq 3 ]
	repolled
	queue_empty
}
