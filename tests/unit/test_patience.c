/* SPDX-License-Identifier: MIT */
#include "backend/engine/patience.h"

#include "backend/base/clock.h"
#include "tests/test.h"

#define LEASE (30 * NS_PER_S)
#define START (1000 * NS_PER_S)

static enum patience_do look(struct patience *p, int64_t at, int64_t *rest)
{
	struct patience_decision d = patience_decide(p, false, LEASE, at);

	if (rest)
		*rest = d.rest_ns;
	return d.what;
}

TEST(alone_it_holds)
{
	struct patience p = {0};

	patience_counted(&p, 10, 0, START);
	for (int i = 0; i < 7; i++) {
		CHECK_INT(look(&p, START + i * LEASE / 2, NULL), PATIENCE_HOLD);
		CHECK(!patience_counted(&p, 10, 0, START + i * LEASE / 2));
	}
}

TEST(while_somebody_here_consumes_it_holds)
{
	struct patience p = {0};

	patience_counted(&p, 10, 0, START);
	CHECK(patience_counted(&p, 5, 0, START));
	for (int i = 0; i < 1000; i++) {
		struct patience_decision d =
			patience_decide(&p, true, LEASE, START + i * LEASE / 2);

		CHECK_INT(d.what, PATIENCE_HOLD);
	}
}

TEST(others_that_consume_are_seen_by_the_count)
{
	struct patience p = {0};

	CHECK(!patience_counted(&p, 10, 0, START));
	CHECK(patience_counted(&p, 9, 0, START));
	CHECK_INT(look(&p, START, NULL), PATIENCE_LET_GO);
}

TEST(what_was_done_here_is_no_sign_of_others)
{
	struct patience p = {0};

	patience_counted(&p, 10, 0, START);
	patience_own(&p, -1);
	patience_own(&p, -1);
	patience_own(&p, 1);
	CHECK(!patience_counted(&p, 9, 0, START));
	CHECK(!patience_counted(&p, 7, 2, START)); /* perhaps done already */
	CHECK(patience_counted(&p, 6, 0, START));
}

TEST(each_rest_is_longer_up_to_a_bound)
{
	struct patience p = {0};
	int64_t rest, at = START;
	const int64_t want[] = {1, 2, 4, 8, 16, 20, 20};

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		patience_counted(&p, 10, 0, at);
		patience_counted(&p, 5, 0, at);
		CHECK_INT(look(&p, at, &rest), PATIENCE_LET_GO);
		CHECK_INT(rest, want[i] * LEASE);
		at += rest;
	}
}

TEST(interest_ends_the_long_rests)
{
	struct patience p = {0};
	int64_t rest;

	patience_counted(&p, 10, 0, START);
	patience_counted(&p, 5, 0, START);
	look(&p, START, NULL);
	look(&p, START, NULL);
	patience_decide(&p, true, LEASE, START);
	CHECK_INT(look(&p, START, &rest), PATIENCE_LET_GO);
	CHECK_INT(rest, LEASE);
}

TEST(others_are_forgotten_after_a_while)
{
	struct patience p = {0};

	patience_counted(&p, 10, 0, START);
	patience_counted(&p, 5, 0, START);
	CHECK_INT(look(&p, START + PATIENCE_OTHERS * LEASE - 1, NULL), PATIENCE_LET_GO);
	CHECK_INT(look(&p, START + PATIENCE_OTHERS * LEASE, NULL), PATIENCE_HOLD);
}

/* man: az-bait */
TEST(now_and_then_one_is_let_go_for_a_newcomer)
{
	struct patience p = {0};
	int64_t rest, at = START, last = START;
	const int64_t want[] = {4, 8, 16, 32, 64, 120, 120};
	size_t baits = 0;

	for (; baits < sizeof(want) / sizeof(want[0]); at += LEASE / 2) {
		enum patience_do what = look(&p, at, &rest);

		CHECK(what != PATIENCE_LET_GO);
		if (what == PATIENCE_HOLD)
			continue;
		CHECK_INT(rest, LEASE);
		CHECK_INT(at - last, want[baits] * LEASE);
		last = at;
		baits++;
	}
}
