#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Sentences of spoolfs.7 about Azure Storage queues: the queue and its messages.
# azure_manual_far.bats has those about the distance.
# shellcheck disable=SC2016,SC2030,SC2031

export SPOOL_BACKEND=azure
load helpers

setup_file() { build_clients try fill; }

# As users mount it, but in a hurry. Each mount is a machine: it has its own state.
mount_options() {
	local options=state=$BASE/state.$1,visibility=2s
	[[ ,$2 == *,idle_time=* ]] || options+=,poll_floor=50ms,poll_ceiling=100ms
	echo "$options${2:+,$2}"
}

bodies() { cat "${1:-$Q}"/.peek/*; }
names() { (cd "$Q" && printf '%s\n' *); }
# Whether FILE has no such attribute.
has_no() { not attr "$1" "$2" 2> "$BASE/attr.err"; }

# man: az-create
@test "a missing queue is made, but not with create=no" {
	spool_mount create=no
	wait_until 10 at_least 1 control errors_total
	refuse '404 QueueNotFound' sdk count "$QUEUE"
	control last_error | grep -q QueueNotFound
	spool_mount -n b
	wait_until 10 sdk count "$QUEUE"
	echo job > "$BASE/b/x"
	wait_listed 1 "$BASE/b"
}

# man: az-name
@test "a name is the second of its enqueueing and the id" {
	spool_mount
	echo job > "$Q/ORDERS_4711.xml"
	wait_listed 1
	f=$(message)
	[[ ${f##*/} =~ ^[0-9]{8}T[0-9]{6}\.000000Z-[0-9a-f-]{36}$ ]]
	[[ $f == *-$(attr id "$f") ]]
	has_no name "$f"
}

# man: az-order
@test "listed in the order of ids within a second, given as the service gave them" {
	sdk create "$QUEUE"
	sdk send "$QUEUE" 20
	spool_mount
	wait_listed 20
	names > "$BASE/listed"
	for _ in {1..20}; do
		name=$(timeout 5 cat "$Q/.next")
		echo "$name" >> "$BASE/given_names"
		cat "$Q/$name" >> "$BASE/bodies"
		echo >> "$BASE/bodies"
		rm "$Q/$name"
	done
	cut -d' ' -f1 "$BASE/bodies" | diff - <(seq -f 'm-%06g' 0 19)
	not diff -q "$BASE/listed" "$BASE/given_names"
	sort -k 1.1,1.15 -k 1.24 "$BASE/given_names" | diff "$BASE/listed" -
}

# man: az-notice, az-late
@test "what others do is seen at the next poll, also what they give back" {
	sdk create "$QUEUE"
	spool_mount idle_time=1h
	wait_until 10 is waiting control state
	sdk put "$QUEUE" here
	sdk put "$QUEUE" late
	mapfile -t got < <(sdk receive "$QUEUE" 300 | jq -r '.messageId, .popReceipt')
	sdk update "$QUEUE" "${got[@]:0:2}" 0
	sdk update "$QUEUE" "${got[@]:2:2}" 1
	polls=$(control polls_total)
	wait_until 10 is 2 peeked
	expect 0 listed
	expect "$polls" control polls_total
	tell poll
	wait_listed 2
}
peeked() { sdk peek "$QUEUE" | wc -l; }

# man: az-size
@test "64 KiB, or 48 with base64, and no byte more" {
	spool_mount role=out
	spool_mount -n b role=out,encoding=base64
	for to in "$Q 65536" "$BASE/b 49152"; do
		read -r dir most <<< "$to"
		head -c "$most" /dev/zero | tr '\0' x > "$dir/most"
		sync "$dir/.control"
		refuse 'File too large' dd if=/dev/zero of="$dir/more" bs=$((most + 1)) count=1
	done
	expect 2 sdk count "$QUEUE"
	expect 0 entries "$Q/.drafts"
}

# man: az-text
@test "text is UTF-8 without control characters, else EILSEQ, and a draft" {
	spool_mount
	printf 'tab\tline\r\nGr\303\274\303\237e <&]]>' > "$BASE/good"
	cp "$BASE/good" "$Q/x"
	wait_listed 1
	cmp "$BASE/good" "$(message)"
	for bytes in '\001' '\033' '\377' '\000'; do
		# shellcheck disable=SC2059
		printf "a${bytes}b" > "$BASE/bad"
		refuse 'Invalid or incomplete multibyte' cp "$BASE/bad" "$Q/bad"
		cmp "$BASE/bad" "$(message bad "$Q/.drafts")"
		rm "$Q"/.drafts/*
	done
	expect 1 sdk count "$QUEUE"
}

# man: az-base64
@test "base64 carries any bytes, and what is none is read as it is" {
	spool_mount encoding=base64
	head -c 5000 /dev/urandom > "$BASE/any"
	cp "$BASE/any" "$Q/x"
	wait_listed 1
	cmp "$BASE/any" "$(message)"
	rm "$(claimed '')"
	sdk put "$QUEUE" 'no base64 at all!'
	wait_listed 1
	expect 'no base64 at all!' cat "$(message)"
}

# man: az-attempts
@test "deliveries are counted by the service, failures by the machine" {
	spool_mount retry_delay=0
	echo job > "$Q/x"
	wait_listed 1
	expect 1 attr dequeue_count "$(message)"
	# Unread, given back and fetched again.
	tell pause
	wait_listed 0
	sync "$Q/.control"
	tell resume
	wait_listed 1
	expect '2 0' counts
	not bash -c 'cat "$Q"/* > /dev/null; exit 1'
	wait_until 10 is '3 1' counts
	# The other machine.
	tell pause
	spool_mount -n b
	wait_listed 1 "$BASE/b"
	expect '4 0' counts "$BASE/b"
}
counts() {
	local f
	f=$(message '' "${1:-$Q}") && echo "$(attr dequeue_count "$f") $(attr attempts "$f")"
}

# man: az-dead, az-reason
@test "a dead letter is in QUEUE-poison, and its reason known where it was buried" {
	spool_mount
	echo job > "$Q/x"
	wait_listed 1
	id=$(attr id "$(message)")
	mv "$(message)" "$Q/.dead/"
	wait_until 10 is 1 dead
	expect 0 sdk count "$QUEUE"
	expect job sdk_text "$QUEUE-poison"
	letter=$(message '' "$Q/.dead")
	not test "$id" = "$(attr id "$letter")"
	expect job cat "$letter"
	attr reason "$letter" | grep -q .
	spool_mount -n b
	wait_until 10 is 1 entries "$BASE/b/.dead"
	has_no reason "$(message '' "$BASE/b/.dead")"
	tell pause "$BASE/b"
	# As before on this one after a restart.
	spool_kill
	spool_mount
	wait_until 10 is 1 dead
	attr reason "$(message '' "$Q/.dead")" | grep -q .
	mv "$(message '' "$Q/.dead")" "$Q/"
	wait_listed 1
	expect 0 sdk count "$QUEUE-poison"
}
sdk_text() { sdk peek "$1" | jq -r .messageText; }

# man: az-dead
@test ".dead shows the first 32, and the next when they are gone" {
	sdk create "$QUEUE-poison"
	sdk send "$QUEUE-poison" 33
	spool_mount
	wait_until 10 is 32 dead
	wait_until 10 is 33 control dead
	rm "$Q"/.dead/*
	wait_until 5 is 1 dead
	expect 1 sdk count "$QUEUE-poison"
}
