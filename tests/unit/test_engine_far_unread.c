/* SPDX-License-Identifier: MIT */
/* A far service's messages that nobody here has read: when they are held, and
 * when other machines may have them. */
#include <stdio.h>

#include "engine_people.h"

static void setup(struct eb *b)
{
	eb_init(b);
	b->ops.caps = (b->ops.caps & ~(unsigned)DRIVER_PEERS_KNOWN) | DRIVER_FAR;
}

TEST(alone_its_listing_does_not_flicker)
{
	struct eb b;

	setup(&b);
	eb_put_many(&b, 1, 5);
	eb_start(&b);
	eb_forget(&b);
	eb_pass(&b, 115 * NS_PER_S);
	CHECK_STR(eb_told(&b), "");
	CHECK_INT(b.lapsed, 0);
	eb_close(&b);
}

TEST(where_others_consume_nothing_is_held_longer_than_a_lease)
{
	struct eb b;

	setup(&b);
	eb_put_many(&b, 1, 20); /* the window takes 8 */
	eb_start(&b);
	CHECK_INT(b.asked[DRIVER_RECEIVE], 1);
	for (unsigned i = 9; i <= 20; i++) {
		char id[16];

		snprintf(id, sizeof(id), "%03u", i);
		eb_stored(&b, id)->state = EB_GONE; /* another machine */
	}
	eb_pass(&b, 30 * NS_PER_S);
	CHECK_STR(eb_ready(&b), "");
	CHECK_INT(eb_stored(&b, "001")->state, EB_WAITING);
	eb_close(&b);
}

/* The service is away: after a lease another machine may have them. */
TEST(what_could_not_be_renewed_for_a_lease_is_not_handed_out)
{
	struct eb b;

	setup(&b);
	eb_put_many(&b, 1, 3);
	eb_start(&b);
	CHECK_INT(engine_claim(b.e, eb_find(&b, "002"), me(&b), true, false), 0);
	eb_fail(&b, DRIVER_SETTLE, -EAGAIN, 1000000);
	eb_fail(&b, DRIVER_RECEIVE, -EAGAIN, 1000000);
	eb_pass(&b, 29 * NS_PER_S);
	CHECK_STR(eb_ready(&b), "001 003 ");
	eb_pass(&b, 2 * NS_PER_S);
	CHECK_STR(eb_ready(&b), "");
	CHECK_STR(eb_in_flight(&b), "002 "); /* its owner is at work */
	b.fault[DRIVER_RECEIVE].times = b.fault[DRIVER_SETTLE].times = 0;
	eb_pass(&b, 60 * NS_PER_S);
	CHECK(eb_find(&b, "001"));
	eb_close(&b);
}

TEST(an_answer_after_the_lease_is_no_harm)
{
	struct eb b;

	setup(&b);
	eb_put(&b, "1");
	eb_start(&b);
	eb_hold(&b, DRIVER_SETTLE);
	eb_fail(&b, DRIVER_RECEIVE, -EAGAIN, 1000);
	eb_pass(&b, 31 * NS_PER_S);
	CHECK_STR(eb_ready(&b), "");
	b.fault[DRIVER_RECEIVE].times = 0;
	eb_let(&b, DRIVER_SETTLE);
	eb_run(&b);
	eb_pass(&b, 60 * NS_PER_S);
	CHECK_STR(eb_ready(&b), "1 ");
	eb_close(&b);
}

/* The other mounts of this machine poll at once, and are to find nothing. */
TEST(what_is_let_go_is_for_other_machines_too)
{
	struct eb b;

	setup(&b);
	eb_put(&b, "1");
	eb_start(&b);
	eb_pass(&b, 140 * NS_PER_S); /* the first bait is after 120 s */
	CHECK_INT(eb_settled(&b, SETTLE_RELEASE, "1"), 1);
	CHECK_INT(eb_last(&b, SETTLE_RELEASE, "1")->delay_ns, NS_PER_S);
	eb_close(&b);
}

TEST(bait_is_left_for_as_long_as_a_newcomer_may_sleep)
{
	struct eb b;

	setup(&b);
	eb_put(&b, "1");
	eb_start(&b);
	while (!eb_settled(&b, SETTLE_RELEASE, "1"))
		eb_pass(&b, NS_PER_S);
	eb_forget(&b);
	eb_pass(&b, b.cfg.backoff.ceiling_ns - NS_PER_S);
	CHECK_INT(b.asked[DRIVER_RECEIVE], 0);
	eb_pass(&b, 3 * NS_PER_S);
	CHECK_STR(eb_ready(&b), "1 ");
	eb_close(&b);
}

TEST(after_a_rest_it_looks_again)
{
	struct eb b;

	setup(&b);
	eb_put_many(&b, 1, 9);
	eb_start(&b);
	eb_stored(&b, "009")->state = EB_GONE;
	eb_pass(&b, 30 * NS_PER_S);
	CHECK_STR(eb_ready(&b), "");
	eb_pass(&b, 20 * NS_PER_S);
	CHECK(b.asked[DRIVER_RECEIVE] > 1);
	CHECK(strlen(eb_ready(&b)) > 0);
	eb_close(&b);
}

TEST(where_somebody_waits_nothing_is_given_back)
{
	struct eb b;

	setup(&b);
	eb_put_many(&b, 1, 9);
	eb_start(&b);
	CHECK_INT(engine_claim(b.e, eb_find(&b, "001"), me(&b), true, false), 0);
	eb_stored(&b, "009")->state = EB_GONE;
	eb_forget(&b);
	eb_pass(&b, 60 * NS_PER_S);
	CHECK_INT(eb_settled(&b, SETTLE_RELEASE, NULL), 0);
	eb_close(&b);
}

/* Handled in 10 s each, of a lease of 30 s: three are held. */
TEST(the_window_is_what_is_handled_within_a_lease)
{
	struct eb b;

	setup(&b);
	eb_put_many(&b, 1, 40);
	eb_start(&b);
	for (int i = 0; i < 8; i++) {
		struct message *m = TAILQ_FIRST(engine_ready(b.e));

		CHECK_INT(engine_claim(b.e, m, me(&b), true, false), 0);
		engine_was_read(b.e, m);
		eb_pass(&b, 10 * NS_PER_S);
		CHECK_INT(engine_remove(b.e, m, me(&b)), 0);
		eb_pass(&b, NS_PER_S);
	}
	CHECK_STR(eb_ready(&b), "009 010 011 ");
	eb_close(&b);
}

TEST(those_of_one_second_keep_the_order_they_came_in)
{
	struct eb b;

	setup(&b);
	eb_put(&b, "z");
	eb_put(&b, "a")->enqueued_ns = eb_stored(&b, "z")->enqueued_ns;
	eb_start(&b);
	CHECK_STR(eb_ready(&b), "z a ");
	eb_close(&b);
}
