#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The fault server, seen by Microsoft's own client: what it says must be what
# that client takes for the service, before it may judge ours.

load ../fs/helpers
load ../fs/azure

setup_file() { azurite_start "$BATS_FILE_TMPDIR/azurite" --inMemoryPersistence; }
teardown_file() { azurite_stop "$BATS_FILE_TMPDIR/azurite"; }

teardown() {
	spool_teardown
	local status=$?
	faults_stop
	return "$status"
}

setup() {
	spool_setup
	faults_start
	export URL=$FAULTS_URL RETRY_MS=5
	QUEUE=t$BATS_TEST_NUMBER-jobs
	sdk create "$QUEUE"
}

# received N: two lines for each message, its id and its receipt.
received() { sdk receive "$QUEUE" 300 | jq -r '.messageId, .popReceipt' | head -n $((2 * $1)); }

@test "the client works through it, and it counts what it did" {
	sdk send "$QUEUE" 40
	sdk drain "$QUEUE" 40
	expect 0 sdk count "$QUEUE"
	expect 40 faulted .requests.put
	expect 40 faulted .requests.delete
	expect '{}' faulted '.faults | tostring'
}

@test "as the real service: the client does not mind the mark and the receipts" {
	faults '{"real":true}'
	curl -sS "$URL/$AZURE_DEV_ACCOUNT/nothing/messages" | head -c 3 | xxd -p | grep -qx efbbbf
	sdk send "$QUEUE" 40
	sdk put "$QUEUE" $'<&>"\' \u00fc ]]>'
	sdk receive "$QUEUE" 1 | jq -r .popReceipt | sort | uniq -c > "$BASE/receipts"
	# One for all, and no character of it is safe in a URL.
	grep -qE '^ *32 .*\+.*' "$BASE/receipts" && grep -q / "$BASE/receipts" && grep -q =$ "$BASE/receipts"
	mkdir "$BASE/got"
	sdk getdir "$QUEUE" "$BASE/got" text 41
	expect 41 entries "$BASE/got"
	grep -qxF $'<&>"\' \u00fc ]]>' "$BASE"/got/*
}

@test "as the real service: only the newest receipt is good" {
	faults '{"real":true, "stale":"404"}'
	sdk put "$QUEUE" one
	mapfile -t got < <(received 1)
	newer=$(sdk update "$QUEUE" "${got[@]}" 300)
	[ "$newer" != "${got[1]}" ]
	refuse '404 MessageNotFound' sdk delete "$QUEUE" "${got[@]}"
	faults '{"real":true, "stale":"400"}'
	refuse '400 InvalidQueryParameterValue' sdk delete "$QUEUE" "${got[@]}"
	faults '{"real":true}'
	refuse '400 PopReceiptMismatch' sdk delete "$QUEUE" "${got[@]}"
	sdk delete "$QUEUE" "${got[0]}" "$newer"
	refuse '404 MessageNotFound' sdk delete "$QUEUE" "${got[0]}" "$newer"
}

# answers WHAT RULE: to every put.
answers() {
	faults "{\"rules\":[{\"on\":\"put\",$2}]}"
	refuse "$1" sdk put "$QUEUE" x
}

@test "refusals have the status and the code that the client knows" {
	answers '503 ServerBusy' '"fault":"busy"'
	expect 4 faulted .requests.put
	answers '500 OperationTimedOut' '"fault":"timeout"'
	expect 4 faulted .requests.put
	answers '500 InternalError' '"fault":"internal"'
	expect 4 faulted .faults.internal
	answers '409 QueueBeingDeleted' '"fault":"deleting"'
	expect 1 faulted .requests.put
	answers '403 AuthenticationFailed' '"fault":"denied"'
	answers '429 TooManyRequests' '"fault":"throttled","retry_after":1'
	expect 0 sdk count "$QUEUE"
	answers '500 OperationTimedOut' '"fault":"timeout","applied":true'
	expect 4 sdk count "$QUEUE"
}

@test "Retry-After comes in seconds and as a date" {
	faults '{"rules":[{"fault":"busy","retry_after":7,"times":1},
		{"fault":"busy","retry_date":7,"times":1}, {"fault":"busy"}]}'
	curl -sS -D - -o "$BASE/said" "$URL/x" | grep -qi '^retry-after: 7.$'
	curl -sS -D - -o "$BASE/said" "$URL/x" | tr -d '\r' |
		sed -n 's/^retry-after: //p' > "$BASE/date"
	in_s=$(($(date -d "$(< "$BASE/date")" +%s) - $(date +%s)))
	[ "$in_s" -ge 4 ] && [ "$in_s" -le 7 ]
	not grep -qi retry-after <(curl -sS -D - "$URL/x")
}

@test "what passes is tried again by the client, and done" {
	for fault in busy timeout internal reset; do
		faults "{\"rules\":[{\"on\":\"put\",\"fault\":\"$fault\",\"times\":2}]}"
		sdk put "$QUEUE" "$fault"
		expect 3 faulted .requests.put
		expect 2 faulted ".faults.$fault"
	done
	expect 4 sdk count "$QUEUE"
}

@test "a lost reply: the client sends again, and the message is there twice" {
	faults '{"rules":[{"on":"put","fault":"lost","times":1}]}'
	sdk put "$QUEUE" twice
	expect 2 sdk count "$QUEUE"
}

@test "broken replies to a receive: the client has an error, or the whole answer" {
	sdk put "$QUEUE" one
	for fault in cut long garbage bomb; do
		faults "{\"rules\":[{\"on\":\"peek\",\"fault\":\"$fault\"}]}"
		not grep -q '"messageText":"one"' <(sdk peek "$QUEUE" 2> "$BASE/$fault")
		at_least 1 faulted ".faults.$fault"
	done
	faults '{"rules":[{"on":"peek","fault":"trickle","ms":2}]}'
	sdk peek "$QUEUE" | grep -q '"messageText":"one"'
}

@test "replies without an end, and none at all: only a bound of ours ends them" {
	for fault in endless flood silent; do
		faults "{\"rules\":[{\"on\":\"peek\",\"fault\":\"$fault\"}]}"
		SDK_TIMEOUT=2 not sdk peek "$QUEUE"
		expect 1 faulted ".faults.$fault"
	done
	# And it goes on for others all the while.
	faults '{}'
	sdk peek "$QUEUE"
}

@test "another clock is refused, and our own is accepted beside it" {
	faults '{"skew_s":600}'
	sdk peek "$QUEUE"
	faults '{"skew_s":-3600}'
	refuse '403 AuthenticationFailed' sdk peek "$QUEUE"
	expect 1 faulted .faults.bad_clock
	theirs=$(date -d "$(curl -sSI "$URL/x" | tr -d '\r' | sed -n 's/^date: //p')" +%s)
	[ $(($(date +%s) - theirs)) -ge 3590 ]
}

@test "a signature that Azurite refuses is refused here" {
	# shellcheck disable=SC2034
	AZURE_DEV_KEY=$(head -c 64 /dev/zero | base64 -w 0)
	refuse '403' sdk peek "$QUEUE"
	expect 1 faulted .faults.bad_signature
	URL=$AZURITE_URL refuse '403' sdk peek "$QUEUE"
}

@test "the same seed draws the same faults" {
	for seed in 1 1 2; do
		faults "{\"seed\":$seed,\"rules\":[{\"on\":\"put\",\"fault\":\"busy\",\"p\":0.1}]}"
		sdk send "$QUEUE" 60 > "$BASE/ms"
		faulted .requests.put >> "$BASE/drawn"
	done
	mapfile -t drawn < "$BASE/drawn"
	echo "${drawn[@]}"
	[ "${drawn[0]}" = "${drawn[1]}" ] && [ "${drawn[0]}" != "${drawn[2]}" ]
	[ "${drawn[0]}" -gt 62 ]
}
