/* SPDX-License-Identifier: MIT */
/* What the backend is told, when, and that nothing is forgotten. */
#include "engine_people.h"

static void setup(struct eb *b, unsigned n)
{
	eb_init(b);
	b->cfg.window = 400;
	b->ops.max_receive = 400;
	eb_put_many(b, 1, n);
	eb_start(b);
	eb_forget(b);
}

static void consume(struct eb *b, const char *id)
{
	CHECK_INT(engine_remove(b->e, take(b, id), me(b)), 0);
}

static void consume_all(struct eb *b)
{
	struct message *m;

	while ((m = TAILQ_FIRST(engine_ready(b->e))))
		consume(b, m->d.id);
}

static void check_all_gone(struct eb *b)
{
	struct eb_message *m;

	TAILQ_FOREACH (m, &b->messages, link)
		CHECK_INT(m->state, EB_GONE);
}

TEST(an_end_is_told_within_moments)
{
	struct eb b;

	setup(&b, 2);
	consume(&b, "001");
	CHECK_INT(b.n_settles, 0); /* rm does not wait for it */
	eb_pass(&b, 3 * NS_PER_MS);
	CHECK_INT(eb_settled(&b, SETTLE_DELETE, "001"), 1);
	CHECK_INT(eb_stored(&b, "001")->state, EB_GONE);
	eb_close(&b);
}

TEST(deletions_go_in_batches)
{
	struct eb b;

	setup(&b, 40);
	consume_all(&b);
	eb_pass(&b, 100 * NS_PER_MS);
	CHECK_INT(eb_settled(&b, SETTLE_DELETE, NULL), 40);
	CHECK_INT(b.asked[DRIVER_SETTLE], 1);
	CHECK_INT(b.n_settles, 40); /* and no claim record was needed */
	check_all_gone(&b);
	eb_close(&b);
}

TEST(many_deletions_do_not_wait)
{
	struct eb b;

	setup(&b, 300);
	consume_all(&b);
	CHECK(b.asked[DRIVER_SETTLE] >= 1);
	eb_pass(&b, 100 * NS_PER_MS);
	CHECK_INT(eb_settled(&b, SETTLE_DELETE, NULL), 300);
	CHECK(b.asked[DRIVER_SETTLE] <= 5);
	check_all_gone(&b);
	eb_close(&b);
}

TEST(deletions_that_fail_are_retried_ever_more_seldom)
{
	struct eb b;
	struct engine_stats s;

	setup(&b, 5);
	eb_fail(&b, DRIVER_SETTLE, -EAGAIN, 6);
	consume_all(&b);
	eb_pass(&b, NS_PER_S); /* within it after 0, .1, .3, .7; jitter 20 % */
	CHECK(b.asked[DRIVER_SETTLE] >= 3 && b.asked[DRIVER_SETTLE] <= 5);
	engine_stats(b.e, &s);
	CHECK_STR(s.last_error, "settle: as told");
	eb_pass(&b, 10 * NS_PER_S);
	CHECK_INT(b.asked[DRIVER_SETTLE], 7);
	CHECK_INT(eb_settled(&b, SETTLE_DELETE, NULL), 35);
	check_all_gone(&b);
	eb_close(&b);
}

TEST(a_hint_is_obeyed)
{
	struct eb b;

	setup(&b, 1);
	b.fault[DRIVER_SETTLE].retry_after_ns = 20 * NS_PER_S;
	eb_fail(&b, DRIVER_SETTLE, -EAGAIN, 1);
	consume_all(&b);
	eb_pass(&b, 19 * NS_PER_S);
	CHECK_INT(b.asked[DRIVER_SETTLE], 1);
	eb_pass(&b, 2 * NS_PER_S);
	check_all_gone(&b);
	eb_close(&b);
}

TEST(a_hint_without_end_is_not_now)
{
	struct eb b;

	setup(&b, 1);
	b.fault[DRIVER_SETTLE].retry_after_ns = CLOCK_NEVER;
	eb_fail(&b, DRIVER_SETTLE, -EAGAIN, 1);
	consume_all(&b);
	eb_pass(&b, 20 * NS_PER_S);
	CHECK_INT(b.asked[DRIVER_SETTLE], 1);
	eb_close(&b);
}

TEST(one_of_a_batch_that_failed_is_retried_alone)
{
	struct eb b;

	setup(&b, 5);
	eb_fail_item(&b, SETTLE_DELETE, "003", -EIO, 2);
	consume_all(&b);
	eb_pass(&b, 5 * NS_PER_S);
	CHECK_INT(eb_settled(&b, SETTLE_DELETE, NULL), 7);
	CHECK_INT(eb_settled(&b, SETTLE_DELETE, "003"), 3);
	check_all_gone(&b);
	eb_close(&b);
}

/* Under a backend that fails now and then, for a long time. */
TEST(none_is_forgotten)
{
	struct eb b;
	unsigned seed = 4711;

	setup(&b, 300);
	for (int i = 0; i < 300; i++) {
		struct message *m = TAILQ_FIRST(engine_ready(b.e));

		seed = seed * 1103515245 + 12345;
		if (seed >> 16 & 1)
			eb_fail(&b, DRIVER_SETTLE, -EAGAIN, 1);
		if (seed >> 17 & 1)
			eb_fail_item(&b, SETTLE_DELETE, m->d.id, -EIO, 1);
		consume(&b, m->d.id);
		eb_pass(&b, (seed >> 20 & 15) * NS_PER_MS);
	}
	eb_pass(&b, 100 * NS_PER_S);
	check_all_gone(&b);
	eb_close(&b);
}

TEST(gone_already_is_as_good_as_deleted)
{
	struct eb b;
	struct engine_stats s;

	setup(&b, 1);
	eb_stored(&b, "001")->state = EB_GONE;
	consume(&b, "001");
	eb_pass(&b, NS_PER_S);
	CHECK_INT(eb_settled(&b, SETTLE_DELETE, "001"), 1);
	engine_stats(b.e, &s);
	CHECK_INT(s.leases_lost, 0);
	CHECK_INT(s.errors_total, 0);
	CHECK_INT(s.handled_total, 1);
	eb_close(&b);
}

/* ---- claim records ---- */

TEST(a_claim_is_recorded_once_it_lasts)
{
	struct eb b;

	setup(&b, 1);
	take(&b, "001");
	eb_pass(&b, 48 * NS_PER_MS);
	CHECK_INT(b.n_settles, 0);
	eb_pass(&b, 4 * NS_PER_MS);
	CHECK_INT(eb_settled(&b, SETTLE_CLAIM, "001"), 1);
	CHECK(eb_stored(&b, "001")->record[0]);
	eb_pass(&b, NS_PER_S);
	CHECK_INT(b.n_settles, 1);
	eb_close(&b);
}

TEST(an_undone_claim_is_unrecorded)
{
	struct eb b;
	struct message *m;

	setup(&b, 1);
	m = open_as(&b, "001", getpid());
	eb_pass(&b, 60 * NS_PER_MS);
	CHECK(eb_stored(&b, "001")->record[0]);
	engine_close(b.e, m);
	eb_pass(&b, 60 * NS_PER_MS);
	CHECK_INT(eb_settled(&b, SETTLE_UNCLAIM, "001"), 1);
	CHECK_STR(eb_stored(&b, "001")->record, "");
	CHECK_INT(eb_stored(&b, "001")->state, EB_LEASED);
	eb_close(&b);
}

TEST(a_record_that_failed_is_not_told_after_the_undo)
{
	struct eb b;
	struct message *m;

	setup(&b, 1);
	m = open_as(&b, "001", getpid());
	eb_hold(&b, DRIVER_SETTLE);
	eb_pass(&b, 60 * NS_PER_MS);
	CHECK_INT(eb_settled(&b, SETTLE_CLAIM, "001"), 1);
	engine_close(b.e, m);
	eb_fail(&b, DRIVER_SETTLE, -EAGAIN, 1);
	eb_let(&b, DRIVER_SETTLE);
	eb_pass(&b, NS_PER_S);
	CHECK_INT(eb_settled(&b, SETTLE_CLAIM, "001"), 1);
	CHECK_INT(m->state, MESSAGE_READY);
	CHECK_STR(eb_stored(&b, "001")->record, "");
	eb_close(&b);
}

TEST(a_claim_after_an_undo_that_failed_keeps_its_record)
{
	struct eb b;
	struct message *m;

	setup(&b, 1);
	m = open_as(&b, "001", getpid());
	eb_pass(&b, 60 * NS_PER_MS);
	engine_close(b.e, m);
	eb_hold(&b, DRIVER_SETTLE);
	eb_pass(&b, 60 * NS_PER_MS);
	CHECK_INT(eb_settled(&b, SETTLE_UNCLAIM, "001"), 1);
	take(&b, "001");
	eb_fail(&b, DRIVER_SETTLE, -EAGAIN, 1);
	eb_let(&b, DRIVER_SETTLE);
	eb_pass(&b, NS_PER_S);
	CHECK_INT(m->state, MESSAGE_CLAIMED);
	CHECK(eb_stored(&b, "001")->record[0]);
	eb_close(&b);
}

/* ---- until it is durable ---- */

struct syncing {
	struct engine_sync s;
	int called, err;
};

static void synced(struct engine_sync *s, int err)
{
	struct syncing *x = s->arg;

	x->called++;
	x->err = err;
}

static void start_sync(struct eb *b, struct syncing *x)
{
	*x = (struct syncing){.s = {.fn = synced, .arg = x}};
	engine_sync(b->e, &x->s);
}

TEST(a_sync_with_nothing_to_do_asks_the_driver)
{
	struct eb b;
	struct syncing x;

	setup(&b, 1);
	start_sync(&b, &x);
	CHECK_INT(x.called, 0);
	eb_run(&b);
	CHECK_INT(x.called, 1);
	CHECK_INT(x.err, 0);
	CHECK_INT(b.asked[DRIVER_SYNC], 1);
	eb_close(&b);
}

TEST(a_sync_waits_for_deletions_and_sends)
{
	struct eb b;
	struct syncing x;
	struct draft *d;

	setup(&b, 2);
	eb_hold(&b, DRIVER_SETTLE);
	eb_hold(&b, DRIVER_SEND);
	consume(&b, "001");
	d = draft_create(b.e, "x", me(&b), false);
	CHECK(d);
	draft_close(b.e, d);
	start_sync(&b, &x);
	eb_run(&b);
	CHECK_INT(eb_settled(&b, SETTLE_DELETE, "001"), 1); /* at once, for it */
	CHECK_INT(b.asked[DRIVER_SYNC], 0);
	consume(&b, "002"); /* later than it */
	eb_hold(&b, DRIVER_SYNC);
	eb_let(&b, DRIVER_SEND);
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_SYNC], 0);
	eb_let(&b, DRIVER_SETTLE);
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_SYNC], 1);
	CHECK_INT(x.called, 0);
	eb_let(&b, DRIVER_SYNC);
	eb_run(&b);
	CHECK_INT(x.called, 1);
	CHECK_INT(x.err, 0);
	CHECK_STR(eb_sent(&b), "x ");
	eb_close(&b);
}

static void write_file(struct eb *b, const char *name, const char *text)
{
	struct draft *d = draft_create(b->e, name, me(b), false);

	CHECK(d);
	CHECK_INT(draft_write(b->e, d, text, strlen(text), 0), 0);
	draft_close(b->e, d);
}

TEST(a_sync_waits_for_a_send_alone)
{
	struct eb b;
	struct syncing x;

	setup(&b, 0);
	eb_hold(&b, DRIVER_DRAFT_SEND);
	write_file(&b, "x", "one");
	eb_run(&b);
	start_sync(&b, &x);
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_SYNC], 0);
	eb_let(&b, DRIVER_DRAFT_SEND);
	eb_run(&b);
	CHECK_INT(x.called, 1);
	CHECK_INT(x.err, 0);
	eb_close(&b);
}

/* It was closed: it is on its way, though not in the outbox yet. */
TEST(a_sync_waits_for_what_is_still_being_stored)
{
	struct eb b;
	struct syncing x;

	setup(&b, 0);
	eb_hold(&b, DRIVER_DRAFT_PUT);
	write_file(&b, "x", "one");
	start_sync(&b, &x);
	eb_run(&b);
	CHECK_INT(x.called, 0);
	eb_let(&b, DRIVER_DRAFT_PUT);
	eb_run(&b);
	CHECK_STR(eb_sent(&b), "x ");
	CHECK_INT(x.called, 1);
	CHECK_INT(x.err, 0);
	eb_close(&b);
}

TEST(a_sync_does_not_wait_for_what_came_later)
{
	struct eb b;
	struct syncing x;

	setup(&b, 2);
	consume(&b, "001");
	start_sync(&b, &x);
	eb_hold(&b, DRIVER_SETTLE); /* the first is on its way already */
	consume(&b, "002");
	eb_pass(&b, 100 * NS_PER_MS);
	CHECK_INT(eb_settled(&b, SETTLE_DELETE, "002"), 1);
	CHECK_INT(eb_stored(&b, "002")->state, EB_LEASED);
	CHECK_INT(x.called, 1);
	CHECK_INT(x.err, 0);
	eb_close(&b);
}

TEST(a_backend_that_fails_is_told_to_who_syncs)
{
	struct eb b;
	struct syncing x, y;

	setup(&b, 1);
	eb_fail(&b, DRIVER_SETTLE, -EAGAIN, 1);
	consume(&b, "001");
	start_sync(&b, &x);
	eb_run(&b);
	CHECK_INT(x.called, 1);
	CHECK_INT(x.err, -EIO);
	eb_pass(&b, NS_PER_S);
	check_all_gone(&b); /* all the same */
	eb_fail(&b, DRIVER_SYNC, -EIO, 1);
	start_sync(&b, &y);
	eb_run(&b);
	CHECK_INT(y.err, -EIO);
	CHECK_INT(x.called, 1);
	eb_close(&b);
}

TEST(a_send_that_fails_is_told_to_who_syncs)
{
	struct eb b;
	struct syncing x;
	struct draft *d;

	setup(&b, 0);
	eb_fail(&b, DRIVER_SEND, -EAGAIN, 2);
	d = draft_create(b.e, "x", me(&b), false);
	draft_close(b.e, d);
	start_sync(&b, &x);
	eb_run(&b);
	CHECK_INT(x.called, 1);
	CHECK_INT(x.err, -EIO);
	eb_close(&b);
}

TEST(who_stops_waiting_is_not_called)
{
	struct eb b;
	struct syncing x, y;

	setup(&b, 1);
	consume(&b, "001");
	start_sync(&b, &x);
	start_sync(&b, &y);
	engine_sync_cancel(b.e, &x.s);
	engine_sync_cancel(b.e, &x.s);
	eb_run(&b);
	CHECK_INT(x.called, 0);
	CHECK_INT(y.called, 1);
	eb_close(&b);
}
