#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A session in which the n-th allocation of the daemon's own code fails. Those of
# SQLite, libfuse and cJSON are theirs.

load crash

setup_file() { build_preload alloc; }

# man: at-least-once
@test "an allocation that fails ends nobody, hangs nobody and loses nothing" {
	crash alloc "${ROUNDS:-20}"
}
