/* SPDX-License-Identifier: MIT */
#include "backend/engine/outage.h"

#include <stdbool.h>
#include <stdlib.h>

#include "backend/base/clock.h"
#include "tests/test.h"

#define NOW  (1000 * NS_PER_S)
#define HOUR (3600 * NS_PER_S)

static struct outage make(void)
{
	struct outage o;

	outage_init(&o, &outage_defaults);
	return o;
}

/* Handles the message ID at NOW; whether that counts. */
static bool handle(struct outage *o, uint64_t id, bool ok, int64_t now)
{
	bool probe;

	CHECK_INT(outage_next(o, now), now);
	probe = outage_started(o);
	return outage_ended(o, id, ok, probe, now);
}

static struct outage suspected(void)
{
	struct outage o = make();

	for (uint64_t id = 0; id < 5; id++)
		handle(&o, id, false, NOW);
	CHECK(outage_suspected(&o));
	return o;
}

TEST(different_messages_that_fail_in_a_row_are_an_outage)
{
	struct outage o = make();

	for (uint64_t id = 0; id < 4; id++) {
		CHECK(handle(&o, id, false, NOW));
		CHECK(!outage_suspected(&o));
	}
	CHECK(!handle(&o, 4, false, NOW));
	CHECK(outage_suspected(&o));
}

/* man: run-outage-none */
TEST(one_message_that_fails_again_and_again_is_none)
{
	struct outage o = make();

	for (int i = 0; i < 100; i++)
		CHECK(handle(&o, (uint64_t)(i % 4), false, NOW));
	CHECK(!outage_suspected(&o));
}

/* man: run-outage-others */
TEST(what_has_failed_is_known_until_one_is_handled)
{
	struct outage o = make();

	CHECK(!outage_has_failed(&o, 0));
	handle(&o, 0, false, NOW);
	handle(&o, 3, false, NOW);
	CHECK(outage_has_failed(&o, 0));
	CHECK(outage_has_failed(&o, 3));
	CHECK(!outage_has_failed(&o, 1));
	handle(&o, 1, true, NOW);
	CHECK(!outage_has_failed(&o, 0));
	CHECK(!outage_has_failed(&o, 3));
}

TEST(a_success_between_begins_to_count_anew)
{
	struct outage o = make();

	for (uint64_t id = 0; id < 100; id++)
		CHECK(handle(&o, id, id % 5 == 4, NOW));
	CHECK(!outage_suspected(&o));
}

TEST(probes_come_one_at_a_time_after_pauses_that_grow)
{
	static const int pauses[] = {1, 2, 4, 8, 16, 30, 30};
	struct outage o = suspected();
	int64_t now = NOW;

	for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
		CHECK_INT(outage_next(&o, now), now + pauses[i] * NS_PER_S);
		now += pauses[i] * NS_PER_S;
		CHECK_INT(outage_next(&o, now), now);
		CHECK(outage_started(&o));
		CHECK_INT(outage_next(&o, now), CLOCK_NEVER);
		CHECK(!outage_ended(&o, 9, false, true, now));
	}
}

TEST(those_under_way_are_excused_and_change_no_pause)
{
	struct outage o = suspected();

	CHECK(!outage_ended(&o, 100, false, false, NOW + 1));
	CHECK(!outage_ended(&o, 101, false, false, NOW + 2));
	CHECK_INT(outage_next(&o, NOW + 2), NOW + NS_PER_S);
}

/* man: run-outage-over */
TEST(any_success_ends_it)
{
	struct outage o = suspected();

	CHECK(outage_ended(&o, 100, true, false, NOW + 1));
	CHECK(!outage_suspected(&o));
	CHECK_INT(outage_next(&o, NOW + 1), NOW + 1);
	/* And what is begun anew begins at the floor. */
	CHECK(handle(&o, 1, false, NOW + 1));
	o = suspected();
	CHECK_INT(outage_next(&o, NOW), NOW + NS_PER_S);
}

TEST(a_probe_that_is_forgotten_makes_room_for_another)
{
	struct outage o = suspected();
	int64_t now = NOW + NS_PER_S;

	CHECK(outage_started(&o));
	outage_forget(&o, false);
	CHECK_INT(outage_next(&o, now), CLOCK_NEVER);
	outage_forget(&o, true);
	CHECK_INT(outage_next(&o, now), now);
}

TEST(what_cannot_be_started_pauses)
{
	struct outage o = make();

	outage_force(&o, false, NOW);
	CHECK_INT(outage_next(&o, NOW), NOW + NS_PER_S);
	CHECK(outage_started(&o));
	outage_force(&o, true, NOW + NS_PER_S);
	CHECK_INT(outage_next(&o, NOW), NOW + 3 * NS_PER_S);
}

/* man: run-outage-excuse */
TEST(the_excuse_ends_and_the_pauses_do_not)
{
	struct outage o = suspected();

	CHECK(!handle(&o, 9, false, NOW + HOUR - 1));
	CHECK(handle(&o, 9, false, NOW + 2 * HOUR));
	CHECK(outage_suspected(&o));
	CHECK_INT(outage_next(&o, NOW + 2 * HOUR), NOW + 2 * HOUR + 4 * NS_PER_S);
}

TEST(a_probe_is_any_of_the_waiting)
{
	struct outage o = make();

	CHECK_INT(outage_pick(&o, 100, 0.999), 0);
	o = suspected();
	CHECK_INT(outage_pick(&o, 100, 0), 0);
	CHECK_INT(outage_pick(&o, 100, 0.999), 99);
	CHECK_INT(outage_pick(&o, 1, 0.999), 0);
	CHECK_INT(outage_pick(&o, 0, 0.5), 0);
}

/* ---- a whole outage, on the virtual clock ---- */

#define WAITING 100

struct waiting {
	unsigned attempts;
	int64_t due_ns; /* a message that failed waits for a retry delay */
	bool handled;
};

/* Of those that are due, the one that the outage would pick; -1: none. */
static int next_message(const struct outage *o, const struct waiting *w, int64_t now)
{
	int due[WAITING];
	unsigned n = 0;

	for (int i = 0; i < WAITING; i++) {
		if (!w[i].handled && w[i].due_ns <= now)
			due[n++] = i;
	}
	return n ? due[outage_pick(o, n, drand48())] : -1;
}

/* Handlings of 10 ms each, all failing until END. The most attempts of any
 * message are left in *WORST. When all were handled. */
static int64_t simulate(int64_t end, int64_t retry_delay_ns, unsigned *worst)
{
	struct outage o = make();
	struct waiting w[WAITING] = {0};
	int64_t now = NOW;
	int left = WAITING;

	for (*worst = 0; left > 0; now += 10 * NS_PER_MS) {
		bool ok = now >= end;
		int i = outage_next(&o, now) > now ? -1 : next_message(&o, w, now);

		if (i < 0)
			continue;
		if (handle(&o, (uint64_t)i, ok, now) && !ok) {
			w[i].due_ns = now + (retry_delay_ns << w[i].attempts);
			w[i].attempts++;
		}
		w[i].handled = ok;
		left -= ok;
		*worst = w[i].attempts > *worst ? w[i].attempts : *worst;
	}
	return now;
}

/* man: run-outage */
TEST(an_outage_of_a_minute_kills_none_of_100_messages)
{
	unsigned worst;

	srand48(7);
	for (int i = 0; i < 100; i++) {
		int64_t end = NOW + 60 * NS_PER_S + i * NS_PER_S / 7;

		CHECK(simulate(end, (i + 5) * 10 * NS_PER_MS, &worst) <
			end + 35 * NS_PER_S);
		CHECK(worst < 5);
	}
}
