/* SPDX-License-Identifier: MIT */
#include "clock.h"

#include <stdbool.h>
#include <time.h>

/* The test seam. */
static bool faked;
static int64_t fake_mono_ns;
static int64_t fake_wall_ns;

/* Cannot fail: both clocks exist on every kernel that has pidfds. */
static int64_t read_clock(clockid_t id)
{
	struct timespec ts = {0};

	(void)clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

int64_t clock_mono(void)
{
	return faked ? fake_mono_ns : read_clock(CLOCK_BOOTTIME);
}

int64_t clock_wall(void)
{
	return faked ? fake_wall_ns : read_clock(CLOCK_REALTIME);
}

void clock_fake(int64_t mono_ns, int64_t wall_ns)
{
	faked = true;
	fake_mono_ns = mono_ns;
	fake_wall_ns = wall_ns;
}

void clock_step(int64_t ns)
{
	fake_mono_ns += ns;
	fake_wall_ns += ns;
}
