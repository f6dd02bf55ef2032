/* SPDX-License-Identifier: MIT */
/*
 * How many messages the queue has: counted soon after something happened, but
 * not all the time. A far service is asked seldom, since asking costs; what it
 * counts also tells whether other machines consume (patience.h).
 */
#include <stdlib.h>

#include "claim.h"

#define SOON_NS      (5 * NS_PER_MS)
#define EVERY_NS     (100 * NS_PER_MS)
#define FAR_EVERY_NS (10 * NS_PER_S)
/* With a poll that is made anyway. */
#define FAR_POLL_NS (60 * NS_PER_S)

static bool is_far(const struct engine *e)
{
	return driver_can(e->driver, DRIVER_FAR);
}

/* Who does not receive asks a service for nothing. */
static bool may_ask(const struct engine *e)
{
	return !e->stopping && (!is_far(e) || (e->cfg.receives && !e->poller.paused));
}

static void counted(struct driver_req *req)
{
	struct engine *e = req->arg;
	uint64_t depth = req->u.depth.waiting + req->u.depth.leased;

	engine_answered(e);
	e->depth_asked = false;
	e->counted_ns = clock_mono();
	if (req->err) {
		engine_error(e, "depth", req);
	} else {
		bool dead = e->dead_total != req->u.depth.dead;

		e->depth = depth;
		e->depth_known = true;
		e->dead_total = req->u.depth.dead;
		if (patience_counted(&e->patience, depth, e->n_settling, e->counted_ns) &&
			is_far(e))
			far_look(e);
		if (dead)
			dead_refresh(e);
	}
	free(req);
	engine_check_end(e);
}

void depth_count(struct engine *e)
{
	struct driver_req *req;

	if (e->depth_asked || !may_ask(e))
		return;
	req = calloc(1, sizeof(*req));
	if (!req)
		return;
	e->depth_asked = true;
	req->op = DRIVER_DEPTH;
	req->done = counted;
	req->arg = e;
	engine_submit(e, req);
}

/* An idle mount wakes up once, for a poll and a count. */
void depth_with_poll(struct engine *e)
{
	if (!is_far(e) || !e->counted_ns || clock_mono() - e->counted_ns >= FAR_POLL_NS)
		depth_count(e);
}

void engine_count_own(struct engine *e, int change)
{
	if (change > 0)
		e->depth++;
	else
		e->depth -= e->depth > 0;
	patience_own(&e->patience, change);
}

void engine_count_burial(struct engine *e)
{
	e->stats.buried_total++;
	e->dead_total++;
	engine_count_own(e, -1);
}

void engine_depth_soon(struct engine *e)
{
	int64_t soon, next;

	if (loop_timer_is_set(&e->depth_timer) || !may_ask(e))
		return;
	soon = clock_mono() + SOON_NS;
	next = e->counted_ns + (is_far(e) ? FAR_EVERY_NS : EVERY_NS);
	loop_timer_set(e->loop, &e->depth_timer, soon > next ? soon : next);
}

static void due(void *arg)
{
	depth_count(arg);
}

void depth_init(struct engine *e)
{
	loop_timer_init(&e->depth_timer, due, e);
}
