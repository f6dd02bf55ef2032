#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# bats file_tags=azure:slow
# A writer that was cut off never becomes a truncated message.
# shellcheck disable=SC2016,SC2030,SC2031

load helpers

setup_file() { build_clients cutoff odd_writer; }

# man: cut-off
@test "8: 200 writers killed half-way: 200 drafts and no message" {
	spool_mount
	timeout 60 "$CLIENTS/cutoff" "$Q" 200
	wait_until 10 is 200 drafts
	repolled
	expect 0 listed
	expect 0 entries "$Q/.outbox"
	expect 200 control drafts
	for f in "$Q"/.drafts/*; do
		head -c 10 "$f" | grep -q 'half of it'
	done
	spool_umount
	spool_mount
	repolled
	expect 0 listed
	expect 200 drafts
}

# man: cut-off, dir-drafts, drafts-send, drafts-rm
@test "8: a killed shell redirection leaves a draft; mv out of .drafts sends it, rm discards" {
	spool_mount
	mkfifo "$BASE/never"
	for name in one two; do
		bg bash -c 'exec 3> "$Q/$1"; echo first >&3; : > "$BASE/$1.ready"
			read -r _ < "$BASE/never"' _ "$name"
		wait_until 10 test -e "$BASE/$name.ready"
		kill -TERM "$BG"
		wait_until 5 gone "$BG"
	done
	wait_until 10 is 2 drafts
	repolled
	expect 0 listed
	rm "$(message two "$Q/.drafts")"
	expect 1 drafts
	mv "$(message one "$Q/.drafts")" "$Q/"
	wait_listed 1
	expect first cat "$(message one)"
	expect 0 drafts
}

# man: cut-exit
@test "8: an exit code does not matter" {
	spool_mount
	run "$CLIENTS/odd_writer" exit "$Q/job" whole
	[ "$status" -eq 3 ]
	wait_listed 1
	expect whole cat "$(message job)"
}

@test "8: a killed writer whose relative closes in peace has written a message" {
	spool_mount
	bash -c '{ echo one; bash -c "echo two; kill -KILL \$\$"; echo three; } > "$Q/job"' || :
	wait_listed 1
	expect "$(printf 'one\ntwo\nthree')" cat "$(message job)"
}
