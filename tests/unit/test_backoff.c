/* SPDX-License-Identifier: MIT */
#include "backend/engine/backoff.h"

#include "backend/base/clock.h"
#include "tests/test.h"

#define MIDDLE 0.5 /* of the jitter: the interval itself */

static struct backoff_config config(int64_t floor_s, int64_t ceiling_s)
{
	return (struct backoff_config){
		.floor_ns = floor_s * NS_PER_S,
		.ceiling_ns = ceiling_s * NS_PER_S,
		.factor = 2,
		.jitter_percent = 20,
	};
}

static struct backoff make(int64_t floor_s, enum backoff_decrease decrease)
{
	struct backoff_config cfg = config(floor_s, 60);
	struct backoff b;

	cfg.decrease = decrease;
	backoff_init(&b, &cfg);
	return b;
}

static int64_t empty_s(struct backoff *b)
{
	return backoff_empty(b, MIDDLE) / NS_PER_S;
}

TEST(doubles_up_to_the_ceiling)
{
	static const int want[] = {1, 2, 4, 8, 16, 32, 60, 60, 60};
	struct backoff b = make(1, BACKOFF_RESET);

	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++)
		CHECK_INT(empty_s(&b), want[i]);
}

TEST(starts_at_its_floor)
{
	static const int want[] = {3, 6, 12, 24, 48, 60};
	struct backoff b = make(3, BACKOFF_RESET);

	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++)
		CHECK_INT(empty_s(&b), want[i]);
}

TEST(takes_a_fractional_factor)
{
	struct backoff_config cfg = config(2, 60);
	struct backoff b;

	cfg.factor = 1.5;
	backoff_init(&b, &cfg);
	CHECK_INT(empty_s(&b), 2);
	CHECK_INT(empty_s(&b), 3);
	CHECK_INT(backoff_empty(&b, MIDDLE), 4500 * NS_PER_MS);
}

TEST(stays_where_floor_is_ceiling)
{
	struct backoff_config cfg = config(5, 5);
	struct backoff b;

	backoff_init(&b, &cfg);
	CHECK_INT(empty_s(&b), 5);
	CHECK_INT(empty_s(&b), 5);
	CHECK_INT(backoff_empty(&b, 0.999), 5 * NS_PER_S);
}

TEST(reset_goes_to_the_floor)
{
	struct backoff b = make(3, BACKOFF_RESET);

	for (int i = 0; i < 6; i++)
		backoff_empty(&b, MIDDLE);
	backoff_hit(&b);
	CHECK_INT(empty_s(&b), 3);
	CHECK_INT(empty_s(&b), 6);
}

TEST(halve_divides_by_the_factor)
{
	struct backoff b = make(3, BACKOFF_HALVE);

	empty_s(&b);
	CHECK_INT(b.interval_ns, 6 * NS_PER_S);
	backoff_hit(&b);
	CHECK_INT(empty_s(&b), 3);

	b = make(1, BACKOFF_HALVE);
	empty_s(&b);
	empty_s(&b);
	CHECK_INT(b.interval_ns, 4 * NS_PER_S);
	backoff_hit(&b);
	CHECK_INT(empty_s(&b), 2);
}

TEST(halve_never_goes_under_the_floor)
{
	struct backoff b = make(3, BACKOFF_HALVE);

	backoff_empty(&b, MIDDLE);
	backoff_hit(&b);
	backoff_hit(&b);
	backoff_hit(&b);
	CHECK_INT(b.interval_ns, 3 * NS_PER_S);
}

TEST(jitter_stays_in_its_bound)
{
	int64_t min = INT64_MAX, max = 0;

	for (int i = 0; i < 1000; i++) {
		struct backoff b = make(10, BACKOFF_RESET);
		int64_t ns = backoff_empty(&b, i / 1000.0);

		CHECK(ns >= 8 * NS_PER_S && ns <= 12 * NS_PER_S);
		min = ns < min ? ns : min;
		max = ns > max ? ns : max;
		CHECK_INT(b.interval_ns, 20 * NS_PER_S); /* the jitter does not add up */
	}
	CHECK_INT(min, 8 * NS_PER_S);
	CHECK(max > 11900 * NS_PER_MS);
}

TEST(jitter_stays_under_the_ceiling_and_above_nothing)
{
	struct backoff_config cfg = config(60, 60);
	struct backoff b;

	cfg.jitter_percent = 100;
	backoff_init(&b, &cfg);
	CHECK_INT(backoff_empty(&b, 0.999), 60 * NS_PER_S);
	CHECK_INT(backoff_empty(&b, 0), 1);
}

TEST(new_bounds_clamp_the_interval)
{
	struct backoff b = make(1, BACKOFF_RESET);
	struct backoff_config lower = config(1, 10), higher = config(20, 60);

	for (int i = 0; i < 7; i++)
		backoff_empty(&b, MIDDLE);
	backoff_configure(&b, &lower);
	CHECK_INT(empty_s(&b), 10);
	backoff_configure(&b, &higher);
	CHECK_INT(empty_s(&b), 20);
}
