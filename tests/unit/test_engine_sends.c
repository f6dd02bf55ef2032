/* SPDX-License-Identifier: MIT */
/* The outbox: in order, retried, over a restart; and who shares a draft. */
#include "backend/engine/outbox.h"

#include "engine_people.h"

static void setup(struct eb *b)
{
	eb_init(b);
	b->cfg.receives = false;
	eb_start(b);
	eb_forget(b);
}

static struct draft *write_file(struct eb *b, const char *name)
{
	struct draft *d = draft_create(b->e, name, me(b), false);

	CHECK(d);
	CHECK_INT(draft_write(b->e, d, name, strlen(name), 0), 0);
	draft_close(b->e, d);
	return d;
}

TEST(sent_in_the_order_of_the_closes)
{
	struct eb b;

	setup(&b);
	write_file(&b, "b");
	write_file(&b, "a");
	write_file(&b, "c");
	eb_run(&b);
	CHECK_STR(eb_sent(&b), "b a c ");
	CHECK_STR(eb_told(&b), "sent:b sent:a sent:c ");
	eb_close(&b);
}

TEST(retried_in_the_same_order)
{
	struct eb b;
	struct engine_stats s;

	setup(&b);
	eb_fail(&b, DRIVER_DRAFT_SEND, -EAGAIN, 2);
	write_file(&b, "b");
	write_file(&b, "a");
	eb_run(&b);
	write_file(&b, "c"); /* does not overtake them */
	eb_pass(&b, 100 * NS_PER_MS);
	engine_stats(b.e, &s);
	CHECK_INT(s.outbox, 3);
	CHECK_STR(s.last_error, "sending: as told");
	CHECK_STR(eb_sent(&b), "");
	CHECK_INT(TAILQ_FIRST(engine_outbox(b.e))->state, DRAFT_SENDING);
	eb_pass(&b, 5 * NS_PER_S);
	CHECK_STR(eb_sent(&b), "b a c ");
	eb_close(&b);
}

static void setup_far(struct eb *b)
{
	eb_init(b);
	b->ops.caps |= DRIVER_FAR;
	b->cfg.receives = false;
	eb_start(b);
}

TEST(one_that_is_refused_holds_nobody_up)
{
	for (int far = 0; far < 2; far++) {
		struct eb b;

		if (far)
			setup_far(&b);
		else
			setup(&b);
		eb_fail(&b, DRIVER_DRAFT_SEND, -EINVAL, 1);
		write_file(&b, "bad");
		write_file(&b, "good");
		eb_run(&b);
		CHECK_STR(eb_sent(&b), "good ");
		eb_close(&b);
	}
}

TEST(one_that_is_refused_ends_an_outage)
{
	for (int far = 0; far < 2; far++) {
		struct eb b;

		if (far)
			setup_far(&b);
		else
			setup(&b);
		eb_fail(&b, DRIVER_DRAFT_SEND, -EAGAIN, far ? 1 : 2);
		write_file(&b, "bad");
		write_file(&b, "good");
		eb_run(&b);
		eb_fail(&b, DRIVER_DRAFT_SEND, -EINVAL, 1);
		eb_pass(&b, 100 * NS_PER_S);
		CHECK_STR(eb_sent(&b), "good ");
		eb_close(&b);
	}
}

TEST(retried_it_is_sent_once)
{
	struct eb b;
	struct draft *d;

	setup(&b);
	eb_fail(&b, DRIVER_SEND, -EAGAIN, 1);
	eb_fail(&b, DRIVER_DRAFT_SEND, -EAGAIN, 1);
	d = draft_create(b.e, "empty", me(&b), false);
	CHECK(d);
	draft_close(b.e, d);
	write_file(&b, "x");
	eb_pass(&b, 10 * NS_PER_S);
	CHECK_STR(eb_sent(&b), "empty x ");
	CHECK_STR(eb_told(&b), "sent:empty sent:x gone:empty gone:x ");
	CHECK_INT(b.asked[DRIVER_SEND], 2);
	CHECK_INT(b.asked[DRIVER_DRAFT_SEND], 2);
	eb_close(&b);
}

TEST(many_that_fail_together_are_one_failure)
{
	struct eb b;
	char name[16];

	setup(&b);
	eb_fail(&b, DRIVER_DRAFT_SEND, -EAGAIN, 8);
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "%d", i);
		write_file(&b, name);
	}
	eb_run(&b);
	CHECK_STR(eb_sent(&b), "");
	eb_pass(&b, 1300 * NS_PER_MS);
	CHECK_STR(eb_sent(&b), "0 1 2 3 4 5 6 7 ");
	eb_close(&b);
}

TEST(a_backend_that_stays_away_is_asked_ever_more_seldom)
{
	struct eb b;

	setup(&b);
	eb_fail(&b, DRIVER_DRAFT_SEND, -EAGAIN, 1000);
	write_file(&b, "a");
	eb_pass(&b, 600 * NS_PER_S);
	CHECK(b.asked[DRIVER_DRAFT_SEND] >= 12); /* 6 to the ceiling, then one a minute */
	CHECK(b.asked[DRIVER_DRAFT_SEND] <= 18);
	b.fault[DRIVER_DRAFT_SEND].times = 0;
	eb_pass(&b, 61 * NS_PER_S);
	CHECK_STR(eb_sent(&b), "a ");
	eb_close(&b);
}

TEST(a_sync_does_not_wait_for_the_back_off)
{
	struct eb b;
	struct engine_sync s = {.fn = NULL};

	setup(&b);
	eb_fail(&b, DRIVER_DRAFT_SEND, -EAGAIN, 1);
	write_file(&b, "a");
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_DRAFT_SEND], 1);
	engine_sync(b.e, &s);
	engine_sync_cancel(b.e, &s);
	eb_run(&b);
	CHECK_STR(eb_sent(&b), "a ");
	eb_close(&b);
}

TEST(an_empty_one_outlasts_a_queue_that_is_gone)
{
	struct eb b;
	struct draft *d;

	setup(&b);
	eb_fail(&b, DRIVER_SEND, -ENOENT, 1);
	d = draft_create(b.e, "a", me(&b), false);
	draft_close(b.e, d);
	eb_run(&b);
	CHECK_STR(eb_told(&b), ""); /* it was not accepted by anyone */
	eb_pass(&b, 2 * NS_PER_S);
	CHECK(strstr(eb_sent(&b), "a "));
	eb_close(&b);
}

TEST(one_in_the_outbox_cannot_be_taken_back)
{
	struct eb b;
	struct draft *d;

	setup(&b);
	eb_hold(&b, DRIVER_DRAFT_SEND);
	d = write_file(&b, "a");
	eb_run(&b);
	draft_discard(b.e, d);
	CHECK_INT(d->state, DRAFT_SENDING);
	eb_let(&b, DRIVER_DRAFT_SEND);
	eb_run(&b);
	CHECK_STR(eb_sent(&b), "a ");
	eb_close(&b);
}

TEST(a_sent_one_is_only_forgotten_by_rm)
{
	struct eb b;
	struct draft *d;

	setup(&b);
	d = write_file(&b, "x");
	eb_run(&b);
	draft_discard(b.e, d);
	eb_pass(&b, 5 * NS_PER_S);
	CHECK_STR(eb_told(&b), "sent:x ");
	CHECK_INT(b.asked[DRIVER_DRAFT_DROP], 0);
	CHECK_INT(TAILQ_FIRST(&b.messages)->state, EB_WAITING);
	eb_close(&b);
}

TEST(drafts_and_outbox_outlast_a_crash)
{
	struct eb b;
	struct draft *d;

	setup(&b);
	d = draft_create(b.e, ".kept", me(&b), true);
	CHECK_INT(draft_write(b.e, d, "one", 3, 0), 0);
	draft_close(b.e, d);
	eb_run(&b);
	eb_fail(&b, DRIVER_DRAFT_SEND, -EAGAIN, 1);
	write_file(&b, "a");
	eb_run(&b);
	TAILQ_LAST(&b.drafts, eb_drafts)->outbox = true; /* as a driver knows */
	eb_crash(&b);
	CHECK(strstr(eb_told(&b), "found:.kept "));
	CHECK(strstr(eb_told(&b), "found:a "));
	CHECK_STR(eb_sent(&b), "a ");
	d = TAILQ_FIRST(engine_drafts(b.e));
	CHECK(d && !TAILQ_NEXT(d, link));
	CHECK_STR(d->name, ".kept");
	CHECK_INT(d->state, DRAFT_KEPT);
	CHECK_INT(draft_size(d), 3);
	CHECK_INT(d->creators.n, 0);
	draft_open(d);
	CHECK_INT(draft_write(b.e, d, "two", 3, 3), 0);
	CHECK_INT(draft_size(d), 6);
	draft_close(b.e, d);
	eb_run(&b);
	CHECK_INT(TAILQ_FIRST(&b.drafts)->body->len, 6);
	CHECK(memcmp(TAILQ_FIRST(&b.drafts)->body->data, "onetwo", 6) == 0);
	CHECK_INT(draft_rename(b.e, d, "kept", false), 0);
	eb_run(&b);
	CHECK_STR(eb_sent(&b), "a kept ");
	eb_close(&b);
}

/* ---- whose it is ---- */

TEST(relatives_share_a_draft)
{
	struct eb b;
	struct child shell = spawn(obey), stranger = spawn(obey_as_leader);
	pid_t first, second;
	struct draft *d;

	setup(&b);
	first = run(&shell);
	d = draft_create(b.e, "x", who(&b, first), false);
	CHECK(draft_shared_with(b.e, d, who(&b, first)));
	CHECK(draft_shared_with(b.e, d, who(&b, shell.pid)));
	CHECK(!draft_shared_with(b.e, d, who(&b, run(&stranger))));
	end_command(&b, &shell, 'e');
	second = run(&shell); /* { cmd1; cmd2; } >> x */
	CHECK(draft_shared_with(b.e, d, who(&b, second)));
	b.cfg.owned = false; /* that is about claims */
	engine_configure(b.e, &b.cfg);
	CHECK(!draft_shared_with(b.e, d, who(&b, stranger.pid)));
	kill_and_reap(&shell);
	kill_and_reap(&stranger);
	eb_close(&b);
}

TEST(an_orphaned_draft_is_everybodys)
{
	struct eb b;
	struct child leader = spawn(obey_as_leader), stranger = spawn(obey_as_leader);
	struct draft *d;
	pid_t cat;

	setup(&b);
	cat = run(&leader);
	d = draft_create(b.e, "x", who(&b, cat), false);
	CHECK(!draft_shared_with(b.e, d, who(&b, stranger.pid)));
	end_command(&b, &leader, 'e');
	kill_and_reap(&leader);
	CHECK(draft_shared_with(b.e, d, who(&b, stranger.pid)));
	kill_and_reap(&stranger);
	eb_close(&b);
}
