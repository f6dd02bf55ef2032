/* SPDX-License-Identifier: MIT */
/* Bounded runs: the budget in an engine. */
#include "engine_run.h"

static void served(struct engine_waiter *w, struct message *m)
{
	*(struct message **)w->arg = m;
}

/* man: run-near-end, run-under-way */
TEST(near_its_end_a_run_hands_out_nothing)
{
	struct eb b;
	struct message *m, *claimed, other, *got = &other;
	struct engine_waiter w = {.fn = served, .arg = &got};

	bounded(&b);
	eb_put_many(&b, 1, 3);
	eb_start(&b);
	claimed = take(&b, "001");
	m = eb_find(&b, "002");
	eb_pass(&b, 50 * NS_PER_S - 1);
	CHECK(engine_hands_out(b.e));
	CHECK_INT(engine_may(b.e, m, me(&b)), 0);
	clock_step(1); /* the loop does not know yet */
	CHECK(!engine_hands_out(b.e));
	CHECK_INT(engine_claim(b.e, m, me(&b), false, true), -EAGAIN);
	CHECK_INT(engine_remove(b.e, m, me(&b)), -EAGAIN);
	CHECK_INT(engine_next(b.e, &w, me(&b), true), 0);
	CHECK(!got);
	eb_forget(&b);
	eb_run(&b);
	CHECK_STR(eb_ready(&b), "");
	eb_pass(&b, 100 * NS_PER_MS);
	CHECK_INT(eb_stored(&b, "002")->state, EB_WAITING);
	CHECK_INT(eb_stored(&b, "002")->attempts, 0);
	CHECK_INT(stats(&b).state, POLLER_DRAINING);
	CHECK(!finished(&b));
	got = &other;
	CHECK_INT(engine_next(b.e, &w, me(&b), false), 0);
	CHECK(!got);
	CHECK_INT(engine_remove(b.e, claimed, me(&b)), 0);
	CHECK(finished(&b));
	CHECK_STR(engine_end_reason(b.e), "the time of the run is used");
	eb_close(&b);
}

TEST(a_reader_that_waits_has_its_end_of_file)
{
	struct eb b;
	struct message other, *got = &other;
	struct engine_waiter w = {.fn = served, .arg = &got};

	bounded(&b);
	eb_start(&b);
	CHECK_INT(engine_next(b.e, &w, me(&b), false), 0);
	eb_pass(&b, 50 * NS_PER_S - NS_PER_MS);
	CHECK(w.queued);
	eb_pass(&b, NS_PER_MS);
	CHECK(!w.queued && !got);
	CHECK_INT(engine_next(b.e, &w, me(&b), true), 0); /* the end, not EAGAIN */
	eb_close(&b);
}

/* man: run-under-way, run-kept */
TEST(a_handling_under_way_has_until_stop_before)
{
	struct eb b;

	bounded(&b);
	eb_put(&b, "1");
	eb_start(&b);
	take(&b, "1");
	eb_pass(&b, 60 * NS_PER_S - NS_PER_MS);
	CHECK(!finished(&b));
	CHECK_INT(stats(&b).stop_in_ns, NS_PER_MS);
	eb_pass(&b, NS_PER_MS);
	CHECK(finished(&b));
	engine_stop(b.e, NS_PER_S, stopped, NULL);
	eb_run(&b);
	CHECK_INT(eb_stored(&b, "1")->state, EB_LEASED); /* kept for the next */
	CHECK(eb_stored(&b, "1")->record[0]);
	eb_close(&b);
}

/* man: run-margin, run-estimate, key-average, key-run */
TEST(the_margin_follows_the_handlings)
{
	struct eb b;

	bounded(&b);
	eb_put_many(&b, 1, 3);
	eb_start(&b);
	CHECK_INT(stats(&b).avg_handling_ns, -1);
	CHECK_INT(stats(&b).margin_ns, 10 * NS_PER_S);
	handle(&b, "001", NS_PER_S);
	CHECK_INT(stats(&b).avg_handling_ns, NS_PER_S);
	CHECK_INT(stats(&b).margin_ns, 5 * NS_PER_S);
	handle(&b, "002", 3 * NS_PER_S);
	CHECK_INT(stats(&b).margin_ns, 10 * NS_PER_S);
	CHECK_INT(engine_release(b.e, take(&b, "003"), 100 * NS_PER_S), 0);
	CHECK_INT(stats(&b).avg_handling_ns, 4 * NS_PER_S / 3);
	CHECK_INT(histogram_count(stats(&b).handling), 3);
	CHECK_INT(stats(&b).claims_total, 3);
	eb_close(&b);
}

/* A handling that took too long ends the hand-outs at once. */
TEST(one_long_handling_closes_the_run)
{
	struct eb b;

	bounded(&b);
	eb_put_many(&b, 1, 2);
	eb_start(&b);
	handle(&b, "001", 12 * NS_PER_S);
	CHECK(finished(&b));
	eb_pass(&b, 100 * NS_PER_MS);
	CHECK_INT(eb_stored(&b, "002")->state, EB_WAITING);
	eb_close(&b);
}

TEST(a_lost_lease_is_a_handling_too)
{
	struct eb b;

	bounded(&b);
	b.cfg.lease.max_lease_ns = 30 * NS_PER_S;
	eb_put(&b, "1");
	eb_start(&b);
	take(&b, "1");
	eb_fail_item(&b, SETTLE_RENEW, "1", -ESTALE, 100);
	eb_pass(&b, 20 * NS_PER_S);
	CHECK_INT(stats(&b).leases_lost, 1);
	CHECK_INT(histogram_count(stats(&b).handling), 1);
	CHECK(stats(&b).avg_handling_ns > 10 * NS_PER_S);
	CHECK_INT(stats(&b).idle, IDLE_OFF);
	CHECK_STR(eb_in_flight(&b), "");
	CHECK(finished(&b)); /* and as long as it took, no other fits in */
	eb_close(&b);
}

/* A look (flock, entr) is no handling. */
TEST(an_undone_claim_is_not_observed)
{
	struct eb b;
	struct message *m;

	bounded(&b);
	eb_put(&b, "1");
	eb_start(&b);
	m = open_as(&b, "1", getpid());
	eb_pass(&b, NS_PER_S);
	engine_close(b.e, m);
	CHECK_STR(eb_ready(&b), "1 ");
	CHECK_INT(stats(&b).avg_handling_ns, -1);
	eb_close(&b);
}

/* It may be that nobody handled it for long: an hour as the average would leave
 * this run no time at all. */
TEST(what_an_earlier_run_began_is_not_observed)
{
	struct eb b;

	bounded(&b);
	eb_put_many(&b, 1, 2);
	eb_start(&b);
	take(&b, "001");
	eb_pass(&b, 100 * NS_PER_MS); /* it is recorded */
	clock_step(20 * NS_PER_S);
	eb_crash(&b);
	CHECK_STR(eb_in_flight(&b), "001 ");
	CHECK_INT(engine_release(b.e, eb_find(&b, "001"), -1), 0);
	CHECK_INT(stats(&b).avg_handling_ns, -1);
	CHECK(!finished(&b));
	CHECK_INT(stats(&b).stop_in_ns, 60 * NS_PER_S);
	eb_close(&b);
}

/* man: run-polls */
TEST(polls_go_on_until_they_would_be_of_no_use)
{
	struct eb b;

	bounded(&b);
	eb_start(&b);
	eb_forget(&b);
	eb_pass(&b, 45 * NS_PER_S);
	CHECK_INT(b.asked[DRIVER_RECEIVE], 9);
	CHECK_INT(stats(&b).next_poll_in_ns, -1); /* it would come at 50 s */
	CHECK(!finished(&b));
	eb_pass(&b, 5 * NS_PER_S);
	CHECK_INT(b.asked[DRIVER_RECEIVE], 9);
	CHECK(finished(&b));
	eb_close(&b);
}

/* man: run-polls */
TEST(a_run_does_not_sleep_into_its_end)
{
	struct eb b;

	bounded(&b);
	b.cfg.backoff.floor_ns = b.cfg.backoff.ceiling_ns = 60 * NS_PER_S;
	eb_start(&b);
	CHECK(finished(&b));
	eb_close(&b);
	bounded(&b);
	b.cfg.backoff.floor_ns = b.cfg.backoff.ceiling_ns = 60 * NS_PER_S;
	eb_put(&b, "1"); /* which somebody may want */
	eb_start(&b);
	eb_pass(&b, 50 * NS_PER_S - NS_PER_MS);
	CHECK(!finished(&b));
	eb_close(&b);
}

/* A message that comes just after an empty poll. */
/* man: run-idle-time */
TEST(a_late_message_is_had_within_idle_time)
{
	struct eb b;

	bounded(&b);
	eb_start(&b);
	eb_pass(&b, 40 * NS_PER_S + NS_PER_MS);
	eb_put(&b, "1");
	eb_pass(&b, 5 * NS_PER_S);
	CHECK_STR(eb_ready(&b), "1 ");
	handle(&b, "1", NS_PER_S);
	CHECK(!finished(&b));
	eb_close(&b);
}

TEST(a_wake_up_near_the_end_polls_nothing)
{
	struct eb b;

	bounded(&b);
	eb_start(&b);
	eb_pass(&b, 49 * NS_PER_S);
	eb_forget(&b);
	engine_poll_now(b.e);
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_RECEIVE], 1); /* in time */
	clock_step(NS_PER_S);
	engine_poll_now(b.e);
	engine_driver_changed(b.e);
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_RECEIVE], 1);
	eb_close(&b);
}

/* The loop was held up: the poll that was due meanwhile is not made up for. */
TEST(a_poll_that_is_late_is_left_out)
{
	struct eb b;

	bounded(&b);
	eb_start(&b);
	eb_forget(&b);
	clock_step(51 * NS_PER_S);
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_RECEIVE], 0);
	CHECK(finished(&b));
	eb_close(&b);
}

/* While it stops it needs not be told to. */
TEST(a_stop_is_not_followed_by_an_end)
{
	struct eb b;

	bounded(&b);
	eb_put(&b, "1");
	eb_start(&b);
	take(&b, "1");
	eb_hold(&b, DRIVER_SETTLE); /* so that the stop takes a while */
	engine_stop(b.e, 200 * NS_PER_S, stopped, NULL);
	eb_pass(&b, 100 * NS_PER_S);
	CHECK(!finished(&b));
	engine_configure(b.e, &b.cfg);
	eb_pass(&b, NS_PER_S);
	CHECK(!finished(&b));
	eb_let(&b, DRIVER_SETTLE);
	eb_run(&b);
	eb_close(&b);
}

TEST(what_a_last_poll_brings_too_late_goes_back)
{
	struct eb b;

	bounded(&b);
	eb_start(&b);
	eb_hold(&b, DRIVER_RECEIVE);
	eb_put(&b, "1");
	eb_pass(&b, 49 * NS_PER_S);
	CHECK_INT(b.asked[DRIVER_RECEIVE], 2);
	clock_step(2 * NS_PER_S);
	eb_let(&b, DRIVER_RECEIVE);
	eb_run(&b);
	CHECK_STR(eb_ready(&b), "");
	eb_pass(&b, 100 * NS_PER_MS);
	CHECK_INT(eb_stored(&b, "1")->state, EB_WAITING);
	CHECK_INT(eb_stored(&b, "1")->attempts, 0);
	eb_close(&b);
}

TEST(set_moves_the_end)
{
	struct eb b;

	bounded(&b);
	eb_start(&b);
	eb_pass(&b, 20 * NS_PER_S);
	b.cfg.budget.run_for_ns = 0;
	engine_configure(b.e, &b.cfg);
	CHECK_INT(stats(&b).stop_in_ns, -1);
	CHECK_INT(stats(&b).margin_ns, -1);
	eb_pass(&b, 100 * NS_PER_S);
	CHECK(!finished(&b));
	b.cfg.budget.run_for_ns = 131 * NS_PER_S;
	engine_configure(b.e, &b.cfg);
	eb_pass(&b, NS_PER_S - NS_PER_MS);
	CHECK(!finished(&b));
	eb_pass(&b, NS_PER_MS);
	CHECK(finished(&b));
	eb_close(&b);
}

/*
 * The scheduled job: handlings of about 1 s on a queue that is never empty. It
 * ends 5 averages before its time, when the last handling is done.
 */
TEST(a_run_uses_almost_all_of_its_time)
{
	struct eb b;
	int64_t start;
	unsigned n = 0;
	char id[16];

	bounded(&b);
	b.cfg.window = 80;
	eb_put_many(&b, 1, 80);
	eb_start(&b);
	start = clock_mono();
	while (!finished(&b)) {
		snprintf(id, sizeof(id), "%03u", ++n);
		handle(&b, id, NS_PER_S + (n % 5) * 100 * NS_PER_MS - 200 * NS_PER_MS);
	}
	CHECK(clock_mono() - start >= 54 * NS_PER_S);
	CHECK(clock_mono() - start <= 56 * NS_PER_S);
	eb_close(&b);
}

/* ---- whether the queue answers ---- */

TEST(an_end_tells_whether_the_last_poll_was_answered)
{
	struct eb b;

	bounded(&b);
	eb_fail(&b, DRIVER_RECEIVE, -EAGAIN, 1);
	eb_start(&b);
	CHECK_INT(b.start_err, -EAGAIN);
	CHECK_INT(stats(&b).poll_err, -EAGAIN);
	engine_poll_now(b.e);
	eb_run(&b);
	CHECK_INT(stats(&b).poll_err, 0);
	eb_fail(&b, DRIVER_RECEIVE, -EACCES, 1000);
	engine_poll_now(b.e);
	eb_pass(&b, 60 * NS_PER_S);
	CHECK(finished(&b));
	CHECK_INT(stats(&b).poll_err, -EACCES);
	eb_close(&b);
}

TEST(a_queue_that_never_answered_is_away)
{
	struct eb b;

	bounded(&b);
	eb_hold(&b, DRIVER_RECEIVE);
	eb_start(&b);
	CHECK_INT(b.started, 0);
	CHECK_INT(stats(&b).poll_err, -EAGAIN);
	eb_let(&b, DRIVER_RECEIVE);
	eb_run(&b);
	CHECK_INT(stats(&b).poll_err, 0);
	eb_close(&b);
}
