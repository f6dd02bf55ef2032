#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Calls that are interrupted, find nothing, or do only a part.

load crash

setup_file() { build_preload broken; }

@test "EINTR, EAGAIN and short reads and writes go unnoticed" {
	crash broken "${ROUNDS:-15}"
}
