#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# kills BUILD: writers and consumers on one mount for SPOOLFS_SOAK_SECONDS, while the
# daemon is killed every KILL_S seconds (0: never) and mounted again. Every
# message whose close() succeeded must be read at least once, and whole. Prints
# counts and how the daemon's memory grew; exit 1 when one was lost or cut.
set -eu

build=$(realpath "$1")
soak_s=${SPOOLFS_SOAK_SECONDS:-120}
kill_s=${KILL_S:-20}
writers=4
consumers=4
patience_s=120 # without any progress at the end
# What was claimed when the daemon died must not be kept for longer than we wait.
options=visibility=5s,inherit=5s,retry_delay=1s,poll_ceiling=2s,max_attempts=1000

work=$(mktemp -d)
queue=$work/Q
mkdir "$queue"
daemon=
workers=()

cleanup() {
	local pid
	exec 2>/dev/null
	for pid in "${workers[@]}" $daemon; do
		kill -KILL "$pid" || true
	done
	fusermount3 -u -z "$queue" || true
	wait
	rm -rf "$work"
}
trap cleanup EXIT

die() {
	echo "soak: $*" >&2
	tail -n 20 "$work/log" >&2
	exit 1
}

mount_queue() {
	local end=$((SECONDS + 30))
	"$build/spoolfs" -f -o "$options" "$work/queue.db" "$queue" 2>>"$work/log" &
	daemon=$!
	until [ -e "$queue/.control" ]; do
		kill -0 "$daemon" 2>/dev/null || die 'the daemon has ended'
		[ "$SECONDS" -lt "$end" ] || die 'the mount does not answer'
		sleep 0.05
	done
}

# Nobody may write into the bare mount point, so writers hold the lock shared.
kill_and_mount() {
	kill -KILL "$daemon"
	wait "$daemon" 2>/dev/null || true
	exec 8>"$work/lock"
	flock 8
	fusermount3 -u -z "$queue"
	mount_queue 8>&-
	exec 8>&-
}

# A line "W I" in SENT.W says that message I of writer W was accepted; one in
# REFUSED, that it was not and will be tried again (the daemon was dead).
writer() {
	local i=0 pad body
	exec 9>"$work/lock"
	while [ ! -e "$work/enough" ]; do
		printf -v pad '%*s' $((RANDOM % 2000)) ''
		body="$1 $((i + 1)) $((${#pad} + 20)) "
		printf -v body '%-20s%s' "$body" "${pad// /x}"
		flock -s 9
		# Not the built-in one: it does not look at what close() says.
		if { env printf '%s' "$body" >"$queue/w$1"; } 2>/dev/null; then
			i=$((i + 1))
			echo "$1 $i" >>"$work/sent.$1"
		else
			echo "$1 $((i + 1))" >>"$work/refused"
		fi
		flock -u 9
	done
}

# Line by line in SEEN.C: what was read, or BAD with what was wrong about it.
consumer() {
	local name body writer number length
	while [ ! -e "$work/done" ]; do
		name=$(timeout 2 cat "$queue/.next" 2>/dev/null) || continue
		[ -n "$name" ] || continue
		body=$(cat "$queue/$name" 2>/dev/null) || continue
		read -r writer number length _ <<<"$body" || true
		if [ "${#body}" = "${length:-0}" ]; then
			echo "$writer $number" >>"$work/seen.$1"
		else
			echo "BAD $name of ${#body} bytes, not ${length:-any}" >>"$work/seen.$1"
		fi
		rm "$queue/$name" 2>/dev/null || true
	done
}

# Each in a session of its own: they own their messages apart from each other.
start() {
	setsid bash -c "$(declare -f "$1"); $1 $2" &
	workers+=($!)
}

memory_kb() {
	awk '/^VmRSS/ { print $2 }' "/proc/$daemon/status"
}

missing() {
	comm -23 <(sort -u "$work"/sent.*) <(sort -u "$work"/seen.* "$work/kept")
}

# What a kill between a close and its send has left in .drafts/ is not lost either.
count_drafts() {
	local draft body writer number length
	: >"$work/kept"
	for draft in "$queue"/.drafts/*; do
		body=$(cat "$draft" 2>/dev/null) || continue
		read -r writer number length _ <<<"$body" || true
		[ "${#body}" = "${length:-0}" ] && echo "$writer $number" >>"$work/kept"
	done
	return 0
}

wait_for_the_rest() {
	local left before=-1 end=0
	while count_drafts && left=$(missing | wc -l) && [ "$left" -gt 0 ]; do
		if [ "$left" != "$before" ]; then
			before=$left
			end=$((SECONDS + patience_s))
		fi
		[ "$SECONDS" -lt "$end" ] || break
		sleep 0.5
	done
}

export work queue
touch "$work/log" "$work/refused" "$work/kept"
for i in $(seq $((writers > consumers ? writers : consumers))); do
	touch "$work/sent.$i" "$work/seen.$i"
done
mount_queue
kills=0
first_kb=$(memory_kb)
for i in $(seq "$writers"); do start writer "$i"; done
for i in $(seq "$consumers"); do start consumer "$i"; done

end=$((SECONDS + soak_s))
next_kill=$((SECONDS + kill_s))
while [ "$SECONDS" -lt "$end" ]; do
	sleep 1
	kill -0 "$daemon" 2>/dev/null || die 'the daemon has ended'
	if [ "$kill_s" -gt 0 ] && [ "$SECONDS" -ge "$next_kill" ]; then
		kill_and_mount
		kills=$((kills + 1))
		next_kill=$((SECONDS + kill_s))
	fi
done
touch "$work/enough"
wait_for_the_rest
touch "$work/done"
wait "${workers[@]}" || true
workers=()
last_kb=$(memory_kb)

sent=$(cat "$work"/sent.* | wc -l)
seen=$(cat "$work"/seen.* | grep -vc '^BAD' || true)
bad=$(cat "$work"/seen.* | grep -c '^BAD' || true)
lost=$(missing | wc -l)
cat "$work"/seen.* | grep '^BAD' | head -n 10 || true
if [ "$lost" != 0 ]; then
	timeout 5 cat "$queue/.control"
fi
echo "soak: kills: sent $sent read $seen lost $lost cut $bad" \
	"in .drafts $(wc -l <"$work/kept") refused $(wc -l <"$work/refused") kills $kills" \
	"memory_kb $first_kb -> $last_kb in $soak_s s"
[ "$lost" = 0 ] && [ "$bad" = 0 ]
