/* SPDX-License-Identifier: MIT */
/*
 * How a run ends by itself: by its budget (budget.h), or because nothing was
 * handled for a while (idle.h). Both decide; here they are told what happens,
 * and their one timer is kept.
 *
 * Near its end a bounded run drains: what is unread goes back, nothing is
 * handed out any more, and it has finished with the last handling, at the
 * latest at stop_before. The timer may come late, so whoever hands out asks the
 * budget itself (engine_hands_out()); the timer only does what follows from it.
 */
#include "claim.h"

static int64_t sooner(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t end_ns(const struct engine *e, int64_t now)
{
	return budget_end(&e->budget, e->n_in_flight > 0, e->n_ready > 0,
		engine_next_poll_ns(e), now);
}

/* When one of the two has something to do. */
static int64_t next_ns(const struct engine *e, int64_t now)
{
	int64_t at = sooner(end_ns(e, now), idle_due(&e->idle));

	return e->draining ? at : sooner(at, budget_hand_out_until(&e->budget));
}

void run_end_check(struct engine *e)
{
	bool ended = e->stopping || e->end_reason;

	loop_timer_set(
		e->loop, &e->run_timer, ended ? CLOCK_NEVER : next_ns(e, clock_mono()));
}

static void due(void *arg)
{
	struct engine *e = arg;
	int64_t now = clock_mono();

	if (!budget_may_hand_out(&e->budget, now))
		engine_drain(e);
	if (end_ns(e, now) <= now)
		engine_finish(e, "the time of the run is used");
	else if (!e->end_reason && idle_fire(&e->idle, now))
		engine_finish(e, "nothing was handled for idle_timeout");
	run_end_check(e);
}

void run_end_init(struct engine *e)
{
	int64_t now = clock_mono();

	budget_init(&e->budget, &e->cfg.budget, now);
	idle_init(&e->idle, e->cfg.idle_timeout_ns, now);
	loop_timer_init(&e->run_timer, due, e);
}

void run_end_configure(struct engine *e)
{
	budget_configure(&e->budget, &e->cfg.budget);
	if (e->idle.timeout_ns != e->cfg.idle_timeout_ns)
		idle_rearm(&e->idle, e->cfg.idle_timeout_ns, clock_mono());
	run_end_check(e);
}

void run_end_stop(struct engine *e)
{
	idle_cancel(&e->idle);
	loop_timer_clear(e->loop, &e->run_timer);
}

bool engine_hands_out(struct engine *e)
{
	return !e->stopping && !e->draining &&
	       budget_may_hand_out(&e->budget, clock_mono());
}

/* ---- handlings ---- */

void run_end_began(struct engine *e)
{
	idle_begin(&e->idle);
	run_end_check(e);
}

/* What began under an earlier daemon says nothing about this run: its owner may
 * have been gone for long. */
void run_end_observe(struct engine *e, const struct message *m, int64_t until_ns)
{
	int64_t since_ns;

	if (!m->claim || m->claim->t.claimed_ns < e->budget.start_ns)
		return;
	since_ns = m->claim->t.claimed_ns;
	budget_observe(&e->budget, until_ns - since_ns);
	histogram_observe(&e->handling, until_ns - since_ns);
}

void run_end_ended(struct engine *e)
{
	idle_end(&e->idle, clock_mono());
	run_end_check(e);
}

void run_end_stats(const struct engine *e, struct engine_stats *out, int64_t now)
{
	out->handling = &e->handling;
	out->avg_handling_ns = budget_average_ns(&e->budget);
	out->margin_ns = budget_margin_ns(&e->budget);
	out->stop_in_ns = budget_stop_in_ns(&e->budget, now);
	out->idle = idle_state(&e->idle);
	out->idle_left_ns = idle_left_ns(&e->idle, now);
}
