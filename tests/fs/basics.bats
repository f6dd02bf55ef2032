#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What the first session of a user shows: echo, ls, cat, rm, .control.

load helpers

setup_file() { build_clients try fill; }

# bats test_tags=sqlite:name
# man: list-ready, name-shape, claim-open, rm-deletes, write-close
@test "1: echo enqueues, ls shows, cat dequeues, rm deletes" {
	spool_mount
	echo hi > "$Q/x"
	wait_listed 1
	f=$(ls "$Q")
	[[ $f =~ ^[0-9]{8}T[0-9]{6}\.[0-9]{6}Z-[0-9A-Za-z]+-x$ ]]
	expect hi cat "$Q/$f"
	expect '' ls "$Q"
	rm "$Q/$f"
	repolled
	queue_empty
	expect 1 control handled_total
}

@test "1: the mount command prints the path of .control" {
	spool_mount
	grep -qF "$Q/.control" "$OUT"
}

# man: name-stable
@test "1: a message outlives the mount" {
	spool_mount
	put job 'the text'
	spool_umount
	expect 0 entries "$Q"
	spool_mount
	wait_listed 1
	expect "$MSG" message job
	expect 'the text' cat "$MSG"
	rm "$MSG"
	spool_umount
	spool_mount
	repolled
	queue_empty
}

# bats test_tags=sqlite:name
# man: stat-size, stat-mtime, stat-mode, stat-inode, xattrs
@test "1: size, times, mode, inode and attributes of a message" {
	before=$(date +%s)
	spool_mount
	put x.xml 12345
	expect '6 600 regular file' stat -c '%s %a %F' "$MSG"
	expect 700 stat -c %a "$Q"
	mtime=$(stat -c %Y "$MSG")
	[ "$mtime" -ge "$before" ] && [ "$mtime" -le "$(date +%s)" ]
	name=${MSG##*/}
	stamp=${name%%.*}
	expect "$stamp" date -u -d "@$mtime" +%Y%m%dT%H%M%S
	inode=$(stat -c %i "$MSG")
	expect x.xml attr name "$MSG"
	expect 0 attr attempts "$MSG"
	expect ready attr state "$MSG"
	attr id "$MSG" | grep -q .
	attr dequeue_count "$MSG" | grep -qx '[0-9]*'
	attr enqueued "$MSG" | grep -q .
	attr lease_until "$MSG" | grep -q .
	expect "$inode" stat -c %i "$MSG"
	getfattr -d "$MSG" 2> /dev/null | grep -q '^user.spoolfs.state="ready"'
	cat "$MSG" > /dev/null
	expect claimed attr state "$MSG"
	attr owner "$MSG" | grep -q .
}

# bats test_tags=sqlite:file
# man: control-read, key-source
@test "1: .control has every key in its order" {
	spool_mount
	cut -d= -f1 "$Q/.control" > "$BASE/keys"
	tr ' ' '\n' > "$BASE/want" <<- 'EOF'
		state source driver backoff_interval_ms backoff_floor_ms backoff_ceiling_ms backoff_factor backoff_decrease next_poll_in_ms polls_total polls_empty polls_empty_in_a_row requests_total depth ready in_flight outbox drafts dead handled_total leases_lost oldest_claim_s oldest_ready_s avg_handling_ms margin_ms stop_in_ms idle_timer idle_left_ms announcer errors_total last_error
	EOF
	# Others may stand between them; these must be there, in this order.
	grep -xFf "$BASE/want" "$BASE/keys" | diff "$BASE/want" -
	control state | grep -qxE 'polling|waiting'
	expect sqlite control driver
	control source | grep -qF q.db
	expect '' control stop_in_ms
}

# man: dir-inflight, key-now
@test "1: .control counts what is ready, claimed and dead" {
	spool_mount
	put a
	put b
	put c
	expect 3 control ready
	expect 0 control in_flight
	cat "$MSG" > /dev/null
	expect 2 control ready
	expect 1 control in_flight
	expect 1 inflight
	mv "$(message a)" "$Q/.dead/"
	wait_until 5 is 1 control dead
	expect 1 control ready
}

# man: status-json, metrics
@test "1: .status.json and .metrics can be read by their programs" {
	spool_mount
	put a
	python3 -m json.tool "$Q/.status.json" > "$BASE/status"
	grep -q '"state"' "$BASE/status"
	grep -q '"visibility"' "$BASE/status"
	grep -q '^# TYPE ' "$Q/.metrics"
	grep -q 'queue="' "$Q/.metrics"
	expect '# EOF' tail -n 1 "$Q/.metrics"
}

# man: control-write, cmd-pause, cmd-resume, cmd-drain, cmd-stop, key-state
@test "1: commands: pause, resume, drain, stop" {
	spool_mount
	tell pause
	expect paused control state
	echo one > "$Q/one"
	sync "$Q/.control"
	expect 0 listed
	tell resume
	wait_listed 1
	put two
	cat "$MSG" > /dev/null
	tell drain
	expect draining control state
	# Unread messages go back, the claimed one may finish; then it ends.
	wait_until 5 is 0 listed
	is_mounted "$Q"
	rm "$MSG"
	wait_until 10 not_mounted "$Q"
	wait_until 10 gone "$DAEMON"
	spool_mount
	wait_listed 1
	message one
	tell stop
	wait_until 10 not_mounted "$Q"
	wait_until 10 gone "$DAEMON"
	spool_mount
	wait_listed 1
}

# man: cmd-set, cmd-lines
@test "1: commands: set changes an option at once" {
	spool_mount poll_ceiling=60s
	tell 'set poll_floor=7s'
	expect 7000 control backoff_floor_ms
	tell 'set poll_decrease=halve'
	expect halve control backoff_decrease
	printf 'set poll_floor=5s\nset poll_factor=3\n' > "$Q/.control"
	expect 5000 control backoff_floor_ms
	expect 3 control backoff_factor
}

# man: sync-control
@test "1: sync of .control waits for every send and deletion" {
	spool_mount
	"$CLIENTS/fill" "$Q" s 50
	sync "$Q/.control"
	expect 0 entries "$Q/.outbox"
	expect 0 drafts
	wait_listed 50
	all=("$Q"/*)
	cat "${all[@]}" > /dev/null
	rm "${all[@]}"
	sync "$Q/.control"
	pid=$DAEMON
	kill -KILL "$pid"
	wait_until 10 gone "$pid"
	spool_mount
	repolled
	queue_empty
}

# man: df
@test "1: df -i shows the depth" {
	spool_mount
	"$CLIENTS/fill" "$Q" s 30
	wait_listed 30
	wait_until 10 is 30 iused
}
iused() { df --output=iused "$Q" | tail -n 1 | tr -d ' '; }

# bats test_tags=sqlite:order
# man: name-order, write-order
@test "1: messages are listed in the order they were sent" {
	spool_mount
	for i in $(seq 60); do
		echo "$i" > "$Q/n$((i % 7))"
	done
	wait_listed 60
	expect "$(seq 60)" cat "$Q"/.peek/*
	expect "$(seq 60)" cat "$Q"/*
}

# bats test_tags=sqlite:many
@test "2: 10,000 files by cp, consumed in order, byte-identical, none lost, none twice" {
	mkdir "$BASE/src" "$BASE/dst"
	# Sizes from 0 to 4,999 bytes, each content different.
	python3 -c 'import os, sys
for i in range(10000):
    with open(f"{sys.argv[1]}/f.{i:04}", "wb") as f: f.write(os.urandom(i * 7 % 5000))' "$BASE/src"
	expect 10000 entries "$BASE/src"
	spool_mount
	cp "$BASE"/src/* "$Q/"
	sync "$Q/.control"
	cat > "$BASE/consume.sh" <<- 'EOF'
		n=0
		while [ "$n" -lt 10000 ]; do
			for f in "$Q"/*; do
				[ -e "$f" ] || continue
				given=${f##*/}
				given=${given#*-*-}
				[ ! -e "$BASE/dst/$given" ] || exit 2
				cat "$f" > "$BASE/dst/$given" && rm "$f" || exit 1
				echo "$given"
				n=$((n + 1))
			done
		done > "$BASE/got"
	EOF
	timeout 120 dash "$BASE/consume.sh"
	find "$BASE/src" -type f -printf '%f\n' | sort | diff - "$BASE/got"
	diff -r "$BASE/src" "$BASE/dst"
	repolled
	queue_empty
	expect 10000 control handled_total
}

@test "1: xattrs, stat and listing of what is not there" {
	spool_mount
	tries ENOENT stat "$Q/nothing"
	tries ENOENT stat "$Q/20200101T000000.000000Z-0000000000000001-x"
	refuse 'No such attribute' getfattr -n user.spoolfs.nothing "$Q/.control"
	for entry in .control .status.json .metrics .next; do
		[ -f "$Q/$entry" ] || [ -p "$Q/$entry" ]
	done
	for entry in .inflight .peek .dead .outbox .drafts; do
		[ -d "$Q/$entry" ]
	done
	expect '' ls -A "$Q"
}
