/* SPDX-License-Identifier: MIT */
#include "backend/engine/share.h"

#include "backend/base/clock.h"
#include "tests/test.h"

#define S          NS_PER_S
#define VISIBILITY (30 * S)
#define START      (1000000 * S)

static struct share_facts facts(unsigned unread)
{
	return (struct share_facts){
		.unread = unread,
		.visibility_ns = VISIBILITY,
		.now_ns = START,
	};
}

TEST(hungry_without_unread_messages)
{
	struct share_facts f = facts(0);

	CHECK(share_is_hungry(&f));
	f.unread = 1;
	CHECK(!share_is_hungry(&f));
}

TEST(not_hungry_soon_after_giving)
{
	struct share_facts f = facts(0);

	f.consumed_ns = START - 100 * S;
	f.gave_ns = START - VISIBILITY + 1;
	CHECK(!share_is_hungry(&f));
	f.gave_ns--;
	CHECK(share_is_hungry(&f));
}

TEST(hungry_again_when_a_consumer_shows_up)
{
	struct share_facts f = facts(0);

	f.gave_ns = START - 2 * S;
	f.waiting = true;
	CHECK(share_is_hungry(&f));
	f.waiting = false;
	f.consumed_ns = START - 1 * S;
	CHECK(share_is_hungry(&f));
	f.consumed_ns = START - 3 * S;
	CHECK(!share_is_hungry(&f));
}

TEST(gives_half_rounded_up)
{
	static const unsigned want[] = {0, 1, 1, 2, 2, 3};

	for (unsigned i = 0; i < sizeof(want) / sizeof(*want); i++) {
		struct share_facts f = facts(i);

		CHECK_INT(share_give(&f, 0), want[i]);
	}
}

TEST(gives_all_to_the_only_consumer)
{
	struct share_facts f = facts(9);

	CHECK_INT(share_give(&f, START - 1), 9);
	f.consumed_ns = START - VISIBILITY;
	CHECK_INT(share_give(&f, START - 1), 9);
	f.consumed_ns++; /* a claim here is not long ago: both consume */
	CHECK_INT(share_give(&f, START - 1), 5);
	f.consumed_ns = START - VISIBILITY;
	CHECK_INT(share_give(&f, START - VISIBILITY - 1), 5); /* longer ago there */
}

TEST(gives_nothing_past_its_own_reader)
{
	struct share_facts f = facts(9);

	f.waiting = true;
	CHECK_INT(share_give(&f, START - 1), 0);
}

/*
 * Mounts of one queue, a tenth of a second at a time. As in the engine, who is
 * hungry says so and receives; who holds messages hears of it a round later.
 */
#define MOUNTS 3
#define TICK   (100 * NS_PER_MS)
#define NOBODY (-1)

struct sim {
	struct share_facts m[MOUNTS];
	bool hungry[MOUNTS];
	int mounts;
	unsigned queue;
	unsigned handled;
	unsigned moves; /* messages received by a mount */
	int consumer;   /* index, or NOBODY */
	int64_t now_ns;
};

static void sim_init(struct sim *s, int mounts, unsigned queue)
{
	*s = (struct sim){
		.mounts = mounts,
		.queue = queue,
		.consumer = NOBODY,
		.now_ns = START,
	};
	for (int i = 0; i < mounts; i++)
		s->m[i] = facts(0);
}

/* What the hungry ones other than I last claimed at; -1: none is hungry. */
static int64_t hungry_peer(const struct sim *s, int i)
{
	int64_t latest = -1;

	for (int k = 0; k < s->mounts; k++) {
		if (k != i && s->hungry[k] && s->m[k].consumed_ns > latest)
			latest = s->m[k].consumed_ns;
	}
	return latest;
}

static void sim_give(struct sim *s)
{
	for (int i = 0; i < s->mounts; i++) {
		int64_t peer = hungry_peer(s, i);
		unsigned n = peer >= 0 && s->m[i].unread ? share_give(&s->m[i], peer) : 0;

		s->m[i].unread -= n;
		s->queue += n;
		if (n > 0)
			s->m[i].gave_ns = s->now_ns;
	}
}

static void sim_tick(struct sim *s)
{
	int first = (int)(s->now_ns / TICK % s->mounts);

	s->now_ns += TICK;
	for (int i = 0; i < s->mounts; i++) {
		s->m[i].now_ns = s->now_ns;
		s->hungry[i] = share_is_hungry(&s->m[i]);
	}
	sim_give(s);
	for (int k = 0; k < s->mounts; k++) {
		int i = (first + k) % s->mounts;

		if (!s->hungry[i] || s->queue == 0)
			continue;
		s->m[i].unread += s->queue;
		s->moves += s->queue;
		s->queue = 0;
	}
	if (s->consumer != NOBODY && s->m[s->consumer].unread > 0) {
		s->m[s->consumer].unread--;
		s->m[s->consumer].consumed_ns = s->now_ns;
		s->handled++;
	}
}

static void sim_run(struct sim *s, int64_t ns)
{
	for (int64_t end = s->now_ns + ns; s->now_ns < end;)
		sim_tick(s);
}

TEST(alone_it_gives_nothing_back)
{
	struct sim s;

	sim_init(&s, 1, 5);
	sim_run(&s, 100 * VISIBILITY);
	CHECK_INT(s.moves, 5);
	CHECK_INT(s.m[0].unread, 5);
}

TEST(two_idle_mounts_rarely_pass_one_message)
{
	struct sim s;

	sim_init(&s, 2, 1);
	sim_run(&s, 10 * VISIBILITY);
	CHECK(s.moves <= 1 + 11);
	CHECK_INT(s.queue + s.m[0].unread + s.m[1].unread, 1);
}

TEST(two_idle_mounts_share_and_rest)
{
	struct sim s;

	sim_init(&s, 2, 8);
	sim_run(&s, VISIBILITY);
	CHECK_INT(s.m[0].unread, 4);
	CHECK_INT(s.m[1].unread, 4);
	s.moves = 0;
	sim_run(&s, 10 * VISIBILITY);
	CHECK_INT(s.moves, 0);
}

TEST(three_idle_mounts_rarely_pass_one_message)
{
	struct sim s;

	sim_init(&s, 3, 1);
	sim_run(&s, 10 * VISIBILITY);
	CHECK(s.moves <= 3 * 11);
}

TEST(a_consumer_gets_all_soon)
{
	for (int consumer = 0; consumer < MOUNTS; consumer++) {
		struct sim s;

		sim_init(&s, MOUNTS, 60);
		sim_run(&s, 2 * VISIBILITY); /* idle: each holds some */
		s.consumer = consumer;
		s.m[consumer].waiting = true;
		sim_run(&s, 65 * TICK); /* it handles one a tick */
		CHECK_INT(s.handled, 60);
	}
}

TEST(a_consumer_that_moves_house_gets_all)
{
	struct sim s;

	sim_init(&s, MOUNTS, 100);
	s.consumer = 0;
	sim_run(&s, 20 * TICK);
	s.consumer = 1;
	sim_run(&s, 2 * VISIBILITY);
	CHECK_INT(s.handled, 100);
}
