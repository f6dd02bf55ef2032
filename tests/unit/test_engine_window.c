/* SPDX-License-Identifier: MIT */
/* The window: how it fills, in which order, and who waits for it. */
#include <errno.h>

#include "engine_people.h"

static void consume(struct eb *b, const char *id)
{
	CHECK_INT(engine_remove(b->e, take(b, id), me(b)), 0);
}

static enum poller_state state(struct eb *b)
{
	struct engine_stats s;

	engine_stats(b->e, &s);
	return s.state;
}

TEST(fills_to_the_brim_and_no_further)
{
	struct eb b;

	eb_init(&b);
	eb_put_many(&b, 1, 20);
	eb_start(&b);
	CHECK_INT(b.started, 1);
	CHECK_INT(b.start_err, 0);
	CHECK_STR(eb_ready(&b), "001 002 003 004 005 006 007 008 ");
	CHECK_STR(eb_told(&b), "ready:1 +001 +002 +003 +004 +005 +006 +007 +008 ");
	CHECK_INT(b.receive_max, 8);
	CHECK_INT(state(&b), POLLER_FULL);
	eb_forget(&b);
	eb_pass(&b, 10 * NS_PER_S);
	CHECK_INT(b.asked[DRIVER_RECEIVE], 0);
	eb_close(&b);
}

TEST(started_is_told_after_the_first_poll)
{
	struct eb b;

	eb_init(&b);
	eb_hold(&b, DRIVER_RECEIVE);
	eb_start(&b);
	CHECK_INT(b.started, 0);
	eb_let(&b, DRIVER_RECEIVE);
	eb_run(&b);
	CHECK_INT(b.started, 1);
	eb_close(&b);
}

TEST(a_failed_first_poll_is_told_too)
{
	struct eb b;

	eb_init(&b);
	eb_fail(&b, DRIVER_RECEIVE, -EACCES, 1);
	eb_start(&b);
	CHECK_INT(b.started, 1);
	CHECK_INT(b.start_err, -EACCES);
	CHECK_INT(state(&b), POLLER_OFFLINE);
	eb_close(&b);
}

TEST(asks_again_only_with_a_good_part_free)
{
	struct eb b;

	eb_init(&b);
	eb_put_many(&b, 1, 20);
	eb_start(&b);
	eb_forget(&b);
	take(&b, "001");
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_RECEIVE], 0);
	take(&b, "002");
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_RECEIVE], 1);
	CHECK_INT(b.receive_max, 2);
	CHECK_STR(eb_ready(&b), "003 004 005 006 007 008 009 010 ");
	eb_close(&b);
}

TEST(a_window_of_one_goes_on)
{
	struct eb b;

	eb_init(&b);
	b.cfg.window = 1;
	eb_put_many(&b, 1, 3);
	eb_start(&b);
	CHECK_STR(eb_ready(&b), "001 ");
	consume(&b, "001");
	eb_run(&b);
	CHECK_STR(eb_ready(&b), "002 ");
	eb_close(&b);
}

TEST(bytes_bound_it_as_well)
{
	struct eb b;

	eb_init(&b);
	b.cfg.window_bytes = 1000;
	eb_put_many(&b, 1, 4);
	eb_resize(eb_stored(&b, "001"), 600);
	eb_resize(eb_stored(&b, "002"), 300);
	eb_resize(eb_stored(&b, "003"), 300);
	eb_start(&b);
	/* One more than fits is taken at most, not one more for each poll. */
	CHECK_STR(eb_ready(&b), "001 002 003 ");
	CHECK_INT(state(&b), POLLER_FULL);
	eb_forget(&b);
	take(&b, "002");
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_RECEIVE], 0);
	take(&b, "001");
	eb_run(&b);
	CHECK_STR(eb_ready(&b), "003 004 ");
	eb_close(&b);
}

TEST(one_larger_than_the_window_is_held)
{
	struct eb b;

	eb_init(&b);
	b.cfg.window_bytes = 100;
	eb_put_many(&b, 1, 2);
	eb_resize(eb_stored(&b, "001"), 900);
	eb_start(&b);
	CHECK_STR(eb_ready(&b), "001 ");
	consume(&b, "001");
	eb_run(&b);
	CHECK_STR(eb_ready(&b), "002 ");
	eb_close(&b);
}

TEST(claims_bound_it_too)
{
	struct eb b;
	int n = 0;

	eb_init(&b);
	b.cfg.window = 1;
	eb_put_many(&b, 1, 40);
	eb_start(&b);
	for (; n < 20 && TAILQ_FIRST(engine_ready(b.e)); n++) {
		take(&b, TAILQ_FIRST(engine_ready(b.e))->d.id);
		eb_run(&b);
	}
	CHECK_INT(n, 17); /* with 16 it asks no more, and had one */
	CHECK_INT(state(&b), POLLER_FULL);
	CHECK_INT(engine_remove(b.e, eb_find(&b, "004"), me(&b)), 0);
	eb_run(&b);
	CHECK_STR(eb_ready(&b), "");
	CHECK_INT(engine_remove(b.e, eb_find(&b, "005"), me(&b)), 0);
	eb_run(&b);
	CHECK_STR(eb_ready(&b), "018 ");
	eb_close(&b);
}

TEST(one_that_comes_back_has_its_old_place)
{
	struct eb b;
	struct message *m;

	eb_init(&b);
	eb_put_many(&b, 1, 4);
	eb_start(&b);
	m = take(&b, "002");
	CHECK_INT(engine_release(b.e, m, 0), 0);
	eb_pass(&b, NS_PER_S);
	CHECK_STR(eb_ready(&b), "001 002 003 004 ");
	CHECK_INT(eb_find(&b, "002")->d.attempts, 1);
	CHECK_INT(eb_find(&b, "002")->d.dequeue_count, 2);
	eb_close(&b);
}

TEST(says_when_there_is_something_to_read)
{
	struct eb b;

	eb_init(&b);
	eb_start(&b);
	CHECK_STR(eb_told(&b), "");
	eb_put_many(&b, 1, 2);
	engine_poll_now(b.e);
	eb_run(&b);
	CHECK_STR(eb_told(&b), "ready:1 +001 +002 ");
	consume(&b, "001");
	CHECK_STR(eb_told(&b), "ready:1 +001 +002 ");
	consume(&b, "002");
	CHECK_STR(eb_told(&b), "ready:1 +001 +002 ready:0 ");
	eb_close(&b);
}

/* ---- polls ---- */

TEST(an_empty_queue_is_asked_ever_more_seldom)
{
	struct eb b;
	struct engine_stats s;

	eb_init(&b);
	eb_start(&b);
	eb_pass(&b, 15 * NS_PER_S); /* at 0, 1, 3, 7, 15 */
	CHECK_INT(b.asked[DRIVER_RECEIVE], 5);
	engine_stats(b.e, &s);
	CHECK_INT(s.polls_empty_in_a_row, 5);
	CHECK_INT(s.backoff_interval_ns, 16 * NS_PER_S);
	CHECK_INT(s.next_poll_in_ns, 16 * NS_PER_S);
	CHECK_INT(state(&b), POLLER_WAITING);
	eb_put(&b, "1");
	engine_driver_changed(b.e);
	eb_run(&b);
	CHECK_STR(eb_ready(&b), "1 ");
	eb_pass(&b, NS_PER_S);
	CHECK_INT(b.asked[DRIVER_RECEIVE], 8); /* once more, and from the floor */
	eb_close(&b);
}

TEST(a_delayed_message_is_fetched_when_it_is_due)
{
	struct eb b;

	eb_init(&b);
	eb_put(&b, "1")->until_ns += 20 * NS_PER_S;
	eb_start(&b);
	eb_pass(&b, 19900 * NS_PER_MS);
	CHECK_STR(eb_ready(&b), "");
	eb_pass(&b, 200 * NS_PER_MS);
	CHECK_STR(eb_ready(&b), "1 ");
	eb_close(&b);
}

TEST(a_backend_that_is_away_is_told_and_retried)
{
	struct eb b;
	struct engine_stats s;

	eb_init(&b);
	eb_put(&b, "1");
	b.fault[DRIVER_RECEIVE].retry_after_ns = 10 * NS_PER_S;
	eb_fail(&b, DRIVER_RECEIVE, -EAGAIN, 1);
	eb_start(&b);
	engine_stats(b.e, &s);
	CHECK_INT(s.state, POLLER_OFFLINE);
	CHECK_INT(s.errors_total, 1);
	CHECK_STR(s.last_error, "receive: as told");
	engine_poll_now(b.e);
	eb_pass(&b, 9900 * NS_PER_MS);
	CHECK_INT(b.asked[DRIVER_RECEIVE], 1);
	eb_pass(&b, 200 * NS_PER_MS);
	CHECK_STR(eb_ready(&b), "1 ");
	eb_close(&b);
}

TEST(a_producer_never_receives)
{
	struct eb b;

	eb_init(&b);
	b.cfg.receives = false;
	eb_put_many(&b, 1, 3);
	eb_start(&b);
	CHECK_INT(b.started, 1);
	engine_poll_now(b.e);
	engine_driver_changed(b.e);
	eb_pass(&b, 100 * NS_PER_S);
	CHECK_INT(b.asked[DRIVER_RECEIVE], 0);
	CHECK_STR(eb_told(&b), "");
	eb_close(&b);
}

/* ---- leases of what nobody has claimed ---- */

TEST(unread_ones_are_renewed_at_half_life_together)
{
	struct eb b;
	const struct eb_settle *first, *last;

	eb_init(&b);
	eb_put_many(&b, 1, 4);
	eb_start(&b);
	eb_pass(&b, 3 * NS_PER_S);
	eb_put_many(&b, 5, 6);
	engine_poll_now(b.e);
	eb_run(&b);
	eb_forget(&b);
	eb_pass(&b, 11900 * NS_PER_MS);
	CHECK_INT(b.n_settles, 0);
	eb_pass(&b, 200 * NS_PER_MS);
	CHECK_INT(b.asked[DRIVER_SETTLE], 1);
	CHECK_INT(eb_settled(&b, SETTLE_RENEW, NULL), 6);
	first = eb_last(&b, SETTLE_RENEW, "001");
	last = eb_last(&b, SETTLE_RENEW, "006"); /* within an eighth: along with them */
	CHECK_INT(first->delay_ns, 30 * NS_PER_S);
	CHECK_INT(first->batch, last->batch);
	eb_close(&b);
}

TEST(alone_it_keeps_what_it_has)
{
	struct eb b;

	eb_init(&b);
	b.new_receipts = true;
	eb_put_many(&b, 1, 8);
	eb_start(&b);
	eb_forget(&b);
	eb_pass(&b, 5 * 30 * NS_PER_S + NS_PER_S);
	CHECK_INT(b.lapsed, 0);
	CHECK_STR(eb_told(&b), "");
	CHECK_STR(eb_ready(&b), "001 002 003 004 005 006 007 008 ");
	CHECK_INT(eb_settled(&b, SETTLE_RELEASE, NULL), 0);
	CHECK_INT(b.asked[DRIVER_SETTLE], 10); /* two for each period */
	CHECK_INT(eb_find(&b, "003")->d.dequeue_count, 1);
	eb_close(&b);
}

TEST(one_that_cannot_be_shown_is_given_back)
{
	struct eb b;

	eb_init(&b);
	eb_put_many(&b, 1, 2);
	b.not_shown = 1;
	eb_start(&b);
	CHECK_STR(eb_ready(&b), "002 ");
	CHECK_INT(eb_stored(&b, "001")->attempts, 0);
	eb_pass(&b, 5 * NS_PER_S);
	CHECK_STR(eb_ready(&b), "001 002 ");
	eb_close(&b);
}

TEST(an_unread_one_that_was_lost_leaves)
{
	struct eb b;
	struct engine_stats s;

	eb_init(&b);
	eb_put_many(&b, 1, 3);
	eb_start(&b);
	eb_forget(&b);
	eb_stored(&b, "002")->state = EB_GONE;
	eb_pass(&b, 16 * NS_PER_S);
	CHECK_STR(eb_told(&b), "-002 ");
	CHECK_STR(eb_ready(&b), "001 003 ");
	engine_stats(b.e, &s);
	CHECK_INT(s.leases_lost, 0); /* nobody had it */
	eb_close(&b);
}

/* ---- those who wait ---- */

struct waiting {
	struct engine_waiter w;
	int called;
	char got[16];
};

static void served(struct engine_waiter *w, struct message *m)
{
	struct waiting *x = w->arg;

	x->called++;
	snprintf(x->got, sizeof(x->got), "%s", m ? m->d.id : "nothing");
}

static int wait_for(struct eb *b, struct waiting *x, bool nonblock)
{
	*x = (struct waiting){.w = {.fn = served, .arg = x}};
	return engine_next(b->e, &x->w, me(b), nonblock);
}

static void arrive(struct eb *b, const char *id)
{
	eb_put(b, id);
	engine_poll_now(b->e);
	eb_run(b);
}

TEST(next_gives_the_oldest_at_once)
{
	struct eb b;
	struct waiting x;

	eb_init(&b);
	eb_put_many(&b, 1, 2);
	eb_start(&b);
	CHECK_INT(wait_for(&b, &x, false), 0);
	CHECK_INT(x.called, 1);
	CHECK_STR(x.got, "001");
	CHECK_STR(eb_in_flight(&b), "001 ");
	CHECK(eb_find(&b, "001")->claim);
	CHECK(engine_is_opener(eb_find(&b, "001"), me(&b)));
	CHECK_INT(wait_for(&b, &x, true), 0);
	CHECK_STR(x.got, "002");
	CHECK_INT(wait_for(&b, &x, true), -EAGAIN);
	CHECK_INT(x.called, 0);
	eb_close(&b);
}

TEST(first_come_first_served)
{
	struct eb b;
	struct waiting x[3];

	eb_init(&b);
	eb_start(&b);
	for (int i = 0; i < 3; i++)
		CHECK_INT(wait_for(&b, &x[i], false), 0);
	arrive(&b, "1");
	CHECK_INT(x[0].called, 1);
	CHECK_INT(x[1].called + x[2].called, 0);
	eb_put(&b, "2");
	arrive(&b, "3");
	CHECK_STR(x[0].got, "1");
	CHECK_STR(x[1].got, "2");
	CHECK_STR(x[2].got, "3");
	CHECK_STR(eb_ready(&b), "");
	eb_close(&b);
}

TEST(who_gave_up_gets_nothing)
{
	struct eb b;
	struct waiting x, y;

	eb_init(&b);
	eb_start(&b);
	CHECK_INT(wait_for(&b, &x, false), 0);
	CHECK_INT(wait_for(&b, &y, false), 0);
	engine_next_cancel(b.e, &x.w);
	engine_next_cancel(b.e, &x.w);
	arrive(&b, "1");
	CHECK_INT(x.called, 0);
	CHECK_STR(y.got, "1");
	eb_close(&b);
}

TEST(one_that_is_undone_goes_to_who_waits)
{
	struct eb b;
	struct waiting x;
	struct message *m;

	eb_init(&b);
	eb_put(&b, "1");
	eb_start(&b);
	m = eb_find(&b, "1");
	CHECK_INT(engine_claim(b.e, m, me(&b), false, true), 0);
	CHECK_INT(wait_for(&b, &x, false), 0);
	CHECK_INT(x.called, 0);
	engine_close(b.e, m);
	CHECK_STR(x.got, "1");
	CHECK_INT(m->state, MESSAGE_CLAIMED);
	eb_close(&b);
}

TEST(at_the_end_who_waits_gets_nothing)
{
	struct eb b;
	struct waiting x, y, z;

	eb_init(&b);
	eb_start(&b);
	CHECK_INT(wait_for(&b, &x, false), 0);
	CHECK_INT(wait_for(&b, &y, false), 0);
	engine_drain(b.e);
	CHECK_STR(x.got, "nothing");
	CHECK_STR(y.got, "nothing");
	CHECK_INT(wait_for(&b, &z, false), 0);
	CHECK_STR(z.got, "nothing");
	CHECK_INT(wait_for(&b, &z, true), 0);
	CHECK_STR(z.got, "nothing");
	eb_close(&b);
}
