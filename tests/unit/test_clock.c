/* SPDX-License-Identifier: MIT */
#include "backend/base/clock.h"

#include "tests/test.h"

/* First: the seam cannot be taken back. */
TEST(clocks_run)
{
	int64_t mono = clock_mono();

	CHECK(mono > 0);
	CHECK(clock_mono() >= mono);
	/* Later than 2020 and earlier than 2200. */
	CHECK(clock_wall() > INT64_C(1577836800) * NS_PER_S);
	CHECK(clock_wall() < INT64_C(7258118400) * NS_PER_S);
}

TEST(faked_clocks_stand_still_and_step)
{
	clock_fake(100, 2000);
	CHECK_INT(clock_mono(), 100);
	CHECK_INT(clock_wall(), 2000);
	CHECK_INT(clock_mono(), 100);
	clock_step(7);
	CHECK_INT(clock_mono(), 107);
	CHECK_INT(clock_wall(), 2007);
}

TEST(adding_saturates_at_never)
{
	CHECK_INT(clock_add(1, 2), 3);
	CHECK_INT(clock_add(CLOCK_NEVER, 0), CLOCK_NEVER);
	CHECK_INT(clock_add(CLOCK_NEVER, NS_PER_S), CLOCK_NEVER);
	CHECK_INT(clock_add(NS_PER_S, CLOCK_NEVER), CLOCK_NEVER);
	CHECK_INT(clock_add(CLOCK_NEVER - 1, 1), CLOCK_NEVER);
}
