/* SPDX-License-Identifier: MIT */
/*
 * The poller, its back-off and the budget of a run at work together: a job that
 * a scheduler starts once a minute, on a clock that only the loop below moves.
 */
#include <math.h>
#include <stdbool.h>

#include "backend/base/clock.h"
#include "backend/engine/budget.h"
#include "backend/engine/poller.h"
#include "tests/test.h"

#define S           NS_PER_S
#define MS          NS_PER_MS
#define HOUR        (3600 * S)
#define STOP        (60 * S) /* every run starts at 0 */
#define WINDOW      8
#define WORKERS_MAX 4
#define POLLS_KEPT  32

/* How long handlings take. */
enum kind {
	STEADY,     /* within 10 % of the average */
	OF_AVERAGE, /* within a factor 4 of it, and with that average */
	OF_SEEN,    /* within a factor 4 of the mean of those before */
};

struct sim {
	struct budget budget;
	struct poller poller;
	int64_t now_ns;
	uint64_t random;
	/* The queue: when its next message arrives, and the mean of the gaps. */
	int64_t arrival_ns, gap_ns;
	unsigned unread, workers;
	int64_t started_ns[WORKERS_MAX], ends_ns[WORKERS_MAX]; /* NEVER: it is free */
	enum kind kind;
	int64_t average_ns;
	double low, high; /* OF_SEEN: 4 to the power of these; OF_AVERAGE: 0..high */
	/* What came of it. */
	int64_t polled_ns[POLLS_KEPT];
	int64_t worst_delay_ns, sum_delays_ns;
	int64_t received, handled;
};

/* [0, 1) */
static double draw(struct sim *s)
{
	s->random = s->random * 6364136223846793005u + 1442695040888963407u;
	return (double)(s->random >> 11) * 0x1p-53;
}

/* One in five up to four times the average, the others down to a quarter. */
static double skewed(struct sim *s)
{
	double spread = s->high * draw(s);

	return draw(s) < 0.2 ? 1 + 3 * spread : 1 - 0.75 * spread;
}

/* Never so short that the simulation would take long. */
static double seen(struct sim *s)
{
	int64_t mean_ns = budget_average_ns(&s->budget);
	double from = (double)(mean_ns < 0 ? s->average_ns : mean_ns);

	return fmax(20 * MS, from * pow(4, s->low + (s->high - s->low) * draw(s)));
}

static int64_t handling_ns(struct sim *s)
{
	double average = (double)s->average_ns;

	if (s->kind == OF_SEEN)
		return (int64_t)seen(s);
	return (int64_t)(average *
			 (s->kind == OF_AVERAGE ? skewed(s) : 0.9 + 0.2 * draw(s)));
}

static void finish(struct sim *s)
{
	for (unsigned w = 0; w < s->workers; w++) {
		if (s->ends_ns[w] > s->now_ns)
			continue;
		budget_observe(&s->budget, s->ends_ns[w] - s->started_ns[w]);
		s->ends_ns[w] = CLOCK_NEVER;
		s->handled++;
	}
}

static void hand_out(struct sim *s)
{
	if (!budget_may_hand_out(&s->budget, s->now_ns))
		s->unread = 0; /* they go back */
	for (unsigned w = 0; w < s->workers && s->unread > 0; w++) {
		if (s->ends_ns[w] != CLOCK_NEVER)
			continue;
		s->unread--;
		s->started_ns[w] = s->now_ns;
		s->ends_ns[w] = s->now_ns + handling_ns(s);
	}
}

static unsigned receive(struct sim *s)
{
	unsigned n = 0;

	for (; s->arrival_ns <= s->now_ns && s->unread + n < WINDOW; n++) {
		int64_t delay_ns = s->now_ns - s->arrival_ns;

		s->sum_delays_ns += delay_ns;
		if (delay_ns > s->worst_delay_ns)
			s->worst_delay_ns = delay_ns;
		s->arrival_ns = clock_add(
			s->arrival_ns, (int64_t)((double)s->gap_ns * 2 * draw(s)));
	}
	s->received += n;
	return n;
}

/* When the next poll is to be made; NEVER also when it would come too late. */
static int64_t next_poll(struct sim *s)
{
	int64_t next_ns;

	poller_set_full(&s->poller, s->unread == WINDOW);
	next_ns = poller_next(&s->poller, s->now_ns);
	return budget_next_poll_allowed(&s->budget, next_ns) ? next_ns : CLOCK_NEVER;
}

static void poll_if_due(struct sim *s)
{
	unsigned n;

	if (next_poll(s) > s->now_ns)
		return;
	s->polled_ns[s->poller.polls_total % POLLS_KEPT] = s->now_ns;
	poller_begin(&s->poller);
	n = receive(s);
	s->unread += n;
	poller_result(&s->poller, n, n > 0, CLOCK_NEVER, s->now_ns, draw(s));
}

static int64_t first_end(const struct sim *s)
{
	int64_t first_ns = CLOCK_NEVER;

	for (unsigned w = 0; w < s->workers; w++)
		first_ns = s->ends_ns[w] < first_ns ? s->ends_ns[w] : first_ns;
	return first_ns;
}

static int64_t ends_at(struct sim *s)
{
	return budget_end(&s->budget, first_end(s) != CLOCK_NEVER, s->unread > 0,
		poller_next(&s->poller, s->now_ns), s->now_ns);
}

static int64_t min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Runs to its end. Returns whether every handling came to its own. */
static bool run(struct sim *s)
{
	for (;;) {
		finish(s);
		hand_out(s);
		poll_if_due(s);
		hand_out(s);
		if (ends_at(s) <= s->now_ns)
			return first_end(s) == CLOCK_NEVER;
		s->now_ns = min(min(ends_at(s), next_poll(s)), first_end(s));
	}
}

static const struct budget_config minute = {
	.run_for_ns = STOP,
	.estimated_ns = 2 * S,
	.tolerance = 5,
};

/* idle_time=5s, as run_for implies it */
static const struct backoff_config five_seconds = {
	.floor_ns = 5 * S,
	.ceiling_ns = 5 * S,
	.factor = 2,
	.jitter_percent = 20,
};

/* The scheduled job; its queue is empty. */
static struct sim job(uint64_t seed)
{
	struct sim s = {
		.random = seed,
		.workers = 1,
		.arrival_ns = CLOCK_NEVER,
		.average_ns = 1 * S,
	};

	budget_init(&s.budget, &minute, 0);
	poller_init(&s.poller, &five_seconds, true, 0);
	for (int w = 0; w < WORKERS_MAX; w++)
		s.ends_ns[w] = CLOCK_NEVER;
	return s;
}

static double seconds(int64_t ns)
{
	return (double)ns / (double)S;
}

TEST(a_queue_that_is_never_empty)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct sim s = job(seed);

		s.arrival_ns = 0;
		CHECK(run(&s));
		printf("# run %2d: %" PRId64 " handled, ended at %.3f s\n", (int)seed,
			s.handled, seconds(s.now_ns));
		CHECK(s.now_ns >= 54 * S && s.now_ns <= 56 * S);
		CHECK(s.handled >= 53);
	}
}

TEST(a_queue_that_is_empty)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct sim s = job(seed);

		CHECK(run(&s));
		printf("# run %2d: %d polls, ended at %.3f s\n", (int)seed,
			(int)s.poller.polls_total, seconds(s.now_ns));
		CHECK(s.now_ns >= 50 * S && s.now_ns <= 60 * S);
		CHECK(s.poller.polls_total >= 10 && s.poller.polls_total <= 13);
	}
}

/* Only what comes after the last poll is left to the next run. */
TEST(a_message_just_after_a_poll_waits_for_the_next_poll)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct sim empty = job(seed);

		CHECK(run(&empty));
		for (unsigned i = 0; i < empty.poller.polls_total; i++) {
			struct sim s = job(seed);
			bool last = i + 1 == empty.poller.polls_total;

			s.arrival_ns = empty.polled_ns[i] + 1;
			s.gap_ns = CLOCK_NEVER / 2;
			CHECK(run(&s));
			CHECK_INT(s.handled, last ? 0 : 1);
			CHECK(s.worst_delay_ns <= 5 * S);
		}
	}
}

TEST(a_back_off_beyond_the_end_ends_the_run)
{
	struct backoff_config cfg = {
		.floor_ns = 1 * S, .ceiling_ns = 60 * S, .factor = 2};
	struct sim s = job(1);

	poller_init(&s.poller, &cfg, true, 0);
	CHECK(run(&s));
	CHECK_INT(s.now_ns, 31 * S); /* 0 1 3 7 15 31; the next would be at 63 */
	CHECK_INT(s.poller.polls_total, 6);
}

/* Any estimate that is possible, one or several workers, a full or a slow queue. */
static struct sim workload(uint64_t seed)
{
	struct sim s = job(seed * 7919);
	struct budget_config cfg = minute;

	s.average_ns = (int64_t)((double)(50 * MS) * pow(11.9 / 0.05, draw(&s)));
	s.workers = 1 + (unsigned)(draw(&s) * WORKERS_MAX);
	s.low = -draw(&s);
	s.high = draw(&s);
	s.arrival_ns = 0;
	s.gap_ns = draw(&s) < 0.5 ? 0 : (int64_t)((double)s.average_ns * 8 * draw(&s));
	cfg.estimated_ns = s.average_ns;
	budget_init(&s.budget, &cfg, 0);
	return s;
}

#define WORKLOADS 10000

/* Runs them all; returns how many had to leave a handling at stop_before. */
static int run_workloads(enum kind kind, bool never_empty)
{
	int64_t latest_ns = 0, handled = 0;
	int cut = 0;

	for (uint64_t seed = 1; seed <= WORKLOADS; seed++) {
		struct sim s = workload(seed);

		s.kind = kind;
		s.gap_ns = never_empty ? 0 : s.gap_ns;
		cut += !run(&s);
		CHECK(s.now_ns <= STOP);
		latest_ns = s.now_ns > latest_ns ? s.now_ns : latest_ns;
		handled += s.handled;
	}
	printf("# %d workloads, %" PRId64 " handled, latest end %.3f s, %d cut\n",
		WORKLOADS, handled, seconds(latest_ns), cut);
	return cut;
}

/* Then a handling is shorter than the margin before which it was handed out. */
TEST(within_a_factor_four_of_the_mean_so_far_none_is_cut)
{
	CHECK_INT(run_workloads(OF_SEEN, false), 0);
}

TEST(steady_handlings_are_never_cut)
{
	CHECK_INT(run_workloads(STEADY, false), 0);
}

/*
 * Where the average is not what was seen but what is to come, luck decides. No rule
 * rules that out: after n handlings of t each the average may still be 4 t, and the
 * next handling 16 t; to be sure of it a run with steady handlings of 1 s would end
 * at 44 s, and not between 54 and 56. So it is the tolerance that makes it rare, and
 * the run ends in time all the same. Over 100,000 workloads: 19 and 24.
 */
TEST(within_a_factor_four_of_the_average_nearly_none_is_cut)
{
	CHECK(run_workloads(OF_AVERAGE, true) <= 3);
	CHECK(run_workloads(OF_AVERAGE, false) <= 5);
}

/* ---- a day ---- */

static struct sim day(const struct backoff_config *cfg, int64_t days)
{
	struct budget_config long_run = {.run_for_ns = days * 24 * HOUR};
	struct sim s = job(1);

	s.average_ns = 1;
	budget_init(&s.budget, &long_run, 0);
	poller_init(&s.poller, cfg, true, 0);
	return s;
}

#define DAYS 100

/* Polls of one day without a message; delays of one an hour over many days. */
static void tell_day(const char *what, const struct backoff_config *cfg,
	unsigned polls_max, int64_t delay_max_ns)
{
	struct sim idle = day(cfg, 1), busy = day(cfg, DAYS);
	unsigned polls;

	CHECK(run(&idle));
	polls = (unsigned)idle.poller.polls_total;
	busy.arrival_ns = HOUR / 2;
	busy.gap_ns = HOUR;
	CHECK(run(&busy));
	printf("# %s: %u polls in an idle day; one message an hour waits %.1f s at worst, "
	       "%.1f s on average\n",
		what, polls, seconds(busy.worst_delay_ns),
		seconds(busy.sum_delays_ns) / (double)busy.received);
	CHECK(busy.received > 20 * DAYS);
	CHECK(polls <= polls_max);
	CHECK(busy.worst_delay_ns <= delay_max_ns);
}

TEST(an_idle_day)
{
	struct backoff_config every_second = {
		.floor_ns = S, .ceiling_ns = S, .factor = 2};
	struct backoff_config back_off = {
		.floor_ns = S, .ceiling_ns = 60 * S, .factor = 2, .jitter_percent = 20};

	tell_day("fixed 1 s", &every_second, 24 * 3600, S);
	tell_day("back-off 1..60 s", &back_off, 1600, 60 * S);
}
