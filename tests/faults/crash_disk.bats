#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A disk that is full from the n-th write on, until there is room again.

load crash

setup_file() { build_preload disk; }

# man: durable-close
@test "full at any write: the writer is told, nothing is lost, and it goes on" {
	crash disk "${ROUNDS:-15}"
}

@test "a small tmpfs is filled, and emptied again" {
	crash disk tmpfs
}
