/* SPDX-License-Identifier: MIT */
#include "backend/engine/histogram.h"

#include <stdlib.h>

#include "backend/base/clock.h"
#include "tests/test.h"

#define LAST (HISTOGRAM_BUCKETS - 1)

TEST(begins_empty)
{
	struct histogram h = {0};

	CHECK_INT(histogram_count(&h), 0);
	CHECK_INT(h.sum_s, 0);
	CHECK_INT(h.sum_ns, 0);
}

TEST(goes_from_5_ms_to_1_h)
{
	CHECK_STR(histogram_le(0), "0.005");
	CHECK_STR(histogram_le(LAST - 1), "3600.0");
	CHECK_STR(histogram_le(LAST), "+Inf");
}

/* Each bound, read from its own text, is the last that its bucket takes. */
TEST(a_bound_belongs_to_its_bucket)
{
	for (unsigned i = 0; i < LAST; i++) {
		int64_t ns = (int64_t)(strtod(histogram_le(i), NULL) * 1e9 + 0.5);
		struct histogram h = {0};

		histogram_observe(&h, ns);
		CHECK_INT(h.in[i], 1);
		histogram_observe(&h, ns + 1);
		CHECK_INT(h.in[i + 1], 1);
		CHECK_INT(histogram_count(&h), 2);
	}
}

TEST(counts_are_cumulative)
{
	struct histogram h = {0};

	histogram_observe(&h, 0);
	histogram_observe(&h, 7 * NS_PER_MS);
	histogram_observe(&h, 7 * NS_PER_MS);
	histogram_observe(&h, 7200 * NS_PER_S);
	CHECK_INT(histogram_at_most(&h, 0), 1);
	CHECK_INT(histogram_at_most(&h, 1), 3);
	CHECK_INT(histogram_at_most(&h, LAST - 1), 3);
	CHECK_INT(histogram_at_most(&h, LAST), 4);
	CHECK_INT(histogram_count(&h), 4);
}

TEST(the_sum_is_exact)
{
	struct histogram h = {0};

	for (int i = 0; i < 1000000; i++)
		histogram_observe(&h, 600 * NS_PER_S + 1);
	CHECK_INT(h.sum_s, 600000000);
	CHECK_INT(h.sum_ns, 1000000);
	CHECK_INT(histogram_count(&h), 1000000);
}

TEST(the_longest_sums_do_not_overflow)
{
	struct histogram h = {0};

	for (int i = 0; i < 4; i++)
		histogram_observe(&h, CLOCK_NEVER);
	CHECK_INT(h.in[LAST], 4);
	CHECK_INT(h.sum_s, 4 * (CLOCK_NEVER / NS_PER_S) + 3);
	CHECK_INT(h.sum_ns, 4 * (CLOCK_NEVER % NS_PER_S) - 3 * NS_PER_S);
}

TEST(a_negative_time_counts_as_none)
{
	struct histogram h = {0};

	histogram_observe(&h, -1);
	CHECK_INT(h.in[0], 1);
	CHECK_INT(h.sum_s, 0);
	CHECK_INT(h.sum_ns, 0);
}
