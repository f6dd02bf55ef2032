/* SPDX-License-Identifier: MIT */
/* The idle timer in an engine. */
#include "engine_run.h"

TEST(a_mount_that_nobody_uses_ends)
{
	struct eb b;

	lazy(&b, 10 * NS_PER_S);
	eb_put(&b, "1"); /* to be handled, but nobody does */
	eb_start(&b);
	CHECK_INT(stats(&b).idle, IDLE_ARMED);
	CHECK_INT(stats(&b).idle_left_ns, 10 * NS_PER_S);
	eb_pass(&b, 10 * NS_PER_S - NS_PER_MS);
	CHECK(!finished(&b));
	eb_pass(&b, NS_PER_MS);
	CHECK(finished(&b));
	CHECK_INT(stats(&b).idle, IDLE_FIRED);
	CHECK_STR(engine_end_reason(b.e), "nothing was handled for idle_timeout");
	eb_forget(&b);
	eb_pass(&b, 100 * NS_PER_S);
	CHECK(!finished(&b)); /* once */
	eb_close(&b);
}

TEST(a_handling_of_ten_timeouts_is_not_interrupted)
{
	struct eb b;
	struct message *m;

	lazy(&b, 10 * NS_PER_S);
	eb_put_many(&b, 1, 2);
	eb_start(&b);
	eb_pass(&b, 9 * NS_PER_S);
	m = take(&b, "001");
	CHECK_INT(stats(&b).idle, IDLE_HELD);
	CHECK_INT(stats(&b).idle_left_ns, -1);
	eb_pass(&b, 50 * NS_PER_S);
	handle(&b, "002", 5 * NS_PER_S); /* a shorter one beside it */
	eb_pass(&b, 45 * NS_PER_S);
	CHECK(!finished(&b));
	CHECK_INT(engine_remove(b.e, m, me(&b)), 0);
	eb_pass(&b, 10 * NS_PER_S - NS_PER_MS);
	CHECK(!finished(&b));
	eb_pass(&b, NS_PER_MS);
	CHECK(finished(&b));
	eb_close(&b);
}

TEST(each_way_a_claim_ends_starts_the_timer_anew)
{
	struct eb b;
	struct message *m;

	lazy(&b, 10 * NS_PER_S);
	eb_put_many(&b, 1, 4);
	eb_start(&b);
	eb_pass(&b, 5 * NS_PER_S);
	m = open_as(&b, "001", getpid());
	eb_pass(&b, NS_PER_S);
	engine_close(b.e, m); /* undone */
	CHECK_INT(stats(&b).idle_left_ns, 10 * NS_PER_S);
	handle(&b, "001", NS_PER_S);
	CHECK_INT(stats(&b).idle_left_ns, 10 * NS_PER_S);
	m = take(&b, "002");
	eb_pass(&b, NS_PER_S);
	CHECK_INT(engine_release(b.e, m, -1), 0);
	CHECK_INT(stats(&b).idle_left_ns, 10 * NS_PER_S);
	m = take(&b, "003");
	eb_pass(&b, NS_PER_S);
	CHECK_INT(engine_bury(b.e, m, me(&b), "test"), 0);
	CHECK_INT(stats(&b).idle_left_ns, 10 * NS_PER_S);
	take(&b, "004");
	eb_fail_item(&b, SETTLE_RENEW, "004", -ESTALE, 100);
	eb_pass(&b, 12 * NS_PER_S);
	CHECK_INT(stats(&b).leases_lost, 1);
	CHECK_INT(stats(&b).idle, IDLE_ARMED);
	CHECK(!finished(&b));
	eb_close(&b);
}

TEST(a_claim_of_an_earlier_life_holds_the_timer)
{
	struct eb b;

	lazy(&b, 10 * NS_PER_S);
	eb_put(&b, "1");
	eb_start(&b);
	take(&b, "1");
	eb_pass(&b, 100 * NS_PER_MS);
	eb_crash(&b);
	CHECK_STR(eb_in_flight(&b), "1 ");
	CHECK_INT(stats(&b).idle, IDLE_HELD);
	eb_pass(&b, 20 * NS_PER_S);
	CHECK(!finished(&b));
	eb_close(&b);
}

TEST(a_stop_ends_the_timer)
{
	struct eb b;

	lazy(&b, 10 * NS_PER_S);
	eb_hold(&b, DRIVER_RECEIVE); /* so that the stop takes a while */
	eb_start(&b);
	engine_stop(b.e, 100 * NS_PER_S, stopped, NULL);
	CHECK_INT(stats(&b).idle, IDLE_OFF);
	eb_pass(&b, 50 * NS_PER_S);
	CHECK(!finished(&b));
	eb_let(&b, DRIVER_RECEIVE);
	eb_run(&b);
	eb_close(&b);
}

TEST(set_rearms_the_timer_when_it_changes_it)
{
	struct eb b;

	lazy(&b, 10 * NS_PER_S);
	eb_start(&b);
	eb_pass(&b, 5 * NS_PER_S);
	engine_configure(b.e, &b.cfg);
	CHECK_INT(stats(&b).idle_left_ns, 5 * NS_PER_S);
	b.cfg.idle_timeout_ns = 20 * NS_PER_S;
	engine_configure(b.e, &b.cfg);
	CHECK_INT(stats(&b).idle_left_ns, 20 * NS_PER_S);
	b.cfg.idle_timeout_ns = 0;
	engine_configure(b.e, &b.cfg);
	CHECK_INT(stats(&b).idle, IDLE_OFF);
	eb_pass(&b, 100 * NS_PER_S);
	CHECK(!finished(&b));
	eb_close(&b);
}

/* Whichever comes first ends it. */
TEST(both_may_be_given)
{
	struct eb b;

	bounded(&b);
	b.cfg.idle_timeout_ns = 20 * NS_PER_S;
	eb_start(&b);
	eb_pass(&b, 20 * NS_PER_S);
	CHECK_STR(engine_end_reason(b.e), "nothing was handled for idle_timeout");
	eb_close(&b);
}
