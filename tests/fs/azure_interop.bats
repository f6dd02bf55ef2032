#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Microsoft's own client on the other side of the queue.
# shellcheck disable=SC2016,SC2030,SC2031

export SPOOL_BACKEND=azure
load helpers

setup_file() { build_clients try; }

setup() {
	spool_setup
	mkdir "$BASE/src" "$BASE/got"
	MOST=${SPOOLFS_INTEROP_COUNT:-1000}
}

# sums DIR: of all files there, whatever their names.
sums() { (cd "$1" && find . -type f -exec sha256sum {} + | cut -d' ' -f1 | sort); }
same_bodies() { diff <(sums "$BASE/src") <(sums "$BASE/got"); }

# bodies ENCODING: MOST random ones, in BASE/src.
bodies() { "$CLIENTS_SRC/azure_bodies.py" "$BASE/src" "$MOST" "${SEED:-$RANDOM}" "$1"; }

# ours_to_theirs ENCODING
ours_to_theirs() {
	bodies "$1"
	spool_mount "role=out,encoding=$1"
	cp "$BASE"/src/* "$Q/"
	sync "$Q/.control"
	expect "$MOST" sdk count "$QUEUE"
	sdk getdir "$QUEUE" "$BASE/got" "$1" "$MOST"
	same_bodies
	expect 0 sdk count "$QUEUE"
}

# theirs_to_ours ENCODING
theirs_to_ours() {
	bodies "$1"
	# That client takes the newlines out of what it sends.
	[ "$1" = base64 ] || sed -i -z 's/\n//g' "$BASE"/src/*
	sdk create "$QUEUE"
	sdk putdir "$QUEUE" "$BASE/src" "$1"
	spool_mount "role=in,encoding=$1"
	wait_until 30 is "$MOST" listed
	# One that is let go for others in between comes again.
	timeout 60 bash -c 'until [ "$(ls "$BASE/got" | wc -l)" -ge "$1" ]; do
		for f in "$Q"/*; do
			[ -e "$f" ] && cat "$f" > "$BASE/body" && mv "$BASE/body" "$BASE/got/${f##*/}" && rm "$f"
		done
	done' _ "$MOST" 2> "$BASE/said"
	same_bodies
	repolled
	queue_empty
	expect 0 sdk count "$QUEUE"
}

@test "1,000 random messages from here to Microsoft's client, text" { ours_to_theirs text; }
@test "1,000 random messages from here to Microsoft's client, base64" { ours_to_theirs base64; }
@test "1,000 random messages from Microsoft's client to here, text" { theirs_to_ours text; }
@test "1,000 random messages from Microsoft's client to here, base64" { theirs_to_ours base64; }

@test "64 KiB exactly are sent, one byte more is EFBIG" {
	spool_mount encoding=text
	spool_mount -n b encoding=base64,role=out
	for to in "$Q 65536" "$BASE/b 49152"; do
		read -r dir most <<< "$to"
		head -c "$most" /dev/zero | tr '\0' x > "$BASE/most"
		cp "$BASE/most" "$dir/most"
		sync "$dir/.control"
		echo x >> "$BASE/most"
		refuse 'File too large' cp "$BASE/most" "$dir/more"
	done
	expect 2 sdk count "$QUEUE"
}

# Markup is longer on the wire than in the file.
@test "64 KiB of markup come back whole, or are EFBIG" {
	spool_mount encoding=text
	head -c 65536 /dev/zero | tr '\0' '&' > "$BASE/src/x"
	cp "$BASE/src/x" "$Q/x" || return 0
	sync "$Q/.control"
	wait_listed 1
	cmp "$BASE/src/x" "$(message)"
}

@test "text that XML cannot carry is EILSEQ at the close, and its draft stays" {
	spool_mount encoding=text
	for bytes in '\001' '\377' '\355\240\200' '\000' '\357\277\277'; do
		# shellcheck disable=SC2059
		printf "a${bytes}b" > "$BASE/src/x"
		refuse 'Invalid or incomplete multibyte' cp "$BASE/src/x" "$Q/x"
		expect 1 drafts
		cmp "$BASE/src/x" "$Q"/.drafts/*
		rm "$Q"/.drafts/*
	done
	expect 0 sdk count "$QUEUE"
}

# property NAME: of the first message that Microsoft's client sees.
property() { sdk peek "$QUEUE" | head -n 1 | jq -r ".$1"; }

@test "id, enqueue time, dequeue count and expiry are the same on both sides" {
	spool_mount visibility=1s,retry_delay=0
	id=$(sdk put "$QUEUE" "$(base64 <<< job)" 3600)
	wait_listed 1
	MSG=$(message)
	expect "$id" attr id "$MSG"
	in_s=$(date -d "$(attr enqueued "$MSG")" +%s)
	expect 1 attr dequeue_count "$MSG"
	[ $((in_s - $(date +%s))) -le 1 ]
	expect "$in_s" stat -c %Y "$MSG"
	spool_umount
	wait_until 10 is "$id" property messageId
	expect "$in_s" date -d "$(property insertedOn)" +%s
	expect $((in_s + 3600)) date -d "$(property expiresOn)" +%s
	at_least 1 property dequeueCount
}

@test "a message that has expired is gone here as well" {
	sdk create "$QUEUE"
	sdk put "$QUEUE" "$(base64 <<< short)" 2
	id=$(sdk put "$QUEUE" "$(base64 <<< hidden)" 600 2)
	wait_until 10 is "$id" property messageId
	spool_mount
	wait_until 10 is hidden bash -c 'cat "$Q"/.peek/*'
}

@test "what Microsoft's client has received is not listed, what it gives back is" {
	sdk create "$QUEUE"
	sdk put "$QUEUE" "$(base64 <<< job)"
	mapfile -t got < <(sdk receive "$QUEUE" 300 | jq -r '.messageId, .popReceipt')
	spool_mount
	repolled
	expect 0 listed
	sdk update "$QUEUE" "${got[@]}" 0
	wait_listed 1
	expect job cat "$(message)"
	expect 2 attr dequeue_count "$(message "" "$Q/.inflight")"
}

@test "what is listed here is hidden from Microsoft's client until it is given back" {
	spool_mount
	put job
	expect '' sdk receive "$QUEUE" 1
	spool_umount
	wait_until 10 at_least 1 their_count
}
their_count() { sdk receive "$QUEUE" 1 | wc -l; }
