/* SPDX-License-Identifier: MIT */
/*
 * The ledger: what the driver has still to be told about messages, written
 * behind in batches.
 *
 * Problem: a deletion must not wait for the disk, and a disk (or a service)
 * must not be asked once per message. Rule: wishes are collected on the
 * message and its message is queued; a flush takes one wish of each queued
 * message into one request. A message whose settle is under way is queued
 * again when the answer has come, since the answer may bring a new receipt.
 * Ends of leases and renewals go out within FINAL_DELAY_NS, claim records
 * only after CLAIM_DELAY_NS: most messages are deleted before that, and their
 * records never have to be written.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "claim.h"

#define FINAL_DELAY_NS (2 * NS_PER_MS)
#define CLAIM_DELAY_NS (50 * NS_PER_MS)
#define BATCH_MAX      256
#define BATCH_SOON     64
#define IN_FLIGHT_MAX  4

struct batch {
	struct driver_req req;
	struct engine *e;
	size_t n;
	struct settle items[BATCH_MAX];
	char *records[BATCH_MAX];
};

static void flush_due(void *arg);

void ledger_init(struct engine *e)
{
	static const struct backoff_config retry = {
		.floor_ns = 100 * NS_PER_MS,
		.ceiling_ns = 30 * NS_PER_S,
		.factor = 2,
		.jitter_percent = 20,
	};

	TAILQ_INIT(&e->ledger.urgent);
	TAILQ_INIT(&e->ledger.lazy);
	loop_timer_init(&e->ledger.timer, flush_due, e);
	backoff_init(&e->ledger.retry, &retry);
}

static bool is_urgent(const struct message *m)
{
	return m->wants & (WANT_FINAL | WANT_RENEW);
}

static void unqueue(struct engine *e, struct message *m)
{
	struct ledger *l = &e->ledger;

	if (!m->want_queued)
		return;
	if (m->want_urgent) {
		TAILQ_REMOVE(&l->urgent, m, want_link);
		l->n_urgent--;
	} else {
		TAILQ_REMOVE(&l->lazy, m, want_link);
	}
	m->want_queued = false;
}

static void queue(struct engine *e, struct message *m)
{
	struct ledger *l = &e->ledger;

	if (m->busy || !m->wants)
		return;
	if (m->want_queued && m->want_urgent == is_urgent(m))
		return;
	unqueue(e, m);
	m->want_urgent = is_urgent(m);
	m->want_queued = true;
	if (m->want_urgent) {
		TAILQ_INSERT_TAIL(&l->urgent, m, want_link);
		l->n_urgent++;
	} else {
		TAILQ_INSERT_TAIL(&l->lazy, m, want_link);
	}
}

/* When the next flush is to be made, given what is queued. */
static int64_t flush_at(const struct engine *e)
{
	const struct ledger *l = &e->ledger;
	const struct message *lazy = TAILQ_FIRST(&l->lazy);
	int64_t at = CLOCK_NEVER;

	if (l->in_flight >= IN_FLIGHT_MAX)
		return CLOCK_NEVER;
	if (l->n_urgent)
		at = TAILQ_FIRST(&l->urgent)->want_since_ns + FINAL_DELAY_NS;
	if (lazy && lazy->want_since_ns + CLAIM_DELAY_NS < at)
		at = lazy->want_since_ns + CLAIM_DELAY_NS;
	return l->retry_at_ns > at ? l->retry_at_ns : at;
}

static void arm(struct engine *e)
{
	loop_timer_set(e->loop, &e->ledger.timer, flush_at(e));
}

void ledger_want(struct engine *e, struct message *m, unsigned want)
{
	if (!m->wants)
		m->want_since_ns = clock_mono();
	if (want == WANT_FINAL) {
		m->wants = 0;
		m->want_since_ns = clock_mono();
		barrier_enter(e, &m->ticket);
	}
	if (want == WANT_CLAIM)
		m->wants &= ~(unsigned)WANT_UNCLAIM;
	if (want == WANT_UNCLAIM)
		m->wants &= ~(unsigned)WANT_CLAIM;
	m->wants |= want;
	queue(e, m);
	if (e->ledger.n_urgent >= BATCH_SOON && !e->ledger.in_flight &&
		!e->ledger.retry_at_ns)
		ledger_flush(e);
	else
		arm(e);
}

void ledger_drop(struct engine *e, struct message *m, unsigned want)
{
	m->wants &= ~want;
	if (!m->wants)
		unqueue(e, m);
	else
		queue(e, m);
}

static char *record_of(struct engine *e, const struct message *m)
{
	char buf[DRIVER_RECORD_MAX];

	if (claim_record(e, m, buf, sizeof(buf)))
		return NULL;
	return strdup(buf);
}

/* The most important wish of M becomes ITEM. */
static void fill(struct engine *e, struct message *m, struct settle *item, char **record)
{
	memset(item, 0, sizeof(*item));
	if (m->wants & WANT_FINAL) {
		*item = m->final;
		m->sent_want = WANT_FINAL;
	} else if (m->wants & WANT_RENEW) {
		item->op = SETTLE_RENEW;
		item->delay_ns = m->renew_ns;
		m->sent_want = WANT_RENEW;
	} else if (m->wants & WANT_CLAIM) {
		*record = record_of(e, m);
		item->op = SETTLE_CLAIM;
		item->record = *record ? *record : "";
		m->sent_want = WANT_CLAIM;
	} else {
		item->op = SETTLE_UNCLAIM;
		m->sent_want = WANT_UNCLAIM;
	}
	item->id = m->d.id;
	item->receipt = m->d.receipt;
	item->body = m->d.body;
	item->arg = m;
	m->wants &= ~m->sent_want;
	m->busy = true;
}

/* What the answer to M's renewal or claim record changes. */
static void apply(struct engine *e, struct message *m, struct settle *item)
{
	if (item->new_receipt) {
		free(m->d.receipt);
		m->d.receipt = item->new_receipt;
	}
	if (item->op == SETTLE_RENEW) {
		m->d.lease_until_ns = item->lease_until_ns;
		if (m->state != MESSAGE_SETTLING)
			claim_look(e, m);
	}
	if (item->op == SETTLE_CLAIM)
		m->recorded = true;
	if (item->op == SETTLE_UNCLAIM)
		m->recorded = false;
}

static void final_answered(struct engine *e, struct message *m, const struct settle *item)
{
	if (item->err == -ESTALE || (item->err == -ENOENT && item->op != SETTLE_DELETE)) {
		e->stats.leases_lost++;
		log_warn("ledger", "lease lost before the end was told id=%s", m->d.id);
	}
	if (item->op == SETTLE_BURY)
		dead_refresh(e);
	if (item->op == SETTLE_RELEASE && !item->err && !m->given_back)
		engine_poll_at(e, clock_add(clock_mono(), item->delay_ns));
	barrier_leave(e, &m->ticket);
	e->n_settling--;
	message_destroy(m);
}

static bool is_lost(int err)
{
	return err == -ESTALE || err == -ENOENT;
}

/* What failed is wished again, unless the opposite was wished since. */
static void wish_again(struct message *m)
{
	unsigned opposite = m->sent_want == WANT_CLAIM     ? WANT_UNCLAIM
			    : m->sent_want == WANT_UNCLAIM ? WANT_CLAIM
							   : 0;

	if (!(m->wants & (opposite | WANT_FINAL)))
		m->wants |= m->sent_want;
}

/* One item's answer. True: M was asked again later. */
static bool answered(struct engine *e, struct settle *item)
{
	struct message *m = item->arg;
	bool final = m->sent_want == WANT_FINAL;

	m->busy = false;
	if (m->superseded) {
		message_destroy(m);
		return false;
	}
	if (item->err && !is_lost(item->err)) {
		wish_again(m);
		queue(e, m);
		return true;
	}
	if (final) {
		final_answered(e, m, item);
		return false;
	}
	if (!item->err)
		apply(e, m, item);
	else if (m->state != MESSAGE_SETTLING) {
		window_lost(e, m, "lease lost");
		return false;
	}
	queue(e, m);
	return false;
}

/* Several batches that fail in one outage are one failure. */
static void failed(struct engine *e, struct driver_req *req)
{
	int64_t sleep, after;

	engine_error(e, "settle", req);
	barrier_fail(e, -EIO);
	if (e->ledger.retry_at_ns > clock_mono())
		return;
	sleep = backoff_empty(&e->ledger.retry, engine_random(e));
	after = engine_retry_after(e, req);
	if (after > sleep)
		sleep = after;
	e->ledger.retry_at_ns = clock_add(clock_mono(), sleep);
}

static void settled(struct driver_req *req)
{
	struct batch *b = req->arg;
	struct engine *e = b->e;
	int batch_err = req->err;
	bool again = false;

	engine_answered(e);
	e->ledger.in_flight--;
	for (size_t i = 0; i < b->n; i++) {
		if (batch_err)
			b->items[i].err = batch_err;
		else if (b->items[i].err && !is_lost(b->items[i].err))
			req->err = b->items[i].err;
		again |= answered(e, &b->items[i]);
		free(b->records[i]);
	}
	if (again) {
		failed(e, req);
	} else {
		e->ledger.retry_at_ns = 0;
		backoff_hit(&e->ledger.retry);
	}
	free(b);
	arm(e);
	engine_depth_soon(e);
	engine_check_end(e);
}

/* Takes up to BATCH_MAX messages off LIST into B; lazy ones only when due. */
static void collect(
	struct engine *e, struct batch *b, struct ledger_list *list, int64_t before_ns)
{
	struct message *m;

	while (b->n < BATCH_MAX && (m = TAILQ_FIRST(list))) {
		if (m->want_since_ns > before_ns)
			return;
		unqueue(e, m);
		fill(e, m, &b->items[b->n], &b->records[b->n]);
		b->n++;
	}
}

static bool flush_one(struct engine *e, int64_t lazy_before_ns)
{
	struct batch *b = calloc(1, sizeof(*b));

	if (!b)
		return false;
	b->e = e;
	collect(e, b, &e->ledger.urgent, CLOCK_NEVER);
	collect(e, b, &e->ledger.lazy, lazy_before_ns);
	if (!b->n) {
		free(b);
		return false;
	}
	b->req.op = DRIVER_SETTLE;
	b->req.done = settled;
	b->req.arg = b;
	b->req.u.settle.items = b->items;
	b->req.u.settle.n = b->n;
	e->ledger.in_flight++;
	engine_submit(e, &b->req);
	return true;
}

static void flush_due(void *arg)
{
	struct engine *e = arg;
	int64_t before = clock_mono() - CLAIM_DELAY_NS;

	e->ledger.retry_at_ns = 0;
	while (e->ledger.in_flight < IN_FLIGHT_MAX && flush_one(e, before))
		;
	arm(e);
}

void ledger_flush(struct engine *e)
{
	while (flush_one(e, CLOCK_NEVER))
		;
	arm(e);
}

void ledger_retry_now(struct engine *e)
{
	e->ledger.retry_at_ns = 0;
	arm(e);
}

bool ledger_idle(const struct engine *e)
{
	return !e->ledger.in_flight && TAILQ_EMPTY(&e->ledger.urgent) &&
	       TAILQ_EMPTY(&e->ledger.lazy);
}

/* After the driver was closed: what it was never told is let go. */
void ledger_fini(struct engine *e)
{
	struct message *m;

	loop_timer_clear(e->loop, &e->ledger.timer);
	while ((m = TAILQ_FIRST(&e->ledger.lazy)))
		unqueue(e, m);
	while ((m = TAILQ_FIRST(&e->ledger.urgent))) {
		unqueue(e, m);
		if (m->state == MESSAGE_SETTLING)
			message_destroy(m);
	}
}
