# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# What every test of this ring uses: mounts, waits, looks, and a teardown that
# leaves neither a mount nor a process behind, whatever the test did.
#
#   BASE  the test's own directory       DB  its queue file, BASE/q.db
#   Q     its mount point, BASE/q        OUT what the last spoolfs printed
#
# Tests wait for a state (wait_until), never for a duration.
#
# SPOOL_BACKEND=azure has the same tests run against Azurite: azure_ring.bash
# then replaces what is different there. What a test needs that the service
# cannot do is a tag of it; azure_left_out says why.

export SPOOL_BACKEND=${SPOOL_BACKEND:-sqlite}
export SPOOLFS_BUILD=${SPOOLFS_BUILD:-$BATS_TEST_DIRNAME/../../build}
CLIENTS_SRC=${BASH_SOURCE[0]%/*}/clients

# A large message, as far as the backend goes.
BLOB_BYTES=300000

# ---- before and after -------------------------------------------------------

spool_setup() {
	export LC_ALL=C.UTF-8
	export BASE=$BATS_TEST_TMPDIR
	export DB=$BASE/q.db Q=$BASE/q
	# Marks what the test started: the teardown looks for survivors by it.
	export SPOOLFS_TEST=$BASE
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}log_path=$BASE/sanitizer
	export UBSAN_OPTIONS=${UBSAN_OPTIONS:+$UBSAN_OPTIONS:}log_path=$BASE/sanitizer
	OUT=$BASE/spoolfs.out
	: > "$BASE/mounts"
	: > "$BASE/others"
	: > "$BASE/pids"
}

spool_teardown() {
	local mnt status=0
	[ -n "$BATS_TEST_COMPLETED" ] || show_state
	cd /
	end_processes
	continue_survivors
	while read -r mnt; do
		force_umount "$mnt" || status=1
	done < <(sort -u "$BASE/mounts")
	while read -r mnt; do
		umount "$mnt" || status=1
	done < "$BASE/others"
	wait_until 10 no_survivors || {
		end_survivors
		status=1
	}
	no_complaints || status=1
	return "$status"
}

setup() { spool_setup; }
teardown() { spool_teardown; }

# Builds clients/NAME.c into $CLIENTS/NAME for the tests of one file.
build_clients() {
	local name
	export CLIENTS=$BATS_FILE_TMPDIR/clients
	mkdir -p "$CLIENTS"
	for name in "$@"; do
		"${CC:-cc}" -std=gnu17 -D_GNU_SOURCE -O1 -Wall -Wextra -o "$CLIENTS/$name" \
			"$CLIENTS_SRC/$name.c"
	done
}

# What a test that failed leaves for its reader.
show_state() {
	local mnt file
	while read -r mnt; do
		is_mounted "$mnt" || continue
		echo "# $mnt/.control:"
		timeout 2 cat "$mnt/.control" || continue
		timeout 2 ls "$mnt" "$mnt/.inflight" "$mnt/.drafts" "$mnt/.dead" | head -n 40
	done < <(sort -u "$BASE/mounts")
	for file in "$BASE"/*.log; do
		[ -s "$file" ] || continue
		echo "# ${file##*/}:"
		tail -n 30 "$file"
	done
	return 0
}

# The log must hold no sign of a broken daemon, whatever else the test looked at.
no_complaints() {
	local file
	for file in "$BASE"/sanitizer* "$BASE"/*.log; do
		[ -s "$file" ] || continue
		case $file in
		*/sanitizer*) ;;
		*) grep -qE 'Sanitizer|runtime error:|Assertion|stack smashing|fuse: bad' "$file" ||
			continue ;;
		esac
		echo "# complaints in ${file##*/}:"
		head -n 60 "$file"
		return 1
	done
}

# ---- waiting ----------------------------------------------------------------

# wait_until SECONDS COMMAND...: polls until COMMAND succeeds; 1 after SECONDS.
wait_until() {
	local s=$1 end
	shift
	end=$((${EPOCHREALTIME/./} + s * 1000000))
	until "$@" > /dev/null 2>&1; do
		if ((${EPOCHREALTIME/./} > end)); then
			echo "waited $s s in vain for: $*" >&2
			return 1
		fi
		sleep 0.02
	done
}

# is VALUE COMMAND...: COMMAND prints VALUE.
is() {
	local want=$1
	shift
	[ "$("$@")" = "$want" ]
}

# at_least N COMMAND...: COMMAND prints a number not below N.
at_least() {
	local want=$1
	shift
	[ "$("$@")" -ge "$want" ]
}

now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }
# Whether the clock shows MS (of now_ms) or later: for "still so after so long".
clock_is() { [ "$(now_ms)" -ge "$1" ]; }

# expect VALUE COMMAND...: like is, but tells what came instead.
expect() {
	local want=$1 got
	shift
	got=$("$@")
	[ "$got" = "$want" ] || {
		echo "expected '$want', got '$got' from: $*"
		return 1
	}
}

# tries RESULT CALL PATH...: clients/try says RESULT (an errno's name, or ok).
tries() {
	local want=$1 got
	shift
	got=$("$CLIENTS/try" "$@") || :
	[ "$got" = "$want" ] || {
		echo "expected $want, got $got from: $*"
		return 1
	}
}

# refuse TEXT COMMAND...: COMMAND must fail and say TEXT.
refuse() {
	local text=$1 said
	shift
	if said=$("$@" 2>&1); then
		echo "did not fail: $*"
		return 1
	fi
	[[ $said == *"$text"* ]] || {
		echo "expected '$text', got '$said' from: $*"
		return 1
	}
}

# not COMMAND...: fails when COMMAND succeeds ("!" alone does not end a test).
not() {
	if "$@"; then
		echo "should have failed: $*"
		return 1
	fi
}

# ---- processes --------------------------------------------------------------

# Whether PID runs. A zombie does not, but for one that has threads still. Reads
# status, not stat: that of a process in execve(2) can block its reader.
alive() {
	local key value rest state='' threads=0
	while read -r key value rest; do
		case $key in
		State:) state=$value ;;
		Threads:) threads=$value ;;
		esac
	done 2> /dev/null < "/proc/$1/status" || return 1
	[[ $state == [!ZX] || $threads -gt 1 ]]
}
gone() { ! alive "$1"; }

# bg COMMAND...: starts it in the background, its pid in BG; ended at teardown.
bg() {
	"$@" 3>&- 4>&- &
	BG=$!
	echo "$BG" >> "$BASE/pids"
}

children() { cat "/proc/$1/task/$1/children" 2> /dev/null || :; }

# Ends PID and all below it.
end_tree() {
	local child
	kill -STOP "$1" 2> /dev/null || return 0
	for child in $(children "$1"); do
		end_tree "$child"
	done
	kill -KILL "$1" 2> /dev/null || :
}

# worker NAME MESSAGE...: a handler script of its own, that has read the messages
# with one cat and lives on; its pid is in WORKER.
worker() {
	local name=$BASE/$1
	shift
	mkfifo "$name.fifo"
	bg bash "$CLIENTS_SRC/worker.sh" "$name" "$@"
	export WORKER=$BG
	echo "$BG" > "$name.pid"
	wait_until 10 test -e "$name.ready"
}

# order NAME COMMAND: that worker carries it out; its status. 'exit N' ends it.
order() {
	local name=$BASE/$1 pid
	pid=$(< "$name.pid")
	rm -f "$name.done"
	echo "$2" > "$name.fifo"
	[[ $2 != exit* ]] || {
		wait_until 10 gone "$pid"
		return
	}
	wait_until 10 test -e "$name.done"
	return "$(< "$name.done")"
}

# holder NAME MESSAGE...: a program that has opened the messages itself and keeps
# them open; its pid is in HOLDER.
holder() {
	local flag=$BASE/$1.held
	shift
	bg "$CLIENTS/hold" "$flag" "$@"
	export HOLDER=$BG
	wait_until 10 test -e "$flag"
}

end_processes() {
	local pid
	for pid in $(< "$BASE/pids"); do
		end_tree "$pid"
	done
	for pid in $(< "$BASE/pids"); do
		wait_until 5 gone "$pid" || :
	done
}

# The processes that carry this test's mark (the grep that looks has ended).
survivors() {
	local file pid
	while read -r file; do
		pid=${file#/proc/}
		pid=${pid%/environ}
		alive "$pid" && echo "$pid"
	done < <(timeout 5 grep -lsz "^SPOOLFS_TEST=$BASE\$" /proc/[0-9]*/environ)
	return 0
}
no_survivors() { [ -z "$(survivors)" ]; }
# A test that failed may have left a daemon stopped.
continue_survivors() {
	local pid
	for pid in $(survivors); do
		kill -CONT "$pid" 2> /dev/null || :
	done
}
end_survivors() {
	local pid
	for pid in $(survivors); do
		echo "# left behind: $pid $(tr '\0' ' ' < "/proc/$pid/cmdline")"
		kill -KILL "$pid" || :
	done
}

# ---- mounts -----------------------------------------------------------------

is_mounted() { grep -qF -- " $1 " /proc/self/mountinfo; }
not_mounted() { ! is_mounted "$1"; }

# spool [ARGUMENT...]: the command itself, bounded in time, its standard output
# in OUT and its log in BASE/spoolfs.log.
spool() {
	timeout 30 "$SPOOLFS_BUILD/spoolfs" "$@" \
		> "$OUT" 2>> "$BASE/spoolfs.log" 3>&- 4>&- 5>&- 6>&- 7>&- < /dev/null
}

# spool_refused TEXT [ARGUMENT...]: spoolfs must fail at once, its log say TEXT.
spool_refused() {
	local text=$1 status=0
	shift
	: > "$BASE/spoolfs.log"
	spool "$@" || status=$?
	if [ "$status" -eq 0 ] || [ "$status" -ge 124 ]; then
		echo "status $status from: spoolfs $*"
		return 1
	fi
	grep -qiE -- "$text" "$BASE/spoolfs.log" || {
		echo "expected '$text', got '$(< "$BASE/spoolfs.log")' from: spoolfs $*"
		return 1
	}
}

# spool_mount [-f] [-n NAME] [-s SOURCE] [OPTIONS]
#   Mounts SOURCE (DB) on BASE/NAME (Q) as users do it, in the background; the
#   pid of the daemon is in DAEMON then.
#   -f: as the test's own child, its log in BASE/NAME.log.
spool_mount() {
	local front='' name=q source=$DB opt OPTIND=1
	while getopts fn:s: opt; do
		case $opt in
		f) front=1 ;;
		n) name=$OPTARG ;;
		s) source=$OPTARG ;;
		*) return 2 ;;
		esac
	done
	shift $((OPTIND - 1))
	local mnt=$BASE/$name options
	options=$(mount_options "$name" "${1:-}")
	local -a args=(${options:+-o "$options"} "$source" "$mnt")
	mkdir -p "$mnt" 2> /dev/null || :
	echo "$mnt" >> "$BASE/mounts"
	if [ -n "$front" ]; then
		spool_front "$name" "${args[@]}"
	else
		spool "${args[@]}"
	fi
	export DAEMON
	DAEMON=$(spool_pid "$mnt")
}

# mount_options NAME OPTIONS: what they are with those that the backend needs.
mount_options() { echo "$2"; }

# WRAP may hold a command to run the daemon under.
spool_front() {
	local name=$1
	shift
	# shellcheck disable=SC2086
	bg $WRAP "$SPOOLFS_BUILD/spoolfs" -f "$@" > "$BASE/$name.out" 2>> "$BASE/$name.log"
	wait_until 20 is_mounted "$BASE/$name"
	# The kernel holds this back until the daemon answers.
	timeout 20 cat "$BASE/$name/.control" > /dev/null
}

# other_mount DIR ARGUMENT...: mounts something else there until the teardown.
other_mount() {
	mkdir -p "$1"
	mount "${@:2}" "$1"
	echo "$1" >> "$BASE/others"
}

# spool_pid [MNT]: the daemon of that mount.
spool_pid() {
	local mnt=${1:-$Q} dir name args
	for dir in /proc/[0-9]*; do
		{ read -r name < "$dir/comm"; } 2> /dev/null || continue
		[ "$name" = spoolfs ] || continue
		mapfile -t args < <(timeout 2 tr '\0' '\n' 2> /dev/null < "$dir/cmdline")
		if [[ " ${args[*]} " == *" $mnt "* ]]; then
			echo "${dir#/proc/}"
			return 0
		fi
	done
	return 1
}

# announcer_pid [MNT]: the announcer is the daemon's only child.
announcer_pid() {
	local pid
	pid=$(children "$(spool_pid "${1:-$Q}")")
	[ -n "$pid" ] && echo "${pid% }"
}

# spool_umount [MNT]: as users do it; returns when the daemon is gone.
spool_umount() {
	local mnt=${1:-$Q} pid
	pid=$(spool_pid "$mnt")
	# The announcer may be in the mount for a moment.
	wait_until 5 fusermount3 -u "$mnt"
	wait_until 20 gone "$pid"
}

# spool_kill [MNT]: SIGKILL, and the daemon is gone.
spool_kill() {
	local pid
	pid=$(spool_pid "${1:-$Q}")
	kill -KILL "$pid"
	wait_until 10 gone "$pid"
}

# Whatever it takes. Never looks into the mount: it may hang.
force_umount() {
	local mnt=$1
	while is_mounted "$mnt"; do
		timeout 10 fusermount3 -u "$mnt" 2> /dev/null ||
			timeout 10 fusermount3 -uz "$mnt" 2> /dev/null ||
			timeout 10 umount -l "$mnt" || break
	done
	if wait_until 10 not_served "$mnt"; then
		return 0
	fi
	echo "# $mnt is served still, it is aborted"
	kill -KILL "$(spool_pid "$mnt")"
	fuse_abort "$mnt"
	return 1
}
not_served() { ! spool_pid "$1"; }

fuse_abort() {
	local dev=/sys/fs/fuse/connections minor
	minor=$(awk -v m="$1" '$5 == m { split($3, d, ":"); print d[2] }' /proc/self/mountinfo)
	[ -n "$minor" ] || return 0
	[ -e "$dev/$minor" ] || mount -t fusectl none "$dev"
	echo 1 > "$dev/$minor/abort"
}

# ---- looking ----------------------------------------------------------------

# control KEY [MNT]: the value of one line of .control.
control() {
	awk -F= -v k="$1" '$1 == k { print substr($0, length(k) + 2); exit }' \
		"${2:-$Q}/.control"
}

# tell COMMAND [MNT]: writes it to .control.
tell() { is_mounted "${2:-$Q}" && echo "$1" > "${2:-$Q}/.control"; }

# entries [DIR]: how many names a glob finds (Q); for .dead and its like too.
entries() {
	(
		shopt -s nullglob
		set -- "${1:-$Q}"/*
		echo $#
	)
}
listed() { entries "$Q"; }
dead() { entries "$Q/.dead"; }
inflight() { entries "$Q/.inflight"; }
drafts() { entries "$Q/.drafts"; }

# wait_listed N [MNT]
wait_listed() { wait_until 15 is "$1" entries "${2:-$Q}"; }

# message [GIVEN] [DIR]: the path of the first one with that given name.
message() {
	local f
	for f in "${2:-$Q}"/*"${1:+-$1}"; do
		[[ $f == *'*'* ]] && return 1
		echo "$f"
		return 0
	done
}

# claimed GIVEN: the path under which a claimed message resolves.
claimed() {
	local f
	f=$(message "$1" "$Q/.inflight") && echo "$Q/${f##*/}"
}

# put GIVEN [TEXT]: enqueues TEXT (GIVEN itself) and waits until it is listed;
# its path is in MSG then.
put() {
	printf '%s\n' "${2-$1}" > "$Q/$1"
	wait_until 15 message "$1"
	export MSG
	MSG=$(message "$1")
}

# attr NAME FILE: user.spoolfs.NAME
attr() { getfattr --absolute-names --only-values -n "user.spoolfs.$1" "$2"; }

# Whether nothing is left of any message: not listed, claimed, dead or a draft.
queue_empty() {
	wait_until 10 nothing_left || {
		find "$Q/.inflight" "$Q/.dead" "$Q/.drafts"
		return 1
	}
}
nothing_left() {
	is 0 listed && is 0 inflight && is 0 dead && is 0 drafts &&
		is 0 entries "$Q/.outbox" && is 0 control depth
}

# repolled: a poll that began after this call has ended: what the backend had
# then is listed now, or never will be (where the window has no room).
repolled() {
	local n
	sync "$Q/.control"
	n=$(control polls_total)
	tell poll
	wait_until 10 polled_beyond "$n"
}
polled_beyond() { at_least $(($1 + 1)) control polls_total || is full control state; }

# sent_order: lines in the order they were sent, where the backend keeps it.
sent_order() { cat; }

# queue_depth [MNT]: messages in the queue, also those that are hidden.
queue_depth() { control depth "$@"; }

# Sorted bodies of all ready messages, unclaimed.
peek_all() { cat "$Q"/.peek/* | sort; }

if [ "$SPOOL_BACKEND" = azure ]; then
	# shellcheck source=tests/fs/azure_ring.bash
	source "${BASH_SOURCE[0]%/*}/azure_ring.bash"
fi
