/* SPDX-License-Identifier: MIT */
#include "backend/engine/budget.h"

#include <math.h>

#include "backend/base/clock.h"
#include "tests/test.h"

#define S     NS_PER_S
#define MS    NS_PER_MS
#define MIN   (60 * S)
#define START (1000 * S)
#define STOP  (START + 60 * S)
#define NEVER CLOCK_NEVER

static struct budget_config config(
	int64_t run_for_ns, int64_t estimated_ns, double tolerance)
{
	return (struct budget_config){
		.run_for_ns = run_for_ns,
		.estimated_ns = estimated_ns,
		.tolerance = tolerance,
	};
}

/* A minute, 2 s, 5: hand-outs end at 50 s while nothing was observed. */
static struct budget make(void)
{
	struct budget_config cfg = config(60 * S, 2 * S, 5);
	struct budget b;

	budget_init(&b, &cfg, START);
	return b;
}

static struct budget none(void)
{
	struct budget_config cfg = config(0, 2 * S, 5);
	struct budget b;

	budget_init(&b, &cfg, START);
	return b;
}

TEST(the_estimate_stands_for_the_average)
{
	struct budget b = make();

	CHECK_INT(budget_average_ns(&b), -1);
	CHECK_INT(budget_margin_ns(&b), 10 * S);
	CHECK_INT(budget_hand_out_until(&b), STOP - 10 * S);
}

TEST(the_first_observation_replaces_the_estimate)
{
	struct budget b = make();

	budget_observe(&b, 300 * MS);
	CHECK_INT(budget_average_ns(&b), 300 * MS);
	CHECK_INT(budget_margin_ns(&b), 1500 * MS);
	budget_observe(&b, 500 * MS);
	CHECK_INT(budget_average_ns(&b), 400 * MS);
	CHECK_INT(budget_margin_ns(&b), 2 * S);
}

TEST(the_tolerance_may_be_fractional)
{
	struct budget_config cfg = config(60 * S, 2 * S, 1.25);
	struct budget b;

	budget_init(&b, &cfg, START);
	CHECK_INT(budget_margin_ns(&b), 2500 * MS);
}

TEST(hands_out_until_the_margin)
{
	struct budget b = make();

	CHECK(budget_may_hand_out(&b, START));
	CHECK(budget_may_hand_out(&b, STOP - 10 * S - 1));
	CHECK(!budget_may_hand_out(&b, STOP - 10 * S));
}

TEST(hand_outs_that_ended_stay_so)
{
	struct budget b = make();

	CHECK(!budget_may_hand_out(&b, STOP - 10 * S));
	budget_observe(&b, 1 * MS);
	CHECK(!budget_may_hand_out(&b, STOP - 10 * S));
	CHECK(!budget_next_poll_allowed(&b, STOP - 9 * S));
	CHECK_INT(budget_end(&b, false, true, NEVER, STOP - 9 * S), STOP - 9 * S);
}

TEST(a_long_handling_ends_hand_outs_early)
{
	struct budget b = make();

	budget_observe(&b, 12 * S);
	CHECK_INT(budget_hand_out_until(&b), START);
	CHECK(!budget_may_hand_out(&b, START + 12 * S));
}

TEST(polls_only_for_what_can_be_handed_out)
{
	struct budget b = make();

	CHECK(budget_next_poll_allowed(&b, STOP - 10 * S - 1));
	CHECK(!budget_next_poll_allowed(&b, STOP - 10 * S));
	CHECK(!budget_next_poll_allowed(&b, STOP));
	CHECK(budget_next_poll_allowed(&b, NEVER)); /* none is planned */
}

TEST(without_work_it_ends_with_the_hand_outs)
{
	struct budget b = make();

	CHECK_INT(budget_end(&b, false, false, START + 5 * S, START), STOP - 10 * S);
	CHECK_INT(budget_end(&b, false, false, STOP - 10 * S, STOP - 15 * S),
		STOP - 10 * S);
	CHECK_INT(budget_end(&b, false, false, NEVER, START), STOP - 10 * S);
	CHECK_INT(budget_end(&b, false, true, NEVER, STOP - 8 * S), STOP - 8 * S);
}

TEST(it_does_not_sleep_into_the_end)
{
	struct budget b = make();

	CHECK_INT(budget_end(&b, false, false, STOP - 1, START + S), STOP - 10 * S);
	CHECK_INT(budget_end(&b, false, false, STOP, START + S), START + S);
	CHECK_INT(budget_end(&b, false, false, STOP + S, START + S), START + S);
	/* What waits here is worth staying for. */
	CHECK_INT(budget_end(&b, false, true, STOP, START + S), STOP - 10 * S);
}

TEST(handlings_may_finish)
{
	struct budget b = make();

	CHECK_INT(budget_end(&b, true, false, STOP, START), STOP);
	CHECK(!budget_may_hand_out(&b, STOP - S));
	CHECK_INT(budget_end(&b, true, false, NEVER, STOP - S), STOP);
	CHECK_INT(budget_end(&b, true, true, NEVER, STOP + S), STOP + S);
	CHECK(!budget_over(&b, STOP - 1));
	CHECK(budget_over(&b, STOP));
}

TEST(tells_what_is_left)
{
	struct budget b = make();

	CHECK_INT(budget_stop_in_ns(&b, START), 60 * S);
	CHECK_INT(budget_stop_in_ns(&b, STOP - 1), 1);
	CHECK_INT(budget_stop_in_ns(&b, STOP), 0);
	CHECK_INT(budget_stop_in_ns(&b, STOP + S), 0);
}

TEST(without_a_budget_nothing_ends)
{
	struct budget b = none();

	budget_observe(&b, 10 * MIN);
	CHECK(budget_may_hand_out(&b, START + 1000000 * MIN));
	CHECK(budget_next_poll_allowed(&b, START + 1000000 * MIN));
	CHECK(!budget_over(&b, START + 1000000 * MIN));
	CHECK_INT(budget_hand_out_until(&b), NEVER);
	CHECK_INT(budget_end(&b, true, true, START, START), NEVER);
	CHECK_INT(budget_end(&b, false, false, START, START), NEVER);
	CHECK_INT(budget_average_ns(&b), 10 * MIN);
	CHECK_INT(budget_margin_ns(&b), -1);
	CHECK_INT(budget_stop_in_ns(&b, START), -1);
}

TEST(new_policies_keep_what_was_seen)
{
	struct budget b = make();
	struct budget_config longer = config(120 * S, 2 * S, 2);

	budget_observe(&b, 3 * S);
	budget_configure(&b, &longer);
	CHECK_INT(budget_average_ns(&b), 3 * S);
	CHECK_INT(budget_hand_out_until(&b), START + 120 * S - 6 * S);
}

TEST(a_budget_without_a_hand_out_is_refused)
{
	struct budget_config exact = config(10 * S, 2 * S, 5),
			     just = config(10 * S, 2 * S, 4.99),
			     none_at_all = config(0, 2 * S, 5),
			     odd = config(10 * S, 2 * S, NAN),
			     negative = config(10 * S, 2 * S, -1),
			     huge = config(10 * S, NEVER, 1e300);

	CHECK(!budget_possible(&exact));
	CHECK(budget_possible(&just));
	CHECK(budget_possible(&none_at_all));
	CHECK(!budget_possible(&odd));
	CHECK(!budget_possible(&negative));
	CHECK(!budget_possible(&huge));
}

TEST(what_is_possible_hands_out_at_its_start)
{
	for (int i = 1; i <= 1000; i++) {
		struct budget_config cfg =
			config(10 * S, i * 30 * MS, 3.7 / 7 * (i % 13));
		struct budget b;

		budget_init(&b, &cfg, START);
		CHECK_INT(budget_may_hand_out(&b, START), budget_possible(&cfg));
	}
}

static void observe_many(struct budget *b, int n, int64_t ns)
{
	for (int i = 0; i < n; i++)
		budget_observe(b, ns);
}

TEST(averages_a_million_short_ones)
{
	struct budget b = make();

	observe_many(&b, 1000000, 1 * MS);
	CHECK_INT(budget_average_ns(&b), 1 * MS);
}

TEST(averages_a_million_long_ones)
{
	struct budget b = make();

	observe_many(&b, 1000000, 10 * MIN);
	CHECK_INT(budget_average_ns(&b), 10 * MIN);
}

TEST(averages_a_million_of_each)
{
	struct budget b = make();

	observe_many(&b, 1000000, 1 * MS);
	observe_many(&b, 1000000, 10 * MIN);
	CHECK_INT(budget_average_ns(&b), (10 * MIN + 1 * MS) / 2);
	for (int i = 0; i < 1000000; i++)
		budget_observe(&b, i % 2 ? 10 * MIN : 1 * MS);
	CHECK_INT(budget_average_ns(&b), (10 * MIN + 1 * MS) / 2);
}

/* Against a sum that cannot overflow here. */
TEST(averages_exactly)
{
	struct budget b = make();
	uint64_t sum = 0, x = 1;

	for (uint64_t n = 1; n <= 1000000; n++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		budget_observe(&b, (int64_t)((x >> 33) % (uint64_t)(10 * MIN)));
		sum += (x >> 33) % (uint64_t)(10 * MIN);
		CHECK_INT(budget_average_ns(&b), sum / n);
	}
}

TEST(the_longest_handlings_do_not_overflow)
{
	struct budget b = make();

	observe_many(&b, 1000, NEVER / 2);
	CHECK_INT(budget_average_ns(&b), NEVER / 2);
	CHECK_INT(budget_margin_ns(&b), NEVER);
	CHECK(!budget_may_hand_out(&b, START));
	observe_many(&b, 1000, 0);
	CHECK_INT(budget_average_ns(&b), NEVER / 4);
}

TEST(a_negative_handling_counts_as_none)
{
	struct budget b = make();

	budget_observe(&b, -5 * S);
	CHECK_INT(budget_average_ns(&b), 0);
	CHECK(budget_may_hand_out(&b, STOP - 1));
	CHECK(!budget_may_hand_out(&b, STOP));
}
