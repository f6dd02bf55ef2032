/* SPDX-License-Identifier: MIT */
/* One function per request, each within the transaction of its batch. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "sqlite_rows.h"

/* An instant of table message, on this process's monotonic clock. */
int64_t sq_mono_of(int64_t wall_us)
{
	return clock_mono() + (wall_us * NS_PER_US - clock_wall());
}

int64_t sq_us_from_now(int64_t ns)
{
	return clock_add(clock_wall(), ns) / NS_PER_US;
}

/* Grows with every message, whatever the clock does: names sort by it. */
static int64_t next_us(struct sq *s)
{
	int64_t now = clock_wall() / NS_PER_US;

	s->state.last_us = now > s->state.last_us ? now : s->state.last_us + 1;
	return s->state.last_us;
}

static char *format_id(struct sq *s, int64_t id)
{
	char *p;

	if (asprintf(&p, "%016lld", (long long)id) >= 0)
		return p;
	sq_oom(s);
	return NULL;
}

char *sq_format_receipt(struct sq *s, int64_t n)
{
	char *p;

	if (asprintf(&p, "%lld", (long long)n) >= 0)
		return p;
	sq_oom(s);
	return NULL;
}

/* *out = a copy of column I, or NULL where it is NULL. */
int sq_copy_text(struct sq *s, sqlite3_stmt *st, int i, char **out)
{
	const char *text = (const char *)sqlite3_column_text(st, i);

	if (!text && sqlite3_column_type(st, i) == SQLITE_NULL)
		return 0;
	*out = text ? strdup(text) : NULL;
	return *out ? 0 : sq_oom(s);
}

/* The body of message, dead letter or draft ID, by statement N. 1: there. */
static int read_body(struct sq *s, enum sq_stmt n, int64_t id, struct blob **out)
{
	sqlite3_stmt *st = sq_start(s, n, "i", id);
	int r = sq_step(s, st);

	if (r > 0) {
		const void *data = sqlite3_column_blob(st, 0);
		int len = sqlite3_column_bytes(st, 0);

		*out = data || len == 0 ? blob_create(data ? data : "", (size_t)len)
					: NULL;
		if (!*out)
			r = sq_oom(s);
	}
	sqlite3_reset(st);
	return r;
}

int sq_need_body(struct sq *s, int64_t id, struct blob **out)
{
	int r = read_body(s, SQ_BODY, id, out);

	if (r == 0)
		return sq_say(s, -EIO, "the queue file is damaged: a body is missing");
	return r < 0 ? r : 0;
}

/* A message as a row with the columns of MSG_COLS; the receipt is a number
 * until it is leased. One more in the array. */
int sq_push_msg(struct sq *s, sqlite3_stmt *st, struct driver_msg **msgs, unsigned *n)
{
	struct driver_msg *m = *msgs;
	bool full = *n == 0 || (*n >= 16 && (*n & (*n - 1)) == 0);

	if (full) {
		m = realloc(m, (*n ? *n * 2 : 16) * sizeof(*m));
		if (!m)
			return sq_oom(s);
		*msgs = m;
	}
	m += (*n)++;
	*m = (struct driver_msg){
		.enqueued_ns = sqlite3_column_int64(st, 1) * NS_PER_US,
		.size = (uint64_t)sqlite3_column_int64(st, 2),
		.attempts = (unsigned)sqlite3_column_int64(st, 3),
		.dequeue_count = (unsigned)sqlite3_column_int64(st, 4),
	};
	m->id = format_id(s, sqlite3_column_int64(st, 0));
	if (!m->id)
		return -ENOMEM;
	return sq_copy_text(s, st, 6, &m->given);
}

/* RECEIVE */

/* What has run out or fallen due is waiting from now on. */
static int wake_due(struct sq *s)
{
	int64_t now = clock_wall() / NS_PER_US, due;
	int r = sq_int(s, SQ_DUE, &due, INT64_MAX);
	int expired;

	if (r < 0 || due > now)
		return r;
	expired = sq_exec(s, SQ_EXPIRE, "i", now);
	if (expired < 0)
		return expired;
	s->state.leased -= expired;
	s->state.waiting += expired;
	r = sq_exec(s, SQ_WAKE, "i", now);
	return r < 0 ? r : 0;
}

/* The statement reads the index that leasing changes: so first the choice,
 * then the leases. */
static int pick(struct sq *s, struct driver_req *req)
{
	unsigned max = req->u.receive.max;
	uint64_t bytes = 0;
	sqlite3_stmt *st;
	int r;

	if (max > SQ_MAX_RECEIVE)
		max = SQ_MAX_RECEIVE;
	st = sq_start(s, SQ_PICK, "i", (int64_t)max);
	while ((r = sq_step(s, st)) > 0) {
		bytes += (uint64_t)sqlite3_column_int64(st, 2);
		if (req->u.receive.n > 0 && bytes > req->u.receive.max_bytes)
			break;
		r = sq_push_msg(s, st, &req->u.receive.msgs, &req->u.receive.n);
		if (r < 0)
			break;
		s->receipts[req->u.receive.n - 1] = sqlite3_column_int64(st, 5);
	}
	sqlite3_reset(st);
	return r < 0 ? r : 0;
}

static int lease(struct sq *s, struct driver_msg *m, int64_t receipt, int64_t until_us)
{
	int64_t id = strtoll(m->id, NULL, 10);
	int r = sq_exec(s, SQ_LEASE, "iii", id, until_us, s->mount);

	if (r < 0)
		return r;
	s->state.waiting--;
	s->state.leased++;
	m->dequeue_count++;
	m->lease_until_ns = sq_mono_of(until_us);
	m->receipt = sq_format_receipt(s, receipt + 1);
	return m->receipt ? sq_need_body(s, id, &m->body) : -ENOMEM;
}

/* The own leases are left out: whoever holds them renews them. The index has the
 * mount, so that stepping over a window of them is cheap. */
static int next_due(struct sq *s, int64_t *due)
{
	sq_start(s, SQ_NEXT_DUE, "i", s->mount);
	return sq_int(s, SQ_NEXT_DUE, due, INT64_MAX);
}

static int op_receive(struct sq *s, struct driver_req *req)
{
	int64_t until_us = sq_us_from_now(req->u.receive.lease_ns), due;
	int r;

	if (req->u.receive.max == 0)
		return -EINVAL;
	r = wake_due(s);
	if (r == 0)
		r = pick(s, req);
	for (unsigned i = 0; r == 0 && i < req->u.receive.n; i++)
		r = lease(s, &req->u.receive.msgs[i], s->receipts[i], until_us);
	if (r == 0)
		r = next_due(s, &due);
	if (r == 0)
		req->u.receive.next_due_ns =
			due == INT64_MAX ? CLOCK_NEVER : sq_mono_of(due);
	return r;
}

static int op_settle(struct sq *s, struct driver_req *req)
{
	for (size_t i = 0; i < req->u.settle.n; i++) {
		sq_settle(s, &req->u.settle.items[i]);
		if (s->broken)
			return s->err;
	}
	return 0;
}

/* SEND, DRAFT_* */

static int too_large(struct driver_req *req, const struct blob *body)
{
	if (body->len <= SQ_MAX_BODY)
		return 0;
	driver_detail(req, "a message holds at most %llu bytes",
		(unsigned long long)SQ_MAX_BODY);
	return -EMSGSIZE;
}

static int op_send(struct sq *s, struct driver_req *req)
{
	const struct blob *body = req->u.send.body;
	int64_t id, us;
	int r = too_large(req, body);

	if (r < 0)
		return r;
	id = ++s->state.last_id;
	us = next_us(s);
	r = sq_exec(s, SQ_BODY_NEW, "ib", id, body);
	if (r >= 0)
		r = sq_exec(s, SQ_SEND, "iiit", id, us, (int64_t)body->len,
			req->u.send.given);
	if (r < 0)
		return r;
	s->state.waiting++;
	s->ring = true;
	req->u.send.enqueued_ns = us * NS_PER_US;
	req->u.send.id = format_id(s, id);
	return req->u.send.id ? 0 : -ENOMEM;
}

static int draft_new(struct sq *s, struct driver_req *req)
{
	const struct blob *body = req->u.draft.body;
	int64_t id = ++s->state.last_id;
	int r = sq_exec(s, SQ_BODY_NEW, "ib", id, body);

	if (r >= 0)
		r = sq_exec(s, SQ_DRAFT_NEW, "iitiiiii", id, s->mount, req->u.draft.name,
			req->u.draft.begun_ns, (int64_t)req->u.draft.mode,
			(int64_t)req->u.draft.uid, (int64_t)req->u.draft.gid,
			(int64_t)body->len);
	if (r < 0)
		return r;
	req->u.draft.id = -id; /* until it is committed */
	return 0;
}

static int draft_again(struct sq *s, struct driver_req *req)
{
	const struct blob *body = req->u.draft.body;
	int64_t id = req->u.draft.id;
	int r = sq_exec(s, SQ_DRAFT_SET, "iitiiiii", id, s->mount, req->u.draft.name,
		req->u.draft.begun_ns, (int64_t)req->u.draft.mode,
		(int64_t)req->u.draft.uid, (int64_t)req->u.draft.gid, (int64_t)body->len);

	if (r == 0)
		return -ENOENT;
	if (r > 0)
		r = sq_exec(s, SQ_BODY_SET, "ib", id, body);
	return r < 0 ? r : 0;
}

static int op_draft_put(struct sq *s, struct driver_req *req)
{
	int r = too_large(req, req->u.draft.body);

	if (r == 0)
		r = req->u.draft.id ? draft_again(s, req) : draft_new(s, req);
	return r;
}

static int op_draft_name(struct sq *s, struct driver_req *req)
{
	int r = sq_exec(
		s, SQ_DRAFT_NAME, "iit", req->u.draft.id, s->mount, req->u.draft.name);

	if (r == 0)
		return -ENOENT;
	return r < 0 ? r : 0;
}

static int op_draft_send(struct sq *s, struct driver_req *req)
{
	int64_t id = req->u.draft.id, us = next_us(s);
	int r = sq_exec(s, SQ_DRAFT_SEND, "iiit", id, s->mount, us, req->u.draft.given);

	if (r == 0)
		return -ENOENT;
	if (r > 0)
		r = sq_exec(s, SQ_DRAFT_DELETE, "ii", id, s->mount);
	if (r < 0)
		return r;
	s->state.waiting++;
	s->ring = true;
	req->u.draft.enqueued_ns = us * NS_PER_US;
	req->u.draft.msg_id = format_id(s, id);
	return req->u.draft.msg_id ? 0 : -ENOMEM;
}

static int op_draft_seal(struct sq *s, struct driver_req *req)
{
	int r = sq_exec(s, SQ_DRAFT_SEAL, "ii", req->u.draft.id, s->mount);

	if (r == 0)
		return -ENOENT;
	return r < 0 ? r : 0;
}

/* That of a sealed one means that the service has it: the others may look. */
static int op_draft_drop(struct sq *s, struct driver_req *req)
{
	int64_t sealed = 0;
	int r;

	sq_start(s, SQ_DRAFT_SEALED, "i", req->u.draft.id);
	r = sq_int(s, SQ_DRAFT_SEALED, &sealed, 0);
	if (r == 0)
		r = sq_exec(s, SQ_DRAFT_DELETE, "ii", req->u.draft.id, s->mount);
	if (r == 0)
		return -ENOENT;
	s->ring = s->ring || sealed;
	if (r > 0)
		r = sq_exec(s, SQ_BODY_DELETE, "i", req->u.draft.id);
	return r < 0 ? r : 0;
}

static int op_sync(struct sq *s, struct driver_req *req)
{
	(void)req;
	s->state.syncs++;
	return 0;
}

/* DEAD_*, DEPTH */

static int op_dead_list(struct sq *s, struct driver_req *req)
{
	sqlite3_stmt *st = sq_start(s, SQ_DEAD, "i", (int64_t)req->u.dead.max);
	int r;

	while ((r = sq_step(s, st)) > 0) {
		r = sq_push_msg(s, st, &req->u.dead.msgs, &req->u.dead.n);
		if (r == 0)
			r = sq_copy_text(
				s, st, 7, &req->u.dead.msgs[req->u.dead.n - 1].reason);
		if (r < 0)
			break;
	}
	sqlite3_reset(st);
	return r < 0 ? r : 0;
}

static int op_dead_read(struct sq *s, struct driver_req *req)
{
	int64_t id = sq_number(req->u.dead_read.id);
	int r;

	if (id < 0)
		return -EINVAL;
	r = read_body(s, SQ_DEAD_BODY, id, &req->u.dead_read.body);
	if (r == 0)
		return -ENOENT;
	return r < 0 ? r : 0;
}

static int op_depth(struct sq *s, struct driver_req *req)
{
	req->u.depth.waiting = (uint64_t)s->state.waiting;
	req->u.depth.leased = (uint64_t)s->state.leased;
	req->u.depth.dead = (uint64_t)s->state.dead;
	return 0;
}

int sq_op(struct sq *s, struct driver_req *req)
{
	static int (*const ops[])(struct sq * s, struct driver_req * req) = {
		[DRIVER_RECEIVE] = op_receive,
		[DRIVER_SETTLE] = op_settle,
		[DRIVER_SEND] = op_send,
		[DRIVER_DEPTH] = op_depth,
		[DRIVER_SYNC] = op_sync,
		[DRIVER_DRAFT_PUT] = op_draft_put,
		[DRIVER_DRAFT_NAME] = op_draft_name,
		[DRIVER_DRAFT_SEND] = op_draft_send,
		[DRIVER_DRAFT_SEAL] = op_draft_seal,
		[DRIVER_DRAFT_DROP] = op_draft_drop,
		[DRIVER_LOAD] = sq_load,
		[DRIVER_DEAD_LIST] = op_dead_list,
		[DRIVER_DEAD_READ] = op_dead_read,
		[DRIVER_PEERS] = sq_mount_peers,
		[DRIVER_KEEP] = sq_keep,
		[DRIVER_RECALL] = sq_recall,
	};

	return ops[req->op](s, req);
}
