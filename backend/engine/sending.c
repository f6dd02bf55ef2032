/* SPDX-License-Identifier: MIT */
/*
 * Sending what is complete.
 *
 * An embedded backend takes all at once and in order: its batch is one commit.
 * A far one is asked once per message, several at a time, and answers in any
 * order. So that the messages of one writer arrive in his order, the next of
 * his is sent only when the one before it was accepted; those of different
 * writers go side by side. What a writer is: same_writer().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

/* How far beyond the first of the outbox others are looked for. */
#define LOOK_AHEAD 64
/* How far back the writer's message before is looked for. */
#define LOOK_BACK 1024

static void outbox_retry_later(struct engine *e, const struct driver_req *req)
{
	int64_t sleep, after = engine_retry_after(e, req);

	barrier_fail(e, -EIO);
	if (e->outbox_failed && loop_timer_is_set(&e->outbox_timer))
		return; /* the same outage */
	sleep = backoff_empty(&e->outbox_retry, engine_random(e));
	if (after > sleep)
		sleep = after;
	e->outbox_failed = true;
	loop_timer_set(e->loop, &e->outbox_timer, clock_add(clock_mono(), sleep));
}

/* The backend will never take it as it is: back to .drafts/, for people. */
static bool is_refused(int err)
{
	return err == -EMSGSIZE || err == -EILSEQ || err == -EINVAL;
}

/* The backend said something about a message: it is there, and the next ones have
 * their turn. */
static void go_on(struct engine *e)
{
	bool failed = e->outbox_failed;

	if (failed) {
		e->outbox_failed = false;
		loop_timer_clear(e->loop, &e->outbox_timer);
		backoff_hit(&e->outbox_retry);
	}
	if (failed || driver_can(e->driver, DRIVER_FAR))
		outbox_flush(e);
}

/* The draft is a message already: the answer of an earlier try was lost. */
static bool was_sent_before(const struct engine *e, const struct driver_req *req)
{
	return req->err == -ENOENT && req->op == DRIVER_DRAFT_SEND &&
	       !driver_can(e->driver, DRIVER_FAR);
}

static void send_answered(struct driver_req *req)
{
	struct store_req *s = req->arg;
	struct engine *e = store_answered(s, "sending");
	struct draft *d = s->d;

	d->sending = false;
	e->n_sending--;
	if (is_refused(req->err)) {
		draft_take_back(e, d);
		go_on(e);
	} else if (req->err && !was_sent_before(e, req)) {
		outbox_retry_later(e, req);
	} else {
		sent_add(e, d);
		go_on(e);
	}
	store_free(s);
	engine_check_end(e);
}

static struct store_req *send_req(struct engine *e, struct draft *d)
{
	bool empty = !d->store_id;
	struct store_req *s =
		store_req(e, d, empty ? DRIVER_SEND : DRIVER_DRAFT_SEND, send_answered);

	if (!s)
		return NULL;
	s->name = strdup(d->name);
	s->body = empty ? blob_create("", 0) : blob_ref(d->stored);
	if (!s->name || !s->body) {
		store_free(s);
		return NULL;
	}
	return s;
}

static void send_now(struct engine *e, struct draft *d)
{
	struct store_req *s = send_req(e, d);

	if (!s) {
		loop_timer_set(e->loop, &e->outbox_timer, clock_mono() + NS_PER_S);
		return;
	}
	d->sending = true;
	e->n_sending++;
	if (s->req.op == DRIVER_SEND) {
		memset(&s->req.u, 0, sizeof(s->req.u));
		s->req.u.send.given = s->name;
		s->req.u.send.body = s->body;
	} else {
		s->req.u.draft.given = s->name;
		s->req.u.draft.body = s->body;
	}
	store_submit(s);
}

/* ---- whose turn it is ---- */

static const struct proc *parent_of(const struct owner_chain *c)
{
	return c->n > 1 ? c->p[1] : NULL;
}

/*
 * Whether A, complete before B, must be with the service before B is sent: both
 * are of one writer. That is one process; a process and then a command of it; or
 * a command that has ended, and then its parent or another command of that. Of
 * drafts of an earlier life nothing is known: they go in order.
 */
static bool same_writer(struct engine *e, const struct draft *a, const struct draft *b)
{
	const struct owner_chain *x = &a->creators, *y = &b->creators;

	if (!x->n || !y->n)
		return x->n == y->n;
	if (x->p[0] == y->p[0] || x->p[0] == parent_of(y))
		return true;
	return parent_of(x) &&
	       (parent_of(x) == parent_of(y) || parent_of(x) == y->p[0]) &&
	       !procs_check_alive(e->procs, x->p[0]);
}

/* D, the last of the outbox, waits for its writer's message before it. */
static void stand_in_line(struct engine *e, struct draft *d)
{
	struct draft *before = TAILQ_PREV(d, draft_list, link);

	if (!driver_can(e->driver, DRIVER_FAR))
		return;
	for (unsigned i = 0; before && i < LOOK_BACK; i++) {
		if (same_writer(e, before, d)) {
			d->follows = before;
			TAILQ_INSERT_TAIL(&before->followers, d, follow_link);
			return;
		}
		before = TAILQ_PREV(before, draft_list, link);
	}
}

static bool is_turn(const struct engine *e, const struct draft *d)
{
	if (!driver_can(e->driver, DRIVER_FAR))
		return true;
	return d->sealed && !d->follows && e->n_sending < OUTBOX_FAR_MAX;
}

/* Sends what may be sent now. In an outage only the first one knocks. */
static void send_due(struct engine *e)
{
	struct draft *d = TAILQ_FIRST(&e->outbox);

	for (unsigned i = 0; d && i < LOOK_AHEAD; d = TAILQ_NEXT(d, link), i++)
		if (!d->sending && is_turn(e, d))
			send_now(e, d);
}

static void sealed(struct driver_req *req)
{
	struct store_req *s = req->arg;
	struct engine *e = store_answered(s, "sealing a draft");
	struct draft *d = s->d;

	d->sealing = false;
	d->sealed = true; /* if not: after a crash it is in .drafts/ */
	store_free(s);
	if (!e->outbox_failed)
		send_due(e);
	engine_check_end(e);
}

/* A far service may be away for days: the store is to know what is complete. */
static void seal(struct engine *e, struct draft *d)
{
	struct store_req *s;

	if (!driver_can(e->driver, DRIVER_FAR) || d->sealed || d->sealing)
		return;
	s = store_req(e, d, DRIVER_DRAFT_SEAL, sealed);
	if (!s) {
		d->sealed = true;
		return;
	}
	d->sealing = true;
	store_submit(s);
}

/* Into the outbox: from now on it is the backend's as soon as it takes it. */
void outbox_send(struct engine *e, struct draft *d)
{
	draft_unlist(e, d);
	d->state = DRAFT_SENDING;
	if (!d->ticket.open)
		barrier_enter(e, &d->ticket);
	TAILQ_INSERT_TAIL(&e->outbox, d, link);
	e->n_outbox++;
	if (d->stored)
		buf_fini(&d->data);
	stand_in_line(e, d);
	seal(e, d);
	if ((!e->outbox_failed || TAILQ_FIRST(&e->outbox) == d) && is_turn(e, d))
		send_now(e, d);
	engine_changed(e);
}

static void retry(void *arg)
{
	struct engine *e = arg;
	struct draft *d = TAILQ_FIRST(&e->outbox);

	if (d && !d->sending)
		send_now(e, d);
	if (d && !e->outbox_failed)
		outbox_flush(e);
}

void outbox_flush(struct engine *e)
{
	struct draft *d;

	if (driver_can(e->driver, DRIVER_FAR)) {
		send_due(e);
		return;
	}
	TAILQ_FOREACH (d, &e->outbox, link)
		if (!d->sending)
			send_now(e, d);
}

void outbox_retry_now(struct engine *e)
{
	if (e->outbox_failed)
		retry(e);
}

void sending_init(struct engine *e)
{
	static const struct backoff_config cfg = {
		.floor_ns = NS_PER_S,
		.ceiling_ns = 60 * NS_PER_S,
		.factor = 2,
		.jitter_percent = 20,
	};

	loop_timer_init(&e->outbox_timer, retry, e);
	backoff_init(&e->outbox_retry, &cfg);
}
