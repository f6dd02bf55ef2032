/* SPDX-License-Identifier: MIT */
/* The edge of share.h: tells the other mounts of this queue, and hears them. */
#include <stdlib.h>

#include "claim.h"

/* After giving messages back, this mount lets the others poll first. */
#define HOLD_OFF_NS NS_PER_S

static struct share_facts facts(const struct engine *e)
{
	return (struct share_facts){
		.unread = e->n_ready,
		.consumed_ns = e->consumed_ns,
		.gave_ns = e->gave_ns,
		.waiting = !TAILQ_EMPTY(&e->waiters),
		.visibility_ns = e->cfg.lease.visibility_ns,
		.now_ns = clock_wall(),
	};
}

static bool is_hungry(const struct engine *e)
{
	struct share_facts f = facts(e);

	return e->cfg.receives && !e->stopping && !e->draining && !e->poller.paused &&
	       e->poller.empty_in_a_row && share_is_hungry(&f);
}

static void give(struct engine *e, int64_t peer_consumed_ns)
{
	struct share_facts f = facts(e);
	unsigned n = share_give(&f, peer_consumed_ns);

	if (!n)
		return;
	log_debug("share", "giving back n=%u of=%u", n, e->n_ready);
	e->gave_ns = f.now_ns;
	e->hold_off_ns = clock_mono() + HOLD_OFF_NS;
	window_give_back(e, n);
}

static void answered(struct driver_req *req)
{
	struct engine *e = req->arg;

	engine_answered(e);
	e->peers_asked = false;
	e->n_peers = req->u.peers.n_peers;
	if (req->err)
		engine_error(e, "peers", req);
	else if (req->u.peers.any.hungry && e->n_ready)
		give(e, req->u.peers.any.consumed_ns);
	free(req);
	if (e->peers_again)
		peers_tell(e);
	else
		peers_check(e);
	engine_check_end(e);
}

/* Tells the own appetite and asks for the others'. */
void peers_tell(struct engine *e)
{
	struct driver_req *req;

	if (!driver_can(e->driver, DRIVER_PEERS_KNOWN) || !e->cfg.receives)
		return;
	e->peers_again = e->peers_asked;
	if (e->peers_asked)
		return;
	req = calloc(1, sizeof(*req));
	if (!req)
		return;
	e->peers_asked = true;
	e->told_hungry = is_hungry(e);
	req->op = DRIVER_PEERS;
	req->done = answered;
	req->arg = e;
	req->u.peers.mine.hungry = e->told_hungry;
	req->u.peers.mine.consumed_ns = e->consumed_ns;
	engine_submit(e, req);
}

/* A mount that gave its last message away becomes hungry by the clock alone. */
static void arm(struct engine *e)
{
	int64_t at = CLOCK_NEVER;

	if (!e->n_ready && !e->told_hungry && e->gave_ns && e->n_peers)
		at = clock_mono() + e->gave_ns + e->cfg.lease.visibility_ns -
		     clock_wall();
	loop_timer_set(e->loop, &e->hungry_timer, at);
}

/* Tells the others, where there are any, when the own hunger has changed. */
void peers_check(struct engine *e)
{
	if (!e->n_peers || is_hungry(e) == e->told_hungry) {
		arm(e);
		return;
	}
	loop_timer_clear(e->loop, &e->hungry_timer);
	peers_tell(e);
}

/* Another process changed the queue: perhaps it is hungry, or new. */
void peers_changed(struct engine *e)
{
	if (e->n_ready || !e->n_peers || is_hungry(e) != e->told_hungry)
		peers_tell(e);
}

static void check(void *arg)
{
	peers_check(arg);
}

void peers_init(struct engine *e)
{
	loop_timer_init(&e->hungry_timer, check, e);
}
