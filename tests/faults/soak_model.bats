#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A slice of `make soak`: random sequences of operations, held to a model of the
# manual, and one mount under load. SPOOLFS_SOAK_SECONDS says how long each is (20);
# the seed of a sequence is printed, and what fails as a shell script.

ROOT=$BATS_TEST_DIRNAME/../..
export SPOOLFS_BUILD=${SPOOLFS_BUILD:-$ROOT/build}
export SPOOLFS_SOAK_SECONDS=${SPOOLFS_SOAK_SECONDS:-20}
# Always the same sequences: `make soak` draws new ones.
export SPOOLFS_SOAK_SEED=${SPOOLFS_SOAK_SEED:-4711000}
# The last sequence may be long, and is shrunk when it fails.
export BATS_TEST_TIMEOUT=$((300 + SPOOLFS_SOAK_SECONDS * 2))

soak() { "$ROOT/scripts/soak" "$SPOOLFS_BUILD" "$@" 3>&- 4>&-; }

@test "random operations: everything seen is what the manual allows" { soak model; }

@test "random operations over Azurite: everything seen is what the manual allows" {
	soak model-azure
}

@test "under load: nothing unanswered for a second, and nothing left of it" { soak load; }
