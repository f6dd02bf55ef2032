/* SPDX-License-Identifier: MIT */
#include "fs/policy.h"

#include <errno.h>
#include <sysexits.h>

#include "tests/test.h"

static int end_code(int poll_err, uint64_t buried)
{
	struct engine_stats st = {.poll_err = poll_err, .buried_total = buried};

	return policy_end_code(&st);
}

/* man: run-exit-denied */
TEST(how_a_bounded_run_ends)
{
	CHECK_INT(end_code(0, 0), 0);
	CHECK_INT(end_code(0, 3), 1);
	CHECK_INT(end_code(-EAGAIN, 0), EX_UNAVAILABLE);
	CHECK_INT(end_code(-EIO, 3), EX_UNAVAILABLE);
	CHECK_INT(end_code(-EINVAL, 0), EX_UNAVAILABLE);
	CHECK_INT(end_code(-EACCES, 0), EX_NOPERM);
}

TEST(how_a_source_that_cannot_be_opened_ends)
{
	CHECK_INT(policy_exit_code(-EACCES), EX_NOPERM);
	CHECK_INT(policy_exit_code(-EINVAL), EX_USAGE);
	CHECK_INT(policy_exit_code(-EIO), EX_UNAVAILABLE);
}
