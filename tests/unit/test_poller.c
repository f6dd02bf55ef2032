/* SPDX-License-Identifier: MIT */
#include "backend/engine/poller.h"

#include "backend/base/clock.h"
#include "tests/test.h"

#define S      NS_PER_S
#define MIDDLE 0.5

static const struct backoff_config cfg = {
	.floor_ns = 1 * S,
	.ceiling_ns = 60 * S,
	.factor = 2,
};

static struct poller make(void)
{
	struct poller p;

	poller_init(&p, &cfg, true, 100 * S);
	return p;
}

static void poll_at(struct poller *p, int64_t now_ns, unsigned n)
{
	poller_begin(p);
	poller_result(p, n, n > 0, CLOCK_NEVER, now_ns, MIDDLE);
}

static void fail_at(struct poller *p, int64_t now_ns, int64_t retry_after_ns)
{
	poller_begin(p);
	poller_failed(p, retry_after_ns, now_ns, MIDDLE);
}

TEST(is_due_at_once)
{
	struct poller p = make();

	CHECK_INT(poller_next(&p, 100 * S), 100 * S);
	CHECK_INT(poller_state(&p, 100 * S), POLLER_POLLING);
}

TEST(one_receive_at_a_time)
{
	struct poller p = make();

	poller_begin(&p);
	CHECK_INT(poller_next(&p, 100 * S), CLOCK_NEVER);
	CHECK_INT(poller_state(&p, 100 * S), POLLER_POLLING);
}

TEST(empty_polls_sleep_longer_and_longer)
{
	struct poller p = make();

	poll_at(&p, 100 * S, 0);
	CHECK_INT(poller_next(&p, 100 * S), 101 * S);
	CHECK_INT(poller_state(&p, 100 * S), POLLER_WAITING);
	CHECK_INT(poller_state(&p, 101 * S), POLLER_POLLING);
	poll_at(&p, 101 * S, 0);
	CHECK_INT(poller_next(&p, 101 * S), 103 * S);
	CHECK_INT(poller_next(&p, 200 * S), 200 * S); /* late: now */
}

/* man: backoff-hit */
TEST(messages_are_followed_by_the_next_poll)
{
	struct poller p = make();

	poll_at(&p, 100 * S, 0);
	poll_at(&p, 101 * S, 0);
	poll_at(&p, 103 * S, 1);
	CHECK_INT(poller_next(&p, 103 * S), 103 * S);
	poll_at(&p, 103 * S, 0);
	CHECK_INT(poller_next(&p, 103 * S), 104 * S); /* at the floor again */
}

TEST(counts)
{
	struct poller p = make();

	poll_at(&p, 100 * S, 0);
	poll_at(&p, 101 * S, 0);
	CHECK_INT(p.empty_in_a_row, 2);
	poll_at(&p, 103 * S, 5);
	poll_at(&p, 103 * S, 0);
	fail_at(&p, 104 * S, 0);
	CHECK_INT(p.polls_total, 5);
	CHECK_INT(p.polls_empty, 3);
	CHECK_INT(p.empty_in_a_row, 1);
}

TEST(empty_with_more_to_come_does_not_sleep)
{
	struct poller p = make();

	poller_begin(&p);
	poller_result(&p, 0, true, CLOCK_NEVER, 100 * S, MIDDLE);
	CHECK_INT(poller_next(&p, 100 * S), 100 * S);
}

TEST(a_due_message_ends_the_sleep)
{
	struct poller p = make();

	for (int i = 0; i < 5; i++)
		poll_at(&p, 100 * S, 0);
	poller_begin(&p);
	poller_result(&p, 0, false, 107 * S, 100 * S, MIDDLE);
	CHECK_INT(poller_next(&p, 100 * S), 107 * S);
	poller_begin(&p);
	poller_result(&p, 0, false, 500 * S, 107 * S, MIDDLE);
	CHECK_INT(poller_next(&p, 107 * S), 167 * S); /* the sleep was shorter */
}

TEST(a_past_due_time_does_not_spin)
{
	struct poller p = make();

	poller_begin(&p);
	poller_result(&p, 0, false, 1, 100 * S, MIDDLE);
	CHECK_INT(poller_next(&p, 100 * S), 100 * S + 10 * NS_PER_MS);
}

TEST(wake_ends_the_sleep)
{
	struct poller p = make();

	poll_at(&p, 100 * S, 0);
	poller_wake(&p, 100 * S + 1);
	CHECK_INT(poller_next(&p, 100 * S + 1), 100 * S + 1);
	CHECK_INT(poller_state(&p, 100 * S + 1), POLLER_POLLING);
}

TEST(wake_while_busy_polls_once_more)
{
	struct poller p = make();

	poller_begin(&p);
	poller_wake(&p, 100 * S);
	poller_wake(&p, 100 * S);
	CHECK_INT(poller_next(&p, 100 * S), CLOCK_NEVER);
	poller_result(&p, 0, false, CLOCK_NEVER, 100 * S, MIDDLE);
	CHECK_INT(poller_next(&p, 100 * S), 100 * S);
	poll_at(&p, 100 * S, 0);
	CHECK_INT(poller_next(&p, 100 * S), 101 * S);
}

TEST(full_waits_for_room)
{
	struct poller p = make();

	poll_at(&p, 100 * S, 0);
	poller_set_full(&p, true);
	CHECK_INT(poller_state(&p, 105 * S), POLLER_FULL);
	CHECK_INT(poller_next(&p, 105 * S), CLOCK_NEVER);
	poller_set_full(&p, false);
	CHECK_INT(poller_next(&p, 100 * S), 101 * S);
}

TEST(wake_while_full_counts_once_there_is_room)
{
	struct poller p = make();

	for (int i = 0; i < 4; i++)
		poll_at(&p, 100 * S, 0);
	poller_set_full(&p, true);
	poller_wake(&p, 101 * S);
	CHECK_INT(poller_next(&p, 101 * S), CLOCK_NEVER);
	poller_set_full(&p, false);
	CHECK_INT(poller_next(&p, 102 * S), 102 * S);
}

TEST(paused_neither_polls_nor_wakes)
{
	struct poller p = make();

	poll_at(&p, 100 * S, 0);
	poller_pause(&p, true);
	poller_wake(&p, 100 * S);
	CHECK_INT(p.next_ns, 101 * S);
	CHECK_INT(poller_state(&p, 105 * S), POLLER_PAUSED);
	CHECK_INT(poller_next(&p, 105 * S), CLOCK_NEVER);
}

TEST(resume_polls_at_once)
{
	struct poller p = make();

	for (int i = 0; i < 6; i++)
		poll_at(&p, 100 * S, 0);
	poller_pause(&p, false); /* it was not paused: nothing */
	CHECK_INT(poller_next(&p, 100 * S), 132 * S);
	poller_pause(&p, true);
	poller_pause(&p, false);
	CHECK_INT(poller_next(&p, 100 * S), 100 * S);
}

TEST(offline_backs_off)
{
	struct poller p = make();

	fail_at(&p, 100 * S, 0);
	CHECK_INT(poller_state(&p, 100 * S), POLLER_OFFLINE);
	CHECK_INT(poller_next(&p, 100 * S), 101 * S);
	fail_at(&p, 101 * S, 0);
	CHECK_INT(poller_next(&p, 101 * S), 103 * S);
	poller_begin(&p);
	CHECK_INT(poller_state(&p, 103 * S), POLLER_OFFLINE); /* until it answers */
	poller_result(&p, 0, false, CLOCK_NEVER, 103 * S, MIDDLE);
	CHECK_INT(poller_state(&p, 103 * S), POLLER_WAITING);
}

TEST(retry_after_is_obeyed)
{
	struct poller p = make();

	fail_at(&p, 100 * S, 30 * S);
	CHECK_INT(poller_next(&p, 100 * S), 130 * S);
	poller_wake(&p, 110 * S);
	CHECK_INT(poller_next(&p, 110 * S), 130 * S);
	for (int i = 0; i < 6; i++)
		fail_at(&p, 200 * S, 0);
	fail_at(&p, 200 * S, 5 * S);
	CHECK_INT(poller_next(&p, 200 * S), 260 * S); /* the back-off is longer */
}

TEST(wake_ends_an_offline_sleep)
{
	struct poller p = make();

	for (int i = 0; i < 6; i++)
		fail_at(&p, 100 * S, 0);
	poller_wake(&p, 103 * S);
	CHECK_INT(poller_next(&p, 103 * S), 103 * S);
}

TEST(a_failure_forgets_what_woke_it)
{
	struct poller p = make();

	poller_begin(&p);
	poller_wake(&p, 100 * S);
	poller_failed(&p, 0, 100 * S, MIDDLE);
	CHECK_INT(poller_next(&p, 100 * S), 101 * S);
}

TEST(draining_and_stopped_poll_no_more)
{
	struct poller p = make();

	poller_drain(&p);
	poller_wake(&p, 100 * S);
	CHECK_INT(poller_next(&p, 100 * S), CLOCK_NEVER);
	CHECK_INT(poller_state(&p, 100 * S), POLLER_DRAINING);
	poller_stop(&p);
	CHECK_INT(poller_state(&p, 100 * S), POLLER_STOPPED);
	CHECK_INT(poller_next(&p, 100 * S), CLOCK_NEVER);
}

TEST(role_out_never_polls)
{
	struct poller p;

	poller_init(&p, &cfg, false, 100 * S);
	poller_wake(&p, 100 * S);
	CHECK_INT(poller_next(&p, 100 * S), CLOCK_NEVER);
	CHECK_INT(poller_state(&p, 100 * S), POLLER_WAITING);
}

TEST(every_state_has_a_word)
{
	static const char *const words[] = {
		"polling", "waiting", "full", "paused", "draining", "offline", "stopped"};

	for (int s = POLLER_POLLING; s <= POLLER_STOPPED; s++)
		CHECK_STR(poller_state_name((enum poller_state)s), words[s]);
}
