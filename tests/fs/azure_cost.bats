#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# bats file_tags=azure:slow
# What a mount asks of the service, which counts each request in money.
# shellcheck disable=SC2016,SC2030,SC2031

export SPOOL_BACKEND=azure
load helpers

setup_file() { build_clients fill; }

setup() {
	spool_setup
	faults_start
	export DB=$FAULTY/$QUEUE
}

# As users mount it, for the ring's own intervals would be counted else.
mount_options() { echo "state=$BASE/state.$1,encoding=base64${2:+,$2}"; }

requests() { faulted '[.requests[]] | add // 0'; }

# within_s SECONDS: the requests made in so long, beginning now.
within_s() {
	local before end
	before=$(requests)
	end=$(($(now_ms) + $1 * 1000))
	wait_until $(($1 + 5)) clock_is "$end"
	echo $(($(requests) - before))
}

@test "an empty queue at default settings: the back-off's polls and no more" {
	spool_mount
	wait_until 10 is waiting control state
	wait_until 20 at_least 4000 control backoff_interval_ms
	n=$(within_s 20)
	echo "# 20 s of an empty queue: $n requests; a poller of 1 s makes 20" >&3
	# After 1, 2 and 4 s: at most two polls in 20 s, and one look at the depth.
	[ "$n" -le 4 ]
	expect "$(requests)" control requests_total
	expect 60000 control backoff_ceiling_ms
}

@test "paused, and role=out: none at all" {
	spool_mount -n b role=out
	spool_mount
	tell pause
	wait_until 10 is paused control state
	expect 0 within_s 15
}

# Each message is renewed at half its lease, as long as it is held.
@test "a full window nobody reads: two requests for each message and lease" {
	spool_mount visibility=5s
	"$CLIENTS/fill" "$Q" m 40
	sync "$Q/.control"
	wait_listed 32
	n=$(within_s 20)
	echo "# 20 s (4 leases) with 32 unread messages: $n requests" >&3
	[ "$n" -le $((2 * 4 * 32 + 40)) ]
}

@test "per message handled: two requests and little more" {
	sdk create "$QUEUE"
	spool_mount role=out
	"$CLIENTS/fill" "$Q" m 320
	sync "$Q/.control"
	expect 320 faulted .requests.put
	spool_umount
	spool_mount role=in
	before=$(requests)
	bg bash -c 'while f=$(cat "$Q/.next") && [ -n "$f" ]; do cat "$Q/$f"; rm "$Q/$f"; done' \
		> "$BASE/got"
	wait_until 60 is 320 control handled_total
	sync "$Q/.control"
	n=$(($(requests) - before))
	echo "# 320 messages handled: $n requests, $(faulted '.requests | tostring')" >&3
	expect 320 faulted .requests.delete
	# One deletion each, one receive for 32, and polls.
	[ "$n" -le 420 ]
}
