/* SPDX-License-Identifier: MIT */
/* The other mounts of a queue: what they are told, and what they are given. */
#include "engine_people.h"

static void setup(struct eb *b, unsigned n, unsigned peers)
{
	eb_init(b);
	b->n_peers = peers;
	eb_put_many(b, 1, n);
	eb_start(b);
	eb_forget(b);
}

/* Another mount is hungry, and read something NS ago (0: never). */
static void hunger(struct eb *b, int64_t consumed_ns)
{
	b->others.hungry = true;
	b->others.consumed_ns = consumed_ns ? clock_wall() - consumed_ns : 0;
	engine_driver_changed(b->e);
	eb_run(b);
}

static unsigned n_ready(struct eb *b)
{
	struct engine_stats s;

	engine_stats(b->e, &s);
	return s.ready;
}

TEST(hunger_is_told_when_it_changes)
{
	struct eb b;

	setup(&b, 0, 1);
	CHECK(b.mine.hungry);
	eb_pass(&b, 100 * NS_PER_S);
	CHECK_INT(b.asked[DRIVER_PEERS], 0);
	eb_put_many(&b, 1, 2);
	engine_poll_now(b.e);
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_PEERS], 1);
	CHECK(!b.mine.hungry);
	take(&b, "001");
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_PEERS], 1);
	take(&b, "002");
	eb_pass(&b, NS_PER_S);
	CHECK(b.mine.hungry);
	CHECK(b.mine.consumed_ns > 0);
	CHECK_INT(b.asked[DRIVER_PEERS], 2);
	eb_close(&b);
}

TEST(alone_it_tells_nobody)
{
	struct eb b;

	setup(&b, 0, 0);
	for (int i = 0; i < 3; i++) {
		eb_put(&b, "1")->id[0] = (char)('1' + i);
		engine_poll_now(b.e);
		eb_run(&b);
		take(&b, TAILQ_FIRST(engine_ready(b.e))->d.id);
		eb_pass(&b, 100 * NS_PER_S);
	}
	CHECK_INT(b.asked[DRIVER_PEERS], 0);
	eb_close(&b);
}

TEST(half_is_given_to_one_that_is_hungry)
{
	struct eb b;

	setup(&b, 5, 1);
	hunger(&b, 0);
	CHECK_STR(eb_told(&b), "-005 -004 -003 ");
	eb_pass(&b, 20 * NS_PER_MS);
	CHECK_INT(eb_settled(&b, SETTLE_RELEASE, NULL), 3);
	CHECK_INT(eb_last(&b, SETTLE_RELEASE, "004")->attempts, 0);
	CHECK_INT(eb_last(&b, SETTLE_RELEASE, "004")->delay_ns, 0);
	CHECK_STR(eb_ready(&b), "001 002 ");
	eb_close(&b);
}

TEST(all_are_given_to_one_that_reads)
{
	struct eb b;

	setup(&b, 5, 1);
	eb_pass(&b, 31 * NS_PER_S);
	hunger(&b, NS_PER_S);
	CHECK_STR(eb_ready(&b), "");
	eb_pass(&b, 20 * NS_PER_MS);
	CHECK_INT(eb_settled(&b, SETTLE_RELEASE, NULL), 5);
	eb_close(&b);
}

TEST(nothing_is_given_to_who_is_not_hungry)
{
	struct eb b;

	setup(&b, 5, 1);
	engine_driver_changed(b.e);
	eb_pass(&b, NS_PER_S);
	CHECK_STR(eb_ready(&b), "001 002 003 004 005 ");
	CHECK_STR(eb_told(&b), "");
	eb_close(&b);
}

TEST(what_is_claimed_is_not_given)
{
	struct eb b;

	setup(&b, 2, 1);
	take(&b, "001");
	hunger(&b, 0);
	eb_pass(&b, 20 * NS_PER_MS);
	CHECK_STR(eb_in_flight(&b), "001 ");
	CHECK_INT(eb_settled(&b, SETTLE_RELEASE, "001"), 0);
	CHECK_STR(eb_ready(&b), "");
	eb_close(&b);
}

/* Else it would take them back before the other asks. */
TEST(who_gave_lets_the_other_poll_first)
{
	struct eb b;

	setup(&b, 5, 1);
	hunger(&b, 0);
	b.others.hungry = false;
	eb_forget(&b);
	eb_pass(&b, 900 * NS_PER_MS);
	engine_driver_changed(b.e); /* what was given back is a change, too */
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_RECEIVE], 0);
	CHECK_INT(n_ready(&b), 2);
	eb_pass(&b, 200 * NS_PER_MS);
	CHECK(b.asked[DRIVER_RECEIVE] > 0);
	CHECK_INT(n_ready(&b), 5); /* nobody wanted them */
	eb_close(&b);
}

TEST(who_gave_all_lets_the_other_poll_first)
{
	struct eb b;

	setup(&b, 5, 1);
	eb_pass(&b, 31 * NS_PER_S);
	hunger(&b, NS_PER_S);
	CHECK_INT(n_ready(&b), 0);
	eb_forget(&b);
	eb_pass(&b, 900 * NS_PER_MS);
	engine_driver_changed(b.e);
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_RECEIVE], 0);
	eb_close(&b);
}

TEST(a_reader_ends_the_holding_off)
{
	struct eb b;

	setup(&b, 2, 1);
	hunger(&b, 0);
	b.others.hungry = false;
	eb_pass(&b, 20 * NS_PER_MS);
	eb_forget(&b);
	take(&b, "001");
	engine_driver_changed(b.e);
	eb_run(&b);
	CHECK_STR(eb_ready(&b), "002 ");
	eb_close(&b);
}

TEST(so_does_who_says_poll)
{
	struct eb b;

	setup(&b, 2, 1);
	hunger(&b, 0);
	b.others.hungry = false;
	eb_pass(&b, 20 * NS_PER_MS);
	CHECK_INT(n_ready(&b), 1);
	engine_poll_now(b.e);
	eb_run(&b);
	CHECK_INT(n_ready(&b), 2);
	eb_close(&b);
}

TEST(who_gave_its_last_is_hungry_later)
{
	struct eb b;

	setup(&b, 1, 1);
	b.cfg.backoff.floor_ns = 60 * NS_PER_S; /* no poll makes it look */
	engine_configure(b.e, &b.cfg);
	eb_run(&b);
	hunger(&b, 0);
	eb_stored(&b, "001")->state = EB_GONE; /* the other took it */
	b.others.hungry = false;
	eb_forget(&b);
	eb_pass(&b, 29 * NS_PER_S);
	CHECK(!b.mine.hungry);
	eb_pass(&b, 2 * NS_PER_S);
	CHECK(b.mine.hungry);
	eb_close(&b);
}

static void ignore(struct engine_waiter *w, struct message *m)
{
	(void)w;
	(void)m;
}

TEST(a_reader_who_waits_makes_hungry_at_once)
{
	struct eb b;
	struct engine_waiter w = {.fn = ignore};

	setup(&b, 1, 1);
	hunger(&b, 0);
	eb_stored(&b, "001")->state = EB_GONE;
	b.others.hungry = false;
	eb_pass(&b, 5 * NS_PER_S);
	CHECK(!b.mine.hungry);
	CHECK_INT(engine_next(b.e, &w, me(&b), false), 0);
	eb_run(&b);
	CHECK(b.mine.hungry);
	engine_next_cancel(b.e, &w);
	eb_close(&b);
}

TEST(paused_it_is_not_hungry)
{
	struct eb b;

	setup(&b, 0, 1);
	CHECK(b.mine.hungry);
	engine_pause(b.e, true);
	engine_driver_changed(b.e);
	eb_run(&b);
	CHECK(!b.mine.hungry);
	engine_pause(b.e, false);
	eb_pass(&b, NS_PER_S);
	CHECK(b.mine.hungry);
	eb_close(&b);
}

TEST(peers_that_cannot_be_asked_are_an_error)
{
	struct eb b;
	struct engine_stats s;

	setup(&b, 5, 1);
	eb_fail(&b, DRIVER_PEERS, -EAGAIN, 1);
	hunger(&b, 0);
	CHECK_INT(n_ready(&b), 5);
	engine_stats(b.e, &s);
	CHECK_STR(s.last_error, "peers: as told");
	hunger(&b, 0);
	CHECK_INT(n_ready(&b), 2);
	eb_close(&b);
}

/* The other mount has taken what was given back. */
static unsigned taken_by_other(struct eb *b)
{
	struct eb_message *m;
	unsigned n = 0;

	TAILQ_FOREACH (m, &b->messages, link) {
		if (m->state != EB_WAITING)
			continue;
		m->state = EB_GONE;
		n++;
	}
	return n;
}

static void given_by_other(struct eb *b, unsigned n)
{
	struct eb_message *m;

	TAILQ_FOREACH (m, &b->messages, link) {
		if (!n || m->state != EB_GONE)
			continue;
		m->state = EB_WAITING;
		n--;
	}
}

/* Two mounts that nobody reads from, the other a fair one: messages must not go to
 * and fro for ever. */
TEST(idle_mounts_come_to_rest)
{
	struct eb b;
	unsigned others, given;

	setup(&b, 1, 1);
	hunger(&b, 0);
	b.others.hungry = false;
	eb_pass(&b, 20 * NS_PER_MS);
	others = taken_by_other(&b);
	CHECK_INT(others, 1);
	for (int i = 0; i < 100; i++) {
		engine_driver_changed(b.e);
		eb_pass(&b, NS_PER_S);
		if (b.mine.hungry && others) { /* the only one: it is given */
			given_by_other(&b, others);
			others = 0;
		}
	}
	given = eb_settled(&b, SETTLE_RELEASE, NULL);
	CHECK_INT(given, 1);
	CHECK_STR(eb_ready(&b), "001 ");
	CHECK(!b.mine.hungry);
	eb_close(&b);
}
