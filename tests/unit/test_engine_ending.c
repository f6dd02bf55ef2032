/* SPDX-License-Identifier: MIT */
/* Pause, drain and stop. */
#include "backend/engine/outbox.h"

#include "engine_people.h"

static void setup(struct eb *b, unsigned n)
{
	eb_init(b);
	eb_put_many(b, 1, n);
	eb_start(b);
	eb_forget(b);
}

static enum poller_state state(struct eb *b)
{
	struct engine_stats s;

	engine_stats(b->e, &s);
	return s.state;
}

static void count(void *arg)
{
	(*(int *)arg)++;
}

TEST(a_pause_gives_the_unread_back)
{
	struct eb b;

	setup(&b, 3);
	take(&b, "002");
	eb_find(&b, "003")->d.attempts = 2; /* it has failed before */
	engine_pause(b.e, true);
	CHECK_INT(state(&b), POLLER_PAUSED);
	CHECK_STR(eb_told(&b), "-003 -001 ready:0 ");
	eb_pass(&b, 100 * NS_PER_MS);
	CHECK_INT(eb_stored(&b, "001")->state, EB_WAITING);
	CHECK_INT(eb_stored(&b, "001")->attempts, 0);
	CHECK_INT(eb_stored(&b, "003")->attempts, 2);
	CHECK_STR(eb_in_flight(&b), "002 "); /* may be finished */
	engine_poll_now(b.e);
	engine_driver_changed(b.e);
	eb_pass(&b, 100 * NS_PER_S);
	CHECK_INT(b.asked[DRIVER_RECEIVE], 0);
	CHECK_INT(b.lapsed, 0);
	engine_pause(b.e, false);
	eb_run(&b);
	CHECK_STR(eb_ready(&b), "001 003 ");
	CHECK_INT(state(&b), POLLER_WAITING);
	eb_close(&b);
}

TEST(what_a_pause_meets_on_its_way_goes_back)
{
	struct eb b;

	eb_init(&b);
	eb_put_many(&b, 1, 2);
	eb_hold(&b, DRIVER_RECEIVE);
	eb_start(&b);
	engine_pause(b.e, true);
	eb_let(&b, DRIVER_RECEIVE);
	eb_pass(&b, 100 * NS_PER_MS);
	CHECK_STR(eb_ready(&b), "");
	CHECK_INT(eb_stored(&b, "001")->state, EB_WAITING);
	CHECK_INT(eb_stored(&b, "002")->attempts, 0);
	CHECK_INT(b.started, 1);
	eb_close(&b);
}

TEST(undone_while_paused_it_goes_back)
{
	struct eb b;
	struct message *m;

	setup(&b, 1);
	m = open_as(&b, "001", getpid());
	engine_pause(b.e, true);
	engine_close(b.e, m);
	eb_pass(&b, 100 * NS_PER_MS);
	CHECK_STR(eb_ready(&b), "");
	CHECK_INT(eb_stored(&b, "001")->state, EB_WAITING);
	CHECK_INT(eb_stored(&b, "001")->attempts, 0);
	eb_close(&b);
}

TEST(a_drain_ends_with_the_last_claim)
{
	struct eb b;
	struct message *m;

	setup(&b, 4);
	m = take(&b, "001");
	engine_drain(b.e);
	eb_pass(&b, 100 * NS_PER_S);
	CHECK_INT(state(&b), POLLER_DRAINING);
	CHECK(!strstr(eb_told(&b), "finished"));
	CHECK_STR(eb_ready(&b), "");
	CHECK_INT(b.asked[DRIVER_RECEIVE], 0);
	CHECK_INT(engine_may(b.e, m, me(&b)), 0);
	CHECK_INT(engine_remove(b.e, m, me(&b)), 0);
	CHECK(strstr(eb_told(&b), "finished"));
	eb_forget(&b);
	engine_drain(b.e);
	eb_pass(&b, NS_PER_S);
	CHECK_STR(eb_told(&b), ""); /* told once */
	CHECK_INT(eb_stored(&b, "004")->state, EB_WAITING);
	eb_close(&b);
}

TEST(a_drain_with_nothing_claimed_ends_at_once)
{
	struct eb b;

	setup(&b, 2);
	engine_drain(b.e);
	eb_run(&b);
	CHECK_STR(eb_told(&b), "ready:1 -002 -001 ready:0 finished ");
	eb_close(&b);
}

TEST(a_drain_ends_with_an_undone_claim_too)
{
	struct eb b;
	struct message *m;

	setup(&b, 1);
	m = open_as(&b, "001", getpid());
	engine_drain(b.e);
	engine_close(b.e, m);
	eb_run(&b);
	CHECK_STR(eb_told(&b), "ready:0 ready:1 ready:1 ~001 -001 ready:0 finished ");
	eb_close(&b);
}

TEST(a_drain_ends_with_a_lost_lease_too)
{
	struct eb b;

	setup(&b, 1);
	take(&b, "001");
	engine_drain(b.e);
	eb_fail_item(&b, SETTLE_RENEW, "001", -ESTALE, 1);
	eb_pass(&b, 16 * NS_PER_S);
	CHECK(strstr(eb_told(&b), "-001 finished"));
	eb_close(&b);
}

/* ---- stop ---- */

TEST(a_stop_gives_back_and_calls)
{
	struct eb b;
	int called = 0;

	setup(&b, 3);
	CHECK(!engine_stopping(b.e));
	engine_stop(b.e, 10 * NS_PER_S, count, &called);
	CHECK(engine_stopping(b.e));
	CHECK_INT(called, 0); /* never before it returned */
	CHECK_INT(state(&b), POLLER_STOPPED);
	eb_run(&b);
	CHECK_INT(called, 1);
	CHECK_INT(eb_settled(&b, SETTLE_RELEASE, NULL), 3);
	CHECK_INT(eb_stored(&b, "001")->attempts, 0);
	eb_pass(&b, 20 * NS_PER_S);
	CHECK_INT(called, 1);
	eb_close(&b);
}

TEST(a_stop_finishes_deletions_and_sends)
{
	struct eb b;
	struct draft *d;
	int called = 0;

	setup(&b, 1);
	eb_fail(&b, DRIVER_SETTLE, -EAGAIN, 2);
	CHECK_INT(engine_remove(b.e, take(&b, "001"), me(&b)), 0);
	d = draft_create(b.e, "x", me(&b), false);
	CHECK_INT(draft_write(b.e, d, "one", 3, 0), 0);
	eb_fail(&b, DRIVER_DRAFT_SEND, -EAGAIN, 1);
	draft_close(b.e, d);
	engine_stop(b.e, 60 * NS_PER_S, count, &called);
	eb_run(&b);
	CHECK_INT(called, 0);
	eb_pass(&b, 10 * NS_PER_S);
	CHECK_INT(called, 1);
	CHECK_INT(eb_stored(&b, "001")->state, EB_GONE);
	CHECK_STR(eb_sent(&b), "x ");
	eb_close(&b);
}

TEST(a_stop_waits_no_longer_than_its_grace)
{
	struct eb b;
	int called = 0;

	setup(&b, 1);
	eb_fail(&b, DRIVER_SETTLE, -EAGAIN, 1000);
	CHECK_INT(engine_remove(b.e, take(&b, "001"), me(&b)), 0);
	engine_stop(b.e, 10 * NS_PER_S, count, &called);
	eb_pass(&b, 9900 * NS_PER_MS);
	CHECK_INT(called, 0);
	eb_pass(&b, 200 * NS_PER_MS);
	CHECK_INT(called, 1);
	eb_pass(&b, 100 * NS_PER_S);
	CHECK_INT(called, 1);
	eb_close(&b);
}

TEST(a_stop_waits_for_what_is_under_way)
{
	struct eb b;
	int called = 0;

	eb_init(&b);
	eb_put(&b, "1");
	eb_hold(&b, DRIVER_RECEIVE);
	eb_start(&b);
	engine_stop(b.e, 10 * NS_PER_S, count, &called);
	eb_pass(&b, NS_PER_S);
	CHECK_INT(called, 0);
	eb_let(&b, DRIVER_RECEIVE);
	eb_pass(&b, 100 * NS_PER_MS);
	CHECK_INT(called, 1);
	CHECK_INT(eb_stored(&b, "1")->state, EB_WAITING);
	eb_close(&b);
}

TEST(a_stop_ends_with_an_empty_answer_too)
{
	struct eb b;
	int called = 0;

	eb_init(&b);
	eb_hold(&b, DRIVER_RECEIVE);
	eb_start(&b);
	engine_stop(b.e, 10 * NS_PER_S, count, &called);
	eb_run(&b);
	CHECK_INT(called, 0);
	eb_let(&b, DRIVER_RECEIVE);
	eb_run(&b);
	CHECK_INT(called, 1);
	eb_close(&b);
}

TEST(a_stop_keeps_claims_for_the_next)
{
	struct eb b;
	int called = 0;

	setup(&b, 2);
	take(&b, "001");
	engine_stop(b.e, 10 * NS_PER_S, count, &called);
	eb_run(&b);
	CHECK_INT(called, 1);
	CHECK_STR(eb_in_flight(&b), "001 ");
	CHECK_INT(eb_stored(&b, "001")->state, EB_LEASED);
	CHECK(eb_stored(&b, "001")->record[0]); /* though it is young */
	eb_crash(&b);
	CHECK_STR(eb_in_flight(&b), "001 ");
	CHECK_STR(eb_ready(&b), "002 ");
	CHECK_INT(engine_owner_pid(eb_find(&b, "001")), getpid());
	eb_close(&b);
}

TEST(stopped_it_hands_nothing_out)
{
	struct eb b;
	int called = 0;

	setup(&b, 2);
	eb_hold(&b, DRIVER_SETTLE);
	engine_stop(b.e, 10 * NS_PER_S, count, &called);
	eb_put(&b, "9");
	engine_poll_now(b.e);
	engine_driver_changed(b.e);
	eb_pass(&b, 5 * NS_PER_S);
	CHECK_INT(b.asked[DRIVER_RECEIVE], 0);
	CHECK_STR(eb_ready(&b), "");
	eb_close(&b);
}
