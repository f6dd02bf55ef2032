/* SPDX-License-Identifier: MIT */
#include "backend/engine/idle.h"

#include <stdbool.h>

#include "backend/base/clock.h"
#include "tests/test.h"

#define T     (10 * NS_PER_S)
#define START (1000 * NS_PER_S)

static struct idle make(void)
{
	struct idle i;

	idle_init(&i, T, START);
	return i;
}

TEST(starts_when_mounted)
{
	struct idle i = make();

	CHECK_INT(idle_state(&i), IDLE_ARMED);
	CHECK_INT(idle_due(&i), START + T);
	CHECK(!idle_fire(&i, START + T - 1));
	CHECK(idle_fire(&i, START + T));
}

TEST(fires_once)
{
	struct idle i = make();

	CHECK(idle_fire(&i, START + 2 * T)); /* late is as good */
	CHECK_INT(idle_state(&i), IDLE_FIRED);
	CHECK_INT(idle_due(&i), CLOCK_NEVER);
	CHECK(!idle_fire(&i, START + 3 * T));
}

TEST(starts_anew_after_the_last_completion)
{
	struct idle i = make();

	idle_begin(&i);
	idle_begin(&i);
	idle_end(&i, START + 1);
	CHECK_INT(idle_state(&i), IDLE_HELD);
	CHECK_INT(idle_due(&i), CLOCK_NEVER);
	idle_end(&i, START + 5);
	CHECK_INT(idle_due(&i), START + 5 + T);
}

TEST(a_long_handling_is_not_interrupted)
{
	struct idle i = make();

	idle_begin(&i);
	for (int k = 1; k <= 10; k++)
		CHECK(!idle_fire(&i, START + k * T));
	idle_end(&i, START + 10 * T);
	CHECK(!idle_fire(&i, START + 10 * T));
	CHECK(!idle_fire(&i, START + 11 * T - 1));
	CHECK(idle_fire(&i, START + 11 * T));
}

TEST(a_begin_just_before_the_fire_wins)
{
	struct idle i = make();

	idle_begin(&i);
	CHECK(!idle_fire(&i, START + T));
	CHECK_INT(idle_state(&i), IDLE_HELD);
	idle_end(&i, START + T);
	CHECK_INT(idle_due(&i), START + 2 * T);
}

TEST(a_begin_just_after_the_fire_comes_too_late)
{
	struct idle i = make();

	CHECK(idle_fire(&i, START + T));
	idle_begin(&i);
	CHECK_INT(idle_state(&i), IDLE_FIRED);
	idle_end(&i, START + T);
	CHECK(!idle_fire(&i, START + 3 * T));
}

TEST(a_begin_wins_over_a_late_loop)
{
	struct idle i = make();

	idle_begin(&i); /* at START + 2 T: nobody had asked before */
	CHECK(!idle_fire(&i, START + 2 * T));
}

TEST(a_stop_cancels)
{
	struct idle i = make();

	idle_cancel(&i);
	CHECK_INT(idle_state(&i), IDLE_OFF);
	CHECK_INT(idle_due(&i), CLOCK_NEVER);
	idle_begin(&i);
	idle_end(&i, START + 1);
	CHECK(!idle_fire(&i, START + 3 * T));
}

TEST(no_timeout_never_fires)
{
	struct idle i;

	idle_init(&i, 0, START);
	CHECK_INT(idle_state(&i), IDLE_OFF);
	idle_begin(&i);
	CHECK_INT(idle_state(&i), IDLE_OFF);
	idle_end(&i, START);
	CHECK(!idle_fire(&i, START + 1000 * T));
}

TEST(rearmed_it_fires_again)
{
	struct idle i = make();

	CHECK(idle_fire(&i, START + T));
	idle_rearm(&i, T, START + T);
	CHECK(!idle_fire(&i, START + 2 * T - 1));
	CHECK(idle_fire(&i, START + 2 * T));
	idle_cancel(&i);
	idle_rearm(&i, 2 * T, START + 2 * T);
	CHECK_INT(idle_due(&i), START + 4 * T);
	idle_rearm(&i, 0, START + 3 * T);
	CHECK_INT(idle_state(&i), IDLE_OFF);
}

TEST(rearmed_it_is_held_by_what_is_handled)
{
	struct idle i = make();

	CHECK(idle_fire(&i, START + T));
	idle_begin(&i);
	idle_rearm(&i, T, START + T);
	CHECK_INT(idle_state(&i), IDLE_HELD);
	idle_end(&i, START + 3 * T);
	CHECK_INT(idle_due(&i), START + 4 * T);
}

TEST(tells_what_is_left)
{
	struct idle i = make();

	CHECK_INT(idle_left_ns(&i, START), T);
	CHECK_INT(idle_left_ns(&i, START + T - 1), 1);
	CHECK_INT(idle_left_ns(&i, START + 2 * T), 0);
	idle_begin(&i);
	CHECK_INT(idle_left_ns(&i, START), -1);
	idle_end(&i, START);
	CHECK(idle_fire(&i, START + T));
	CHECK_INT(idle_left_ns(&i, START + T), -1);
}

TEST(every_state_has_a_word)
{
	CHECK_STR(idle_state_name(IDLE_OFF), "off");
	CHECK_STR(idle_state_name(IDLE_ARMED), "armed");
	CHECK_STR(idle_state_name(IDLE_HELD), "held");
	CHECK_STR(idle_state_name(IDLE_FIRED), "fired");
}

/* ---- at random, against a model that counts down tick by tick ---- */

#define ROUNDS   100000
#define STEPS    50
#define HANDLERS 10
#define TIMEOUT  7

struct model {
	bool busy[HANDLERS];
	int left;
	bool off, fired;
};

struct pair {
	struct idle i;
	struct model m;
	int64_t now_ns;
	uint64_t random;
	unsigned handlers; /* of this round: of ten one is nearly always busy */
	int fires;
};

static unsigned draw(struct pair *p, unsigned below)
{
	p->random = p->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((p->random >> 33) % below);
}

static bool model_is_busy(const struct model *m)
{
	for (int h = 0; h < HANDLERS; h++) {
		if (m->busy[h])
			return true;
	}
	return false;
}

static void model_tick(struct model *m)
{
	if (!model_is_busy(m) && m->left > 0)
		m->left--;
}

static bool model_fire(struct model *m)
{
	if (m->off || m->fired || model_is_busy(m) || m->left > 0)
		return false;
	m->fired = true;
	return true;
}

static enum idle_state model_state(const struct model *m)
{
	if (m->fired)
		return IDLE_FIRED;
	if (m->off)
		return IDLE_OFF;
	return model_is_busy(m) ? IDLE_HELD : IDLE_ARMED;
}

/* Begins what this handler does not do, ends what it does. */
static void toggle(struct pair *p, unsigned h)
{
	p->m.busy[h] = !p->m.busy[h];
	if (p->m.busy[h]) {
		idle_begin(&p->i);
		return;
	}
	idle_end(&p->i, p->now_ns);
	if (!model_is_busy(&p->m))
		p->m.left = TIMEOUT;
}

static void pass_time(struct pair *p, unsigned ticks)
{
	p->now_ns += ticks;
	while (ticks-- > 0)
		model_tick(&p->m);
}

static void ask(struct pair *p)
{
	bool fired = model_fire(&p->m);

	CHECK_INT(idle_fire(&p->i, p->now_ns), fired);
	p->fires += fired;
}

static void rearm(struct pair *p)
{
	idle_rearm(&p->i, TIMEOUT, p->now_ns);
	p->m.left = TIMEOUT;
	p->m.off = p->m.fired = false;
}

static void step(struct pair *p)
{
	unsigned what = draw(p, 100);

	if (what < 40)
		toggle(p, draw(p, p->handlers));
	else if (what < 70)
		pass_time(p, draw(p, TIMEOUT + 3));
	else if (what < 97)
		ask(p);
	else if (what < 99)
		rearm(p);
	else {
		idle_cancel(&p->i);
		p->m.off = true;
	}
}

static void compare(const struct pair *p)
{
	bool armed = model_state(&p->m) == IDLE_ARMED;

	CHECK_INT(idle_state(&p->i), model_state(&p->m));
	CHECK_INT(idle_left_ns(&p->i, p->now_ns), armed ? p->m.left : -1);
}

TEST(does_as_a_naive_model)
{
	struct pair p = {.random = 1};

	for (int round = 0; round < ROUNDS; round++) {
		p.m = (struct model){.left = TIMEOUT};
		idle_init(&p.i, TIMEOUT, p.now_ns);
		p.handlers = 1 + draw(&p, 1 + draw(&p, HANDLERS));
		for (int n = 0; n < STEPS; n++) {
			step(&p);
			compare(&p);
		}
	}
	printf("# %d interleavings of %d steps, %d fires, 0 differences\n", ROUNDS, STEPS,
		p.fires);
	CHECK(p.fires > ROUNDS / 4);
}
