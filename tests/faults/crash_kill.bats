#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# SIGKILL for the daemons of two mounts of one queue, their announcers, readers and
# writers, one at a time and all at once.

load crash

# man: at-least-once, durable-close, cut-off
@test "whoever is killed, nothing is lost, torn or made up" {
	crash kill "${ROUNDS:-15}"
}

# man: cut-off
@test "a writer that is killed while it opens sends nothing" {
	crash killed "${ROUNDS:-150}"
}
