/* SPDX-License-Identifier: MIT */
/*
 * The window on a far queue: no larger than what is handled within a lease,
 * and not held for nothing (the edge of patience.h).
 */
#include "claim.h"

/* The other mounts of this machine are told of what is given back, and poll at
 * once: it is to be seen only after that, by whoever polls then. */
#define ASIDE_NS NS_PER_S

unsigned far_window(const struct engine *e)
{
	int64_t average = budget_average_ns(&e->budget);
	int64_t fit;

	if (!driver_can(e->driver, DRIVER_FAR) || average <= 0)
		return e->cfg.window;
	fit = e->cfg.lease.visibility_ns / average;
	if (e->n_in_flight > 1)
		fit = fit > INT32_MAX / e->n_in_flight ? INT32_MAX : fit * e->n_in_flight;
	if (fit < 1)
		return 1;
	return fit < e->cfg.window ? (unsigned)fit : e->cfg.window;
}

static bool is_interested(const struct engine *e)
{
	return !TAILQ_EMPTY(&e->waiters) || e->n_in_flight ||
	       clock_wall() - e->consumed_ns < e->cfg.lease.visibility_ns;
}

/* What is let go for a newcomer is left until even one that found nothing for
 * long has polled, as often as this mount does. */
static int64_t rest_ns(const struct engine *e, struct patience_decision d)
{
	int64_t poll = e->cfg.backoff.ceiling_ns;

	if (d.what == PATIENCE_BAIT && poll > d.rest_ns)
		return ASIDE_NS + poll;
	return ASIDE_NS + d.rest_ns;
}

void far_look(struct engine *e)
{
	int64_t now = clock_mono();
	struct patience_decision d;

	if (!e->n_ready)
		return;
	d = patience_decide(
		&e->patience, is_interested(e), e->cfg.lease.visibility_ns, now);
	if (d.what == PATIENCE_HOLD)
		return;
	log_debug("share", "nobody reads here: giving back n=%u",
		d.what == PATIENCE_BAIT ? 1 : e->n_ready);
	e->hold_off_ns = clock_add(now, rest_ns(e, d));
	window_let_go(e, d.what == PATIENCE_BAIT ? 1 : UINT32_MAX, ASIDE_NS);
	engine_changed(e);
}

void far_renewal(struct engine *e)
{
	if (!driver_can(e->driver, DRIVER_FAR) || !e->n_ready)
		return;
	if (!is_interested(e))
		depth_count(e); /* for the next look */
	far_look(e);
}
