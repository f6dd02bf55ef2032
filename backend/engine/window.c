/* SPDX-License-Identifier: MIT */
/* The window: messages leased here that nobody has claimed, in queue order. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "claim.h"

/* What is claimed stays in memory; beyond so many windows polling stops. */
#define CLAIMED_WINDOWS      16
#define CLAIMED_WINDOW_BYTES 4

const struct message_list *engine_ready(const struct engine *e)
{
	return &e->ready;
}

const struct message_list *engine_in_flight(const struct engine *e)
{
	return &e->in_flight;
}

/* Room is asked for again only when a good part of the window is free, so that
 * a consumer does not cost a poll per message. */
void window_check_room(struct engine *e)
{
	unsigned max = far_window(e);
	size_t bytes = e->cfg.window_bytes;
	bool full = e->poller.full;

	if (e->n_ready >= max || e->ready_bytes >= bytes ||
		e->n_in_flight >= e->cfg.window * CLAIMED_WINDOWS ||
		e->in_flight_bytes >= bytes * CLAIMED_WINDOW_BYTES)
		full = true;
	else if (e->n_ready <= max - (max + 3) / 4 && e->ready_bytes <= bytes - bytes / 4)
		full = false;
	if (full == e->poller.full)
		return;
	poller_set_full(&e->poller, full);
	engine_poll_soon(e);
}

static void tell_ready(struct engine *e)
{
	bool is = e->n_ready > 0;

	if (is == e->was_ready)
		return;
	e->was_ready = is;
	if (e->ev.ready_changed)
		e->ev.ready_changed(e->ev.arg, is);
}

void window_add_ready(struct engine *e, struct message *m)
{
	m->state = MESSAGE_READY;
	message_insert(&e->ready, m);
	e->n_ready++;
	e->ready_bytes += m->d.size;
	tell_ready(e);
}

void window_take_ready(struct engine *e, struct message *m)
{
	TAILQ_REMOVE(&e->ready, m, link);
	e->n_ready--;
	e->ready_bytes -= m->d.size;
	tell_ready(e);
	window_check_room(e);
}

/* ---- lease deadlines ---- */

static void due_changed(struct engine *e)
{
	struct heap_node *n = heap_min(&e->due);

	loop_timer_set(e->loop, &e->due_timer, n ? n->key : CLOCK_NEVER);
}

void window_set_due(struct engine *e, struct message *m, int64_t at_ns)
{
	const struct heap_node *min = heap_min(&e->due);
	int64_t before = min ? min->key : CLOCK_NEVER;

	if (at_ns == CLOCK_NEVER)
		heap_remove(&e->due, &m->due);
	else if (heap_set(&e->due, &m->due, at_ns))
		log_error("window", "out of memory: a lease will not be renewed");
	min = heap_min(&e->due);
	if ((min ? min->key : CLOCK_NEVER) != before)
		due_changed(e);
}

/*
 * An unread message at its half-life: renew. Those due soon after go with it,
 * in one request and without a wake-up of their own.
 */
static void renew_unread(struct engine *e, struct message *m, int64_t now)
{
	int64_t visibility = e->cfg.lease.visibility_ns;

	m->renew_ns = visibility;
	window_set_due(e, m, lease_renew_at(now + visibility, visibility));
	ledger_want(e, m, WANT_RENEW);
}

/* Forgets M, whose lease is over; an answer about it may still come. */
static void lapse(struct engine *e, struct message *m)
{
	e->stats.leases_lost += m->state == MESSAGE_CLAIMED;
	e->ev.left(e->ev.arg, m);
	run_end_observe(e, m, clock_mono());
	window_detach(e, m);
	ledger_drop(e, m, ~0u);
	m->superseded = true;
	if (!m->busy)
		message_destroy(m);
}

/* Whether M, unread, waits for the answer to a renewal, of a service. */
static bool in_renewal(const struct engine *e, const struct message *m)
{
	return driver_can(e->driver, DRIVER_FAR) && (m->busy || m->wants & WANT_RENEW);
}

/*
 * An unread message whose lease is to be looked at. One whose renewal has failed
 * for a whole lease may be another machine's by now: who opened it here would do
 * what another is doing.
 */
static void look_unread(struct engine *e, struct message *m, int64_t now)
{
	int64_t end = m->d.lease_until_ns;

	if (!in_renewal(e, m)) {
		renew_unread(e, m, now);
		if (in_renewal(e, m) && end > now)
			window_set_due(e, m, end);
	} else if (end > now) {
		window_set_due(e, m, end);
	} else {
		lapse(e, m);
	}
}

static void due(void *arg)
{
	struct engine *e = arg;
	int64_t now = clock_mono();
	int64_t slack = e->cfg.lease.visibility_ns / 8;
	struct heap_node *n;

	far_renewal(e);
	while ((n = heap_min(&e->due)) && n->key <= now + slack) {
		struct message *m =
			(struct message *)((char *)n - offsetof(struct message, due));
		bool early = m->state == MESSAGE_READY && !in_renewal(e, m);

		if (n->key > now && !early)
			break;
		if (m->state == MESSAGE_READY)
			look_unread(e, m, now);
		else
			claim_look(e, m);
	}
	due_changed(e);
}

void window_init(struct engine *e)
{
	TAILQ_INIT(&e->ready);
	TAILQ_INIT(&e->in_flight);
	TAILQ_INIT(&e->waiters);
	loop_timer_init(&e->due_timer, due, e);
}

/* ---- coming and going ---- */

/*
 * A message that is received while this process still believes to hold it: its
 * lease ran out unnoticed (the machine slept). The old one has left.
 */
static void supersede(struct engine *e, const char *id)
{
	struct message *m = NULL;

	HASH_FIND_STR(e->held, id, m);
	if (!m)
		return;
	log_info("lease", "lost and received again id=%s", id);
	lapse(e, m);
}

/* Unread, and not to be received by anybody before DELAY_NS have passed. */
static void let_go(struct engine *e, struct message *m, int64_t delay_ns)
{
	e->ev.left(e->ev.arg, m);
	window_detach(e, m);
	m->given_back = true;
	m->final = (struct settle){
		.op = SETTLE_RELEASE, .delay_ns = delay_ns, .attempts = m->d.attempts};
	e->n_settling++;
	ledger_want(e, m, WANT_FINAL);
}

static void arrive_one(struct engine *e, struct driver_msg *d)
{
	struct message *m = message_create(d);

	if (m) {
		supersede(e, m->d.id);
		HASH_ADD_KEYPTR(hh, e->held, m->d.id, strlen(m->d.id), m);
	}
	if (!m || !table_took(hh, m)) {
		log_error(
			"window", "out of memory: a message waits for its lease to end");
		message_destroy(m);
		return;
	}
	m->serial = ++e->stats.received_total;
	if (m->d.record) {
		claim_restore(e, m);
		return;
	}
	window_add_ready(e, m);
	window_set_due(
		e, m, lease_renew_at(m->d.lease_until_ns, e->cfg.lease.visibility_ns));
	if (e->ev.arrived(e->ev.arg, m))
		let_go(e, m, NS_PER_S);
	window_serve_waiters(e);
}

void window_arrive(struct engine *e, struct driver_msg *msgs, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		arrive_one(e, &msgs[i]);
	if (e->stopping || e->draining || e->poller.paused)
		window_give_back(e, UINT32_MAX);
	window_check_room(e);
	peers_check(e);
}

/* Out of window or claims; what follows is a final wish, or freeing it. */
void window_detach(struct engine *e, struct message *m)
{
	heap_remove(&e->due, &m->due);
	HASH_DEL(e->held, m);
	if (m->state == MESSAGE_READY) {
		window_take_ready(e, m);
	} else if (m->state == MESSAGE_CLAIMED) {
		claim_leave_flight(e, m);
		window_check_room(e);
	}
	m->state = MESSAGE_SETTLING;
}

void window_give_back(struct engine *e, unsigned n)
{
	window_let_go(e, n, 0);
}

void window_let_go(struct engine *e, unsigned n, int64_t delay_ns)
{
	struct message *m;

	while (n-- > 0 && (m = TAILQ_LAST(&e->ready, message_list)))
		let_go(e, m, delay_ns);
}

void window_lost(struct engine *e, struct message *m, const char *why)
{
	e->stats.leases_lost += m->state == MESSAGE_CLAIMED;
	log_info("lease", "%s id=%s", why, m->d.id);
	e->ev.left(e->ev.arg, m);
	run_end_observe(e, m, clock_mono());
	window_detach(e, m);
	ledger_drop(e, m, ~0u);
	message_destroy(m);
	engine_poll_soon(e);
	engine_changed(e);
	engine_check_end(e);
}

/* ---- those who wait in .next ---- */

void window_serve_waiters(struct engine *e)
{
	struct engine_waiter *w;
	struct message *m;
	bool closed = !engine_hands_out(e);

	while ((w = TAILQ_FIRST(&e->waiters)) && (closed || !TAILQ_EMPTY(&e->ready))) {
		m = closed ? NULL : TAILQ_FIRST(&e->ready);
		w->err = m ? claim_start(e, m, w->caller, true) : 0;
		if (w->err)
			m = NULL;
		engine_next_cancel(e, w);
		w->fn(w, m);
	}
}

int engine_next(
	struct engine *e, struct engine_waiter *w, struct proc *caller, bool nonblock)
{
	if (nonblock && TAILQ_EMPTY(&e->ready) && engine_hands_out(e))
		return -EAGAIN;
	w->caller = procs_ref(caller);
	w->queued = true;
	TAILQ_INSERT_TAIL(&e->waiters, w, link);
	window_serve_waiters(e);
	if (w->queued)
		peers_check(e);
	return 0;
}

void engine_next_cancel(struct engine *e, struct engine_waiter *w)
{
	if (!w->queued)
		return;
	TAILQ_REMOVE(&e->waiters, w, link);
	w->queued = false;
	procs_unref(e->procs, w->caller);
	w->caller = NULL;
}

void window_fini(struct engine *e)
{
	struct message *m;

	loop_timer_clear(e->loop, &e->due_timer);
	HASH_CLEAR(hh, e->held);
	while ((m = TAILQ_FIRST(&e->ready))) {
		TAILQ_REMOVE(&e->ready, m, link);
		heap_remove(&e->due, &m->due);
		message_destroy(m);
	}
	while ((m = TAILQ_FIRST(&e->in_flight))) {
		TAILQ_REMOVE(&e->in_flight, m, link);
		heap_remove(&e->due, &m->due);
		claim_free(e, m);
		message_destroy(m);
	}
	heap_fini(&e->due);
}
