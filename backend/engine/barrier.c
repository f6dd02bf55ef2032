/* SPDX-License-Identifier: MIT */
/*
 * "Everything so far is durable": each deletion and each send gets a ticket
 * when it is taken on and returns it when the backend has confirmed it. One
 * who syncs waits until no ticket older than his is out, and then for the
 * driver's own DRIVER_SYNC.
 *
 * Tickets are kept in a list in the order they were given out: its head is the
 * oldest one that is out.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine_int.h"

static void look(void *arg);

void barrier_init(struct engine *e)
{
	e->barrier.next_ticket = 1;
	TAILQ_INIT(&e->barrier.tickets);
	TAILQ_INIT(&e->barrier.syncs);
	loop_task_init(&e->barrier.task, look, e);
}

void barrier_enter(struct engine *e, struct ticket *t)
{
	t->number = e->barrier.next_ticket++;
	t->open = true;
	TAILQ_INSERT_TAIL(&e->barrier.tickets, t, link);
}

void barrier_leave(struct engine *e, struct ticket *t)
{
	if (!t->open)
		return;
	t->open = false;
	TAILQ_REMOVE(&e->barrier.tickets, t, link);
	if (!TAILQ_EMPTY(&e->barrier.syncs))
		loop_task_queue(e->loop, &e->barrier.task);
}

static uint64_t oldest_open(const struct engine *e)
{
	const struct ticket *t = TAILQ_FIRST(&e->barrier.tickets);

	return t ? t->number : UINT64_MAX;
}

static void finish(struct engine *e, uint64_t upto, int err)
{
	struct engine_sync *s;

	while ((s = TAILQ_FIRST(&e->barrier.syncs)) && s->ticket <= upto) {
		TAILQ_REMOVE(&e->barrier.syncs, s, link);
		s->queued = false;
		s->fn(s, err);
	}
}

static void synced(struct driver_req *req)
{
	struct engine *e = req->arg;
	uint64_t upto = e->barrier.syncing_ticket;
	int err = req->err;

	engine_answered(e);
	if (err)
		engine_error(e, "sync", req);
	e->barrier.syncing = false;
	free(req);
	finish(e, upto, err ? -EIO : 0);
	look(e);
	engine_check_end(e);
}

/* Starts the driver's sync when the first in line waits for nothing else. */
static void look(void *arg)
{
	struct engine *e = arg;
	struct engine_sync *s = TAILQ_FIRST(&e->barrier.syncs);
	struct driver_req *req;

	if (!s || e->barrier.syncing || oldest_open(e) < s->ticket)
		return;
	req = calloc(1, sizeof(*req));
	if (!req) {
		finish(e, s->ticket, -EIO);
		return;
	}
	e->barrier.syncing = true;
	e->barrier.syncing_ticket = s->ticket;
	req->op = DRIVER_SYNC;
	req->done = synced;
	req->arg = e;
	engine_submit(e, req);
}

void barrier_fail(struct engine *e, int err)
{
	finish(e, e->barrier.next_ticket, err);
}

void engine_sync(struct engine *e, struct engine_sync *s)
{
	s->ticket = e->barrier.next_ticket;
	s->queued = true;
	TAILQ_INSERT_TAIL(&e->barrier.syncs, s, link);
	ledger_flush(e);
	outbox_flush(e);
	loop_task_queue(e->loop, &e->barrier.task);
}

void engine_sync_cancel(struct engine *e, struct engine_sync *s)
{
	if (!s->queued)
		return;
	TAILQ_REMOVE(&e->barrier.syncs, s, link);
	s->queued = false;
}
