/* SPDX-License-Identifier: MIT */
/*
 * What a relay must know of the messages of another queue: those claimed here,
 * whole, since the service cannot be asked for them a second time; how often
 * their handling has failed, which the service does not know; and why one is a
 * dead letter.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "sqlite_rows.h"

/* Messages that nobody has seen for so long are gone from their queue. */
#define FORGET_AFTER_NS (INT64_C(30) * 24 * 3600 * NS_PER_S)

/* So often it is noted that one was seen. */
#define SEEN_EVERY_NS (24 * 3600 * NS_PER_S)

static int64_t wall_us(int64_t mono_ns)
{
	if (mono_ns == CLOCK_NEVER)
		return INT64_MAX;
	return (clock_wall() + (mono_ns - clock_mono())) / NS_PER_US;
}

static int64_t now_us(void)
{
	return clock_wall() / NS_PER_US;
}

static int keep_claim(struct sq *s, const struct keep *k)
{
	if (!k->record || strlen(k->record) > DRIVER_RECORD_MAX || !k->body)
		return -EINVAL;
	return sq_exec(s, SQ_KEEP, "titiiiitb", k->id, s->mount, k->receipt,
		k->enqueued_ns / NS_PER_US, wall_us(k->lease_until_ns),
		(int64_t)k->attempts, (int64_t)k->dequeue_count, k->record, k->body);
}

/* Another mount has received the message since, and claimed it: what this one
 * says of its own lease comes too late. 1, 0 or an error. */
static int is_elsewhere(struct sq *s, const struct keep *k)
{
	int64_t n = 0;
	int r;

	sq_start(s, SQ_KEPT_ELSEWHERE, "ti", k->id, s->mount);
	r = sq_int(s, SQ_KEPT_ELSEWHERE, &n, 0);
	return r < 0 ? r : n > 0;
}

static int keep_one(struct sq *s, const struct keep *k)
{
	int r = k->op == KEEP_CLAIM ? 0 : is_elsewhere(s, k);

	if (r)
		return r < 0 ? r : 0;
	switch (k->op) {
	case KEEP_CLAIM:
		return keep_claim(s, k);
	case KEEP_RENEW:
		return sq_exec(s, SQ_KEEP_RENEW, "tti", k->id, k->receipt,
			wall_us(k->lease_until_ns));
	case KEEP_COUNT:
	case KEEP_DEAD:
		return sq_exec(s, SQ_KEEP_COUNT, "titi", k->id, (int64_t)k->attempts,
			k->op == KEEP_DEAD ? k->reason : NULL, now_us());
	case KEEP_FORGET:
		return sq_exec(s, SQ_KEEP_FORGET, "t", k->id);
	}
	return -EINVAL;
}

int sq_keep(struct sq *s, struct driver_req *req)
{
	int r = 0;

	/* A bell is only heard when something was written. */
	if (!req->u.keep.n) {
		s->ring = true;
		s->state.syncs++;
	}
	for (size_t i = 0; r >= 0 && i < req->u.keep.n; i++)
		r = keep_one(s, &req->u.keep.items[i]);
	return r < 0 ? r : 0;
}

/* A message that is here again though its claim was never ended: the lease ran
 * out while nobody saw it, which is an attempt. */
static int recall_one(struct sq *s, struct keep *k)
{
	sqlite3_stmt *st = sq_start(s, SQ_RECALL, "t", k->id);
	int r = sq_step(s, st);
	bool claimed = false;

	if (r > 0) {
		const char *reason = (const char *)sqlite3_column_text(st, 1);

		claimed = sqlite3_column_int(st, 2);
		k->known_attempts = (unsigned)sqlite3_column_int64(st, 0) + claimed;
		k->known_reason = reason ? strdup(reason) : NULL;
		if (reason && !k->known_reason)
			r = sq_oom(s);
	}
	sqlite3_reset(st);
	if (r > 0 && !claimed)
		r = sq_exec(s, SQ_KEPT_SEEN, "tii", k->id, now_us(),
			now_us() - SEEN_EVERY_NS / NS_PER_US);
	else if (r > 0)
		r = sq_exec(s, SQ_KEEP_COUNT, "titi", k->id, (int64_t)k->known_attempts,
			k->known_reason, now_us());
	return r < 0 ? r : 0;
}

int sq_recall(struct sq *s, struct driver_req *req)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < req->u.keep.n; i++) {
		req->u.keep.items[i].known_attempts = 0;
		r = recall_one(s, &req->u.keep.items[i]);
	}
	return r;
}

int sq_keep_purge(struct sq *s)
{
	int r = sq_exec(s, SQ_KEEP_PURGE, "i", now_us() - FORGET_AFTER_NS / NS_PER_US);

	return r < 0 ? r : 0;
}
