/* SPDX-License-Identifier: MIT */
/* The two clocks, and the seam through which tests move them. */
#ifndef SPOOLFS_BASE_CLOCK_H
#define SPOOLFS_BASE_CLOCK_H

#include <stdint.h>

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S  INT64_C(1000000000)

/* "Never": later than every deadline, and safe to compare with. */
#define CLOCK_NEVER INT64_MAX

/*
 * Monotonic nanoseconds, counting on while the machine is suspended
 * (CLOCK_BOOTTIME): a lease goes on running out while a laptop sleeps.
 */
int64_t clock_mono(void);

/* Nanoseconds since 1970-01-01 UTC: for names, signatures and show only. */
int64_t clock_wall(void);

/* Test seam: from now on both clocks stand still at these values. */
void clock_fake(int64_t mono_ns, int64_t wall_ns);

/* Test seam: move both faked clocks forward by NS. */
void clock_step(int64_t ns);

/* a + b without overflow; CLOCK_NEVER stays CLOCK_NEVER. B is never negative. */
static inline int64_t clock_add(int64_t a, int64_t b)
{
	return a > CLOCK_NEVER - b ? CLOCK_NEVER : a + b;
}

#endif
