#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Sentences of spoolfs.7 about Azure Storage queues: far away, and what it costs.
# shellcheck disable=SC2016,SC2030,SC2031

export SPOOL_BACKEND=azure
load helpers

setup_file() { build_clients fill; }

setup() {
	spool_setup
	faults_start
	export DB=$FAULTY/$QUEUE
}

# The fault server is needed until the last mount has ended.
teardown() {
	local mnt
	while read -r mnt; do
		force_umount "$mnt"
	done < <(sort -u "$BASE/mounts")
	spool_teardown
}

# As users mount it, but in a hurry. Each mount is a machine unless it says state=.
mount_options() {
	local options=visibility=2s
	[[ ,$2 == *,state=* ]] || options+=,state=$BASE/state.$1
	[[ ,$2 == *,idle_time=* ]] || options+=,poll_floor=50ms,poll_ceiling=100ms
	echo "$options${2:+,$2}"
}

requests() { faulted ".requests.$1 // 0"; }
depth() { sdk count "$QUEUE"; }
# texts: the bodies that are waiting, in the service's order.
texts() { sdk peek "$QUEUE" | jq -r .messageText | xargs; }
waits_at_least() { [ "$(control next_poll_in_ms)" -ge "$1" ]; }

# ---- far away -----------------------------------------------------------------

# man: az-outbox
@test "what is sealed in the outbox survives a crash and a restart, and is sent" {
	faults '{"rules":[{"fault":"reset"}]}'
	spool_mount role=out
	echo one > "$Q/one"
	echo two > "$Q/two"
	expect 2 control outbox
	spool_kill
	spool_mount role=out
	wait_until 10 is 2 control outbox
	expect one cat "$(message one "$Q/.outbox")"
	spool_kill
	faults '{}'
	spool_mount role=out
	sync "$Q/.control"
	expect 0 control outbox
	expect 'one two' texts
}

# writes NAME WORD...: a process of its own, that lives on, writes a message of each.
writes() {
	bg bash -c 'for w in "${@:2}"; do printf "$w" > "$Q/$w"; done
		: > "$BASE/$1.written"; exec tail -f /dev/null' _ "$@"
	wait_until 10 test -e "$BASE/$1.written"
}

# man: az-writer
@test "one writer's messages go one after the other, another's beside them" {
	sdk create "$QUEUE"
	faults '{"rules":[{"fault":"delay","ms":1500,"on":"put","times":1}]}'
	spool_mount role=out
	writes a a1 a2 a3
	writes b b1
	wait_until 10 is 3 control outbox
	expect b1 texts
	expect 2 requests put
	sync "$Q/.control"
	expect 'b1 a1 a2 a3' texts
}

# man: az-twice
@test "what was sent and not answered is sent again" {
	sdk create "$QUEUE"
	faults '{"rules":[{"fault":"lost","on":"put","times":1}]}'
	spool_mount role=out
	echo job > "$Q/x"
	wait_until 10 is 1 control sent_total
	expect 2 requests put
	expect 'job job' texts
}

# man: az-restart
@test "a claim survives the daemon with its message, while the service is away" {
	spool_mount
	echo job > "$Q/x"
	wait_listed 1
	f=$(message)
	worker w "$f"
	sync "$Q/.control"
	spool_kill
	faults '{"rules":[{"fault":"reset"}]}'
	spool_mount
	wait_until 10 is 1 inflight
	expect "$WORKER" attr owner "$f"
	order w "cat '$f' > '$BASE/got'"
	expect job cat "$BASE/got"
	faults '{}'
	order w "rm '$f'"
	wait_until 10 is 0 depth
}

# man: az-state
@test "the state is one file for each queue, and shares the windows of its mounts" {
	spool_mount "state=$BASE/state"
	spool_mount -n other -s "$FAULTY/$QUEUE-two" "state=$BASE/state,role=out"
	spool_mount -n b "state=$BASE/state"
	echo job > "$BASE/other/x"
	sync "$BASE/other/.control"
	expect 2 bash -c 'ls "$BASE"/state/*.db | wc -l'
	not bash -c 'ls "$BASE/state" | grep -vF .db'
	tell pause "$BASE/b"
	"$CLIENTS/fill" "$Q" m 5
	wait_listed 5
	tell resume "$BASE/b"
	# It has none, and who reads there gets them at once.
	expect m- bash -c 'f=$(timeout 10 cat "$BASE/b/.next") && head -c 2 "$BASE/b/$f"'
}

# man: az-throttled
@test "a service that asks for patience gets it, and last_error says so" {
	spool_mount
	echo job > "$Q/x"
	wait_listed 1
	faults '{"rules":[{"fault":"busy","retry_after":100}]}'
	wait_until 10 is offline control state
	control last_error | grep -q '503 ServerBusy'
	waits_at_least 90000
	echo late > "$Q/y"
	wait_until 10 is 1 requests put
	gets=$(requests get)
	end=$(($(now_ms) + 1500))
	wait_until 5 clock_is "$end"
	expect 1 requests put
	expect "$gets" requests get
	expect 1 control outbox
	spool_kill # which would wait
}

# man: az-refused
@test "refused, it waits for five minutes, or for another file of credentials" {
	key() { printf 'AZURE_STORAGE_ACCOUNT=%s\nAZURE_STORAGE_KEY=%s\n' "$AZURE_DEV_ACCOUNT" "$1"; }
	unset AZURE_STORAGE_CONNECTION_STRING
	key "$(head -c 64 /dev/zero | base64 -w 0)" > "$BASE/key"
	chmod 600 "$BASE/key"
	spool_mount "credentials=$BASE/key"
	grep -q 'refuses access, going on without it' "$BASE/spoolfs.log"
	wait_until 10 is offline control state
	control last_error | grep -q '403 AuthenticationFailed'
	waits_at_least 290000
	not waits_at_least 300001
	echo job > "$Q/x"
	wait_until 10 is 1 control outbox
	key "$AZURE_DEV_KEY" > "$BASE/key"
	wait_listed 1
	expect job cat "$(message)"
}

# man: az-skew
@test "requests are dated by the service's clock" {
	faults '{"skew_s":7200}'
	spool_mount
	echo job > "$Q/x"
	wait_listed 1
	repolled
	# What it did not know yet.
	[ "$(faulted .faults.bad_clock)" -le 4 ]
	cat "$(message)" > /dev/null
	rm "$(claimed '')"
	wait_until 10 is 0 depth
}

# ---- what it costs --------------------------------------------------------------

# slowly: handles one message for half of a lease.
slowly() {
	bash -ec 'f=$(cat "$Q/.next"); cat "$Q/$f"; end=$((${EPOCHREALTIME/./} + 1000000))
		while ((${EPOCHREALTIME/./} < end)); do read -rt 0.1 <> <(:) || :; done
		rm "$Q/$f"' > /dev/null
}
no_more_than() { [ "$(listed)" -le "$1" ]; }

# man: az-window
@test "the window is 32 messages, or what is handled within a lease" {
	spool_mount
	"$CLIENTS/fill" "$Q" m 40
	wait_listed 32
	expect full control state
	slowly
	at_least 1000 control avg_handling_ms
	tell pause
	wait_listed 0
	tell resume
	wait_until 5 is full control state
	no_more_than 2
}

# man: az-idle
@test "alone it renews what nobody reads, beside a consumer it gives it back" {
	spool_mount visibility=1s,window=2,idle_time=1h
	sdk create "$QUEUE"
	sdk send "$QUEUE" 6
	tell poll
	wait_listed 2
	before=$(attr lease_until "$(message)")
	wait_until 10 at_least 6 requests update
	[[ $(attr lease_until "$(message)") > $before ]]
	expect 1 attr dequeue_count "$(message)"
	expect 2 listed
	# Another machine handles the rest, and then these.
	URL=$FAULTS_URL sdk drain "$QUEUE" 6
	wait_until 5 is 0 listed
	expect 0 control leases_lost
}

# Those that hold them have one state, and tell each other of what is let go.
# man: az-bait
@test "a machine that has just come is not starved by those that only list" {
	spool_mount -n a "state=$BASE/state,visibility=1s,idle_time=1h"
	spool_mount -n b "state=$BASE/state,visibility=1s,idle_time=1h"
	sdk create "$QUEUE"
	sdk send "$QUEUE" 2
	tell poll "$BASE/a"
	wait_until 10 is 2 both_list
	wait_until 5 is 1 entries "$BASE/b"
	spool_mount
	f=$(timeout 15 cat "$Q/.next")
	[ -n "$f" ]
}
both_list() { echo $(($(entries "$BASE/a") + $(entries "$BASE/b"))); }

# man: az-none
@test "role=out makes no request but to send, paused none but for what is held" {
	sdk create "$QUEUE"
	spool_mount -n out role=out
	echo one > "$BASE/out/x"
	sync "$BASE/out/.control"
	expect '{"put":1}' faulted '.requests | tostring'
	spool_mount visibility=1s
	wait_listed 1
	worker w "$(message)"
	tell pause
	sync "$Q/.control"
	faults '{}'
	echo two > "$Q/y"
	wait_until 10 at_least 4 requests update
	expect '{"put":1}' faulted '.requests | del(.update) | tostring'
}
