# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# The ring over Azurite: one service for each file, one queue for each test (QUEUE),
# so that DB is a source of it. What the service has no name for, these find by
# what they have seen or written: put() keeps "GIVEN NAME" lines in BASE/given.

# shellcheck source=tests/fs/azure.bash
source "${BASH_SOURCE[0]%/*}/azure.bash"

# shellcheck disable=SC2034
BLOB_BYTES=48000

# ---- before and after -------------------------------------------------------

azure_file() { azurite_start "$BATS_FILE_TMPDIR/azurite" --inMemoryPersistence; }
setup_file() { azure_file; }
teardown_file() { azurite_stop "$BATS_FILE_TMPDIR/azurite"; }

# Nearly every file has a setup_file of its own, which calls this.
eval "compile_$(declare -f build_clients)"
build_clients() {
	compile_build_clients "$@"
	azure_file
}

eval "any_$(declare -f spool_setup)"
spool_setup() {
	any_spool_setup
	export QUEUE=t$BATS_SUITE_TEST_NUMBER-$$
	export DB=$AZURE/$QUEUE
	export AZURE_STORAGE_CONNECTION_STRING=UseDevelopmentStorage=true
	# For those that are mounted without mount_options.
	export XDG_STATE_HOME=$BASE/state
	echo > "$BASE/given"
}

eval "any_$(declare -f spool_teardown)"
spool_teardown() {
	local status=0
	azurite_thaw
	[ ! -e "$BASE/faults.pid" ] || faults '{}' || :
	any_spool_teardown || status=1
	faults_stop
	return "$status"
}

# Each mount has its own state. The service notifies nobody, so it is polled as
# often as a test can bear, and what a killed mount had listed comes back when its
# lease ends, which is a second at least: unless that is what the test is about.
# Bodies are any bytes.
mount_options() {
	local given=$2 options=state=$BASE/state.$1
	case ,$given in
	*,poll_* | *,idle_time=* | *,run_for=*) ;;
	*) options+=,poll_floor=100ms,poll_ceiling=200ms ;;
	esac
	[[ ,$given == *,encoding=* ]] || options+=,encoding=base64
	[[ ,$given == *,visibility=* ]] || options+=,visibility=5s
	[[ ,$given == *,window* ]] || options+=,window=1024
	given=$(sed -E 's/\<visibility=[0-9]+ms/visibility=1s/; s/\<max_lease=[0-9]+ms/max_lease=2s/' \
		<<< "$given")
	echo "$options${given:+,$given}"
}

# The whole service, until azurite_thaw: connections stay, and nothing is answered.
azurite_freeze() { kill -STOP "$(< "$BATS_FILE_TMPDIR/azurite/pid")"; }
azurite_thaw() {
	local file=$BATS_FILE_TMPDIR/azurite/pid
	[ ! -e "$file" ] || kill -CONT "$(< "$file")" 2> /dev/null || :
}

# ---- looking ----------------------------------------------------------------

given_to() { awk -v g="$1" '$1 == g { print $2 }' "$BASE/given"; }
is_given() { cut -d' ' -f2 "$BASE/given" | grep -qxF -- "$1"; }

# body_is FILE GIVEN: whether it holds what was put under that name, or else it.
body_is() {
	local file=$1
	[[ $file == "$Q"/* && $file != "$Q"/*/* ]] && file=$Q/.peek/${file##*/}
	if [ -e "$BASE/bodies/$2" ]; then
		cmp -s "$file" "$BASE/bodies/$2"
	else
		[ "$(cat "$file" 2> /dev/null)" = "$2" ]
	fi
}

# A dead letter, and what is brought back, have another name than before. What
# was not sent yet has its given name.
eval "any_$(declare -f message)"
message() {
	local given=${1:-} dir=${2:-$Q} f name new=()
	case $dir in
	*/.drafts | */.outbox)
		any_message "$@"
		return
		;;
	esac
	for name in $(given_to "$given"); do
		[ -e "$dir/$name" ] && [[ " $(echo "$dir"/*) " == *"/$name "* ]] &&
			echo "$dir/$name" && return 0
	done
	for f in "$dir"/*; do
		[[ $f == *'*'* ]] && return 1
		[ -n "$given" ] || { echo "$f" && return 0; }
		is_given "${f##*/}" || new+=("$f")
	done
	for f in "${new[@]}"; do
		body_is "$f" "$given" || [ "${#new[@]}" = 1 ] || continue
		echo "$given ${f##*/}" >> "$BASE/given"
		echo "$f"
		return 0
	done
	return 1
}

# Asked at once: a mount looks only now and then.
queue_depth() { sdk count "$QUEUE"; }

# Within a second, messages have no order.
sent_order() { sort; }

put() {
	local before
	before=$(ls "$Q")
	mkdir -p "$BASE/bodies"
	printf '%s\n' "${2-$1}" > "$BASE/bodies/$1"
	cat "$BASE/bodies/$1" > "$Q/$1"
	wait_until 15 new_one "$1" "$before"
	export MSG
	MSG=$(message "$1")
}
new_one() {
	local f
	for f in "$Q"/*; do
		if ! grep -qxF -- "${f##*/}" <<< "$2" && body_is "$f" "$1"; then
			sed -i "1i $1 ${f##*/}" "$BASE/given"
			return 0
		fi
	done
	return 1
}
