# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# What the crash_*.bats share. Each runs crash/NAME.py, with a slice of its rounds:
# SPOOLFS_CRASH_ROUNDS says how many (0: all there are, where they can be counted);
# scripts/crash runs the long ones.

load ../fs/helpers

ROUNDS=${SPOOLFS_CRASH_ROUNDS:-}
export BATS_TEST_TIMEOUT=$((90 + ${ROUNDS:-0} * 20))
[ "$ROUNDS" != 0 ] || BATS_TEST_TIMEOUT=7200

# Builds preload/NAME.c into $CRASH_PRELOAD for the tests of one file. Without the
# built-in functions: the calls are to be seen as they are made.
build_preload() {
	local name
	export CRASH_PRELOAD=$BATS_FILE_TMPDIR/preload
	mkdir -p "$CRASH_PRELOAD"
	for name in "$@"; do
		"${CC:-cc}" -std=gnu17 -D_GNU_SOURCE -O1 -g -Wall -Wextra -fno-builtin -shared \
			-fPIC -o "$CRASH_PRELOAD/$name.so" \
			"$BATS_TEST_DIRNAME/preload/$name.c" -ldl
	done
}

# crash NAME ARGUMENT...: what it counted goes beside the test's result.
crash() {
	local status=0
	PYTHONDONTWRITEBYTECODE=1 TMPDIR=$BASE python3 "$BATS_TEST_DIRNAME/crash/$1.py" "${@:2}" \
		> "$BASE/counts" 3>&- || status=$?
	sed 's/^/# /' "$BASE/counts" >&3
	return "$status"
}
