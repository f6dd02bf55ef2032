/* SPDX-License-Identifier: MIT */
/* What an earlier life of this mount left: drafts, and claimed messages. */
#include <errno.h>
#include <stdlib.h>

#include "sqlite_rows.h"

static int push_draft(struct sq *s, sqlite3_stmt *st, struct driver_req *req)
{
	unsigned n = req->u.load.n_drafts;
	struct driver_draft *d = realloc(req->u.load.drafts, (n + 1) * sizeof(*d));
	int r;

	if (!d)
		return sq_oom(s);
	req->u.load.drafts = d;
	req->u.load.n_drafts++;
	d += n;
	*d = (struct driver_draft){
		.id = sqlite3_column_int64(st, 0),
		.begun_ns = sqlite3_column_int64(st, 2),
		.mode = (uint32_t)sqlite3_column_int64(st, 3),
		.uid = (uint32_t)sqlite3_column_int64(st, 4),
		.gid = (uint32_t)sqlite3_column_int64(st, 5),
		.outbox = sqlite3_column_int(st, 6),
	};
	r = sq_copy_text(s, st, 1, &d->name);
	return r < 0 ? r : sq_need_body(s, d->id, &d->body);
}

static int load_drafts(struct sq *s, struct driver_req *req)
{
	sqlite3_stmt *st = sq_start(s, SQ_DRAFTS, "i", s->mount);
	int r;

	while ((r = sq_step(s, st)) > 0) {
		r = push_draft(s, st, req);
		if (r < 0)
			break;
	}
	sqlite3_reset(st);
	return r < 0 ? r : 0;
}

static int push_leased(struct sq *s, sqlite3_stmt *st, struct driver_req *req)
{
	int r = sq_push_msg(s, st, &req->u.load.msgs, &req->u.load.n_msgs);
	struct driver_msg *m;

	if (r < 0)
		return r;
	m = &req->u.load.msgs[req->u.load.n_msgs - 1];
	m->receipt = sq_format_receipt(s, sqlite3_column_int64(st, 5) + 1);
	if (!m->receipt)
		return -ENOMEM;
	return sq_copy_text(s, st, 7, &m->record);
}

static int load_leased(struct sq *s, struct driver_req *req)
{
	sqlite3_stmt *st = sq_start(s, SQ_LEASED, "i", s->mount);
	int r;

	while ((r = sq_step(s, st)) > 0) {
		r = push_leased(s, st, req);
		if (r < 0)
			break;
	}
	sqlite3_reset(st);
	return r < 0 ? r : 0;
}

/* Of another queue: its lease cannot be renewed from here. */
static int push_kept(struct sq *s, sqlite3_stmt *st, struct driver_req *req)
{
	int r = sq_push_msg(s, st, &req->u.load.msgs, &req->u.load.n_msgs);
	struct driver_msg *m;

	if (r < 0)
		return r;
	m = &req->u.load.msgs[req->u.load.n_msgs - 1];
	free(m->id);
	m->id = NULL;
	m->lease_until_ns = sq_mono_of(sqlite3_column_int64(st, 8));
	m->body = blob_create(sqlite3_column_blob(st, 9), (size_t)m->size);
	r = sq_copy_text(s, st, 0, &m->id);
	if (r == 0)
		r = sq_copy_text(s, st, 5, &m->receipt);
	if (r == 0)
		r = sq_copy_text(s, st, 7, &m->record);
	if (r == 0 && (!m->id || !m->receipt || !m->body))
		r = sq_oom(s);
	return r;
}

static int load_kept(struct sq *s, struct driver_req *req)
{
	sqlite3_stmt *st = sq_start(s, SQ_KEPT, "i", s->mount);
	int r;

	while ((r = sq_step(s, st)) > 0) {
		r = push_kept(s, st, req);
		if (r < 0)
			break;
	}
	sqlite3_reset(st);
	return r < 0 ? r : 0;
}

static int lease_again(struct sq *s, struct driver_msg *m, int64_t until_us)
{
	int64_t id = strtoll(m->id, NULL, 10);
	int r = sq_exec(s, SQ_LEASE_AGAIN, "ii", id, until_us);

	if (r >= 0)
		r = sq_need_body(s, id, &m->body);
	m->lease_until_ns = sq_mono_of(until_us);
	return r < 0 ? r : 0;
}

int sq_load(struct sq *s, struct driver_req *req)
{
	int64_t until_us = sq_us_from_now(req->u.load.lease_ns);
	int r = load_drafts(s, req);

	if (r == 0)
		r = load_leased(s, req);
	for (unsigned i = 0; r == 0 && i < req->u.load.n_msgs; i++)
		r = lease_again(s, &req->u.load.msgs[i], until_us);
	return r ? r : load_kept(s, req);
}
