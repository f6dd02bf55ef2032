/* SPDX-License-Identifier: MIT */
#include "budget.h"

#include "../base/clock.h"

static bool bounded(const struct budget *b)
{
	return b->cfg.run_for_ns > 0;
}

/* Written so that a tolerance that is not a number is refused. */
bool budget_possible(const struct budget_config *cfg)
{
	if (cfg->run_for_ns == 0)
		return true;
	return cfg->tolerance >= 0 &&
	       (double)cfg->estimated_ns * cfg->tolerance < (double)cfg->run_for_ns;
}

void budget_init(struct budget *b, const struct budget_config *cfg, int64_t now_ns)
{
	*b = (struct budget){.cfg = *cfg, .start_ns = now_ns};
}

void budget_configure(struct budget *b, const struct budget_config *cfg)
{
	b->cfg = *cfg;
}

/*
 * With n handlings so far, their sum is average * n + rest, 0 <= rest < n. One
 * more changes the sum relative to average * (n + 1) by its distance from the
 * average, so neither the sum itself, which could overflow, nor a rounded mean,
 * which would drift, is ever needed.
 */
void budget_observe(struct budget *b, int64_t handling_ns)
{
	int64_t rest = b->rest_ns + (handling_ns > 0 ? handling_ns : 0) - b->average_ns;
	int64_t step;

	b->handled++;
	step = rest / b->handled;
	if (rest % b->handled < 0)
		step--;
	b->average_ns += step;
	b->rest_ns = rest - step * b->handled;
}

static int64_t margin(const struct budget *b)
{
	int64_t each_ns = b->handled > 0 ? b->average_ns : b->cfg.estimated_ns;
	double ns = (double)each_ns * b->cfg.tolerance;

	return ns < (double)CLOCK_NEVER ? (int64_t)ns : CLOCK_NEVER;
}

static int64_t stop_before(const struct budget *b)
{
	return clock_add(b->start_ns, b->cfg.run_for_ns);
}

int64_t budget_hand_out_until(const struct budget *b)
{
	return bounded(b) ? stop_before(b) - margin(b) : CLOCK_NEVER;
}

bool budget_may_hand_out(struct budget *b, int64_t now_ns)
{
	if (now_ns >= budget_hand_out_until(b))
		b->closed = true;
	return !b->closed;
}

bool budget_next_poll_allowed(const struct budget *b, int64_t next_poll_ns)
{
	if (next_poll_ns == CLOCK_NEVER)
		return true;
	return !b->closed && next_poll_ns < budget_hand_out_until(b);
}

static bool sleeps_past_the_end(const struct budget *b, int64_t next_poll_ns)
{
	return next_poll_ns != CLOCK_NEVER && next_poll_ns >= stop_before(b);
}

int64_t budget_end(const struct budget *b, bool handling, bool unread,
	int64_t next_poll_ns, int64_t now_ns)
{
	int64_t end_ns = budget_hand_out_until(b);

	if (!bounded(b))
		return CLOCK_NEVER;
	if (handling)
		end_ns = stop_before(b);
	else if (b->closed || (!unread && sleeps_past_the_end(b, next_poll_ns)))
		end_ns = now_ns;
	return end_ns > now_ns ? end_ns : now_ns;
}

bool budget_over(const struct budget *b, int64_t now_ns)
{
	return bounded(b) && now_ns >= stop_before(b);
}

int64_t budget_average_ns(const struct budget *b)
{
	return b->handled > 0 ? b->average_ns : -1;
}

int64_t budget_margin_ns(const struct budget *b)
{
	return bounded(b) ? margin(b) : -1;
}

int64_t budget_stop_in_ns(const struct budget *b, int64_t now_ns)
{
	if (!bounded(b))
		return -1;
	return budget_over(b, now_ns) ? 0 : stop_before(b) - now_ns;
}
