/* SPDX-License-Identifier: MIT */
/* Dead letters. */
#include "backend/engine/dead.h"

#include "engine_people.h"

static void setup(struct eb *b)
{
	eb_init(b);
	for (int i = 1; i <= 3; i++) {
		char id[8];
		struct eb_message *m;

		snprintf(id, sizeof(id), "%d", i);
		m = eb_put(b, id);
		m->state = EB_DEAD;
		m->attempts = 5;
		snprintf(m->reason, sizeof(m->reason), "failed");
	}
	eb_start(b);
}

static struct dead *find(struct eb *b, const char *id)
{
	struct dead *all = engine_dead(b->e), *d = NULL;

	HASH_FIND_STR(all, id, d);
	return d;
}

static uint64_t n_dead(struct eb *b)
{
	struct engine_stats s;

	engine_stats(b->e, &s);
	return s.dead;
}

struct reading {
	struct dead_read r;
	int called, err;
	char text[16];
};

static void was_read(struct dead_read *r, int err, struct blob *body)
{
	struct reading *x = r->arg;

	x->called++;
	x->err = err;
	if (body)
		snprintf(x->text, sizeof(x->text), "%.*s", (int)body->len,
			(const char *)body->data);
}

static void read_letter(struct eb *b, struct dead *d, struct reading *x)
{
	*x = (struct reading){.r = {.fn = was_read, .arg = x}};
	CHECK(d);
	dead_read(b->e, d, &x->r);
	CHECK_INT(x->called, 0);
	eb_run(b);
	CHECK_INT(x->called, 1);
	dead_read_fini(&x->r);
}

TEST(listed_at_the_start)
{
	struct eb b;

	setup(&b);
	CHECK_STR(eb_told(&b), "dead:1 dead:2 dead:3 ");
	CHECK_INT(n_dead(&b), 3);
	CHECK_STR(find(&b, "2")->d.reason, "failed");
	CHECK_INT(find(&b, "2")->d.attempts, 5);
	CHECK_STR(eb_ready(&b), "");
	eb_close(&b);
}

TEST(a_window_of_them_at_most)
{
	struct eb b;

	eb_init(&b);
	eb_put_many(&b, 1, 20);
	for (struct eb_message *m = TAILQ_FIRST(&b.messages); m; m = TAILQ_NEXT(m, link))
		m->state = EB_DEAD;
	eb_start(&b);
	CHECK_INT(HASH_COUNT(engine_dead(b.e)), 8);
	CHECK_INT(n_dead(&b), 20);
	eb_close(&b);
}

TEST(read_without_touching)
{
	struct eb b;
	struct reading x;

	setup(&b);
	read_letter(&b, find(&b, "2"), &x);
	CHECK_INT(x.err, 0);
	CHECK_STR(x.text, "2");
	CHECK_INT(b.n_settles, 0);
	eb_stored(&b, "3")->state = EB_GONE;
	read_letter(&b, find(&b, "3"), &x);
	CHECK_INT(x.err, -ENOENT);
	eb_close(&b);
}

TEST(discarded_for_good)
{
	struct eb b;

	setup(&b);
	eb_forget(&b);
	CHECK_INT(dead_discard(b.e, find(&b, "2")), 0);
	eb_pass(&b, NS_PER_S);
	CHECK_INT(eb_stored(&b, "2")->state, EB_GONE);
	CHECK(!find(&b, "2"));
	CHECK_STR(eb_told(&b), "");
	CHECK_INT(n_dead(&b), 2);
	eb_close(&b);
}

TEST(revived_it_is_ready_again)
{
	struct eb b;

	setup(&b);
	eb_forget(&b);
	CHECK_INT(dead_revive(b.e, find(&b, "2")), 0);
	eb_pass(&b, NS_PER_S);
	CHECK_STR(eb_told(&b), "ready:1 +2 ");
	CHECK_INT(eb_find(&b, "2")->d.attempts, 0);
	CHECK(!find(&b, "2"));
	eb_close(&b);
}

TEST(one_that_could_not_be_discarded_shows_again)
{
	struct eb b;

	setup(&b);
	eb_forget(&b);
	eb_fail(&b, DRIVER_SETTLE, -EAGAIN, 1);
	CHECK_INT(dead_discard(b.e, find(&b, "2")), 0);
	eb_pass(&b, NS_PER_S);
	CHECK_STR(eb_told(&b), "dead:2 ");
	CHECK(find(&b, "2") && !find(&b, "2")->gone);
	eb_close(&b);
}

static void synced(struct engine_sync *s, int err)
{
	*(int *)s->arg = err;
}

TEST(a_sync_waits_for_them_too)
{
	struct eb b;
	int err = 1;
	struct engine_sync s = {.fn = synced, .arg = &err};

	setup(&b);
	eb_hold(&b, DRIVER_SETTLE);
	CHECK_INT(dead_discard(b.e, find(&b, "2")), 0);
	engine_sync(b.e, &s);
	eb_run(&b);
	CHECK_INT(err, 1);
	CHECK_INT(b.asked[DRIVER_SYNC], 0);
	eb_let(&b, DRIVER_SETTLE);
	eb_run(&b);
	CHECK_INT(err, 0);
	eb_close(&b);
}

TEST(a_sync_says_when_one_could_not_be_discarded)
{
	struct eb b;
	int err = 1;
	struct engine_sync s = {.fn = synced, .arg = &err};

	setup(&b);
	eb_fail(&b, DRIVER_SETTLE, -EAGAIN, 1);
	CHECK_INT(dead_discard(b.e, find(&b, "2")), 0);
	engine_sync(b.e, &s);
	eb_run(&b);
	CHECK_INT(err, -EIO);
	eb_close(&b);
}

TEST(others_bury_and_revive_too)
{
	struct eb b;

	setup(&b);
	eb_forget(&b);
	eb_stored(&b, "1")->state = EB_GONE;
	eb_put(&b, "4")->state = EB_DEAD;
	eb_put(&b, "5")->state = EB_DEAD;
	engine_driver_changed(b.e);
	eb_pass(&b, NS_PER_S);
	CHECK_STR(eb_told(&b), "dead:4 dead:5 undead:1 ");
	CHECK_INT(n_dead(&b), 4);
	eb_close(&b);
}

TEST(a_burial_here_is_listed)
{
	struct eb b;

	setup(&b);
	eb_put(&b, "4");
	engine_poll_now(b.e);
	eb_run(&b);
	eb_forget(&b);
	CHECK_INT(engine_bury(b.e, take(&b, "4"), me(&b), "buried"), 0);
	CHECK_INT(n_dead(&b), 4);
	eb_pass(&b, NS_PER_S);
	CHECK(strstr(eb_told(&b), "dead:4 "));
	CHECK(!strstr(eb_told(&b), "-4 "));
	CHECK_STR(find(&b, "4")->d.reason, "buried");
	CHECK_INT(n_dead(&b), 4);
	eb_close(&b);
}
