/* SPDX-License-Identifier: MIT */
#include "dead.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_int.h"

struct dead *engine_dead(const struct engine *e)
{
	return e->dead;
}

static struct dead *find(const struct engine *e, const char *id)
{
	struct dead *d = NULL;

	HASH_FIND_STR(e->dead, id, d);
	return d;
}

static void forget(struct engine *e, struct dead *d)
{
	HASH_DEL(e->dead, d);
	driver_msg_fini(&d->d);
	free(d);
}

/* One letter as listed: known already, or new here. */
static void listed(struct engine *e, struct driver_msg *msg)
{
	struct dead *d = find(e, msg->id);

	if (d) {
		d->seen = true;
		return;
	}
	d = calloc(1, sizeof(*d));
	if (!d)
		return;
	d->d = *msg;
	memset(msg, 0, sizeof(*msg));
	d->seen = true;
	HASH_ADD_KEYPTR(hh, e->dead, d->d.id, strlen(d->d.id), d);
	if (!table_took(hh, d)) {
		driver_msg_fini(&d->d);
		free(d);
		return;
	}
	e->ev.dead_added(e->ev.arg, d);
}

static void sweep(struct engine *e)
{
	struct dead *d, *next;

	HASH_ITER (hh, e->dead, d, next) {
		bool seen = d->seen;

		d->seen = false;
		if (seen || d->gone)
			continue;
		e->ev.dead_removed(e->ev.arg, d);
		forget(e, d);
	}
}

static void refreshed(struct driver_req *req)
{
	struct engine *e = req->arg;

	engine_answered(e);
	e->dead_asked = false;
	if (req->err) {
		engine_error(e, "dead letters", req);
	} else {
		for (unsigned i = 0; i < req->u.dead.n; i++)
			listed(e, &req->u.dead.msgs[i]);
		sweep(e);
	}
	driver_req_fini(req);
	free(req);
	if (e->dead_again)
		dead_refresh(e);
	engine_check_end(e);
}

void dead_refresh(struct engine *e)
{
	struct driver_req *req;

	if (!driver_can(e->driver, DRIVER_DEAD) || e->stopped ||
		(driver_can(e->driver, DRIVER_FAR) && !e->cfg.receives))
		return;
	e->dead_again = e->dead_asked;
	if (e->dead_asked)
		return;
	req = calloc(1, sizeof(*req));
	if (!req)
		return;
	e->dead_asked = true;
	req->op = DRIVER_DEAD_LIST;
	req->done = refreshed;
	req->arg = e;
	req->u.dead.max = e->cfg.window;
	engine_submit(e, req);
}

/* ---- one letter ---- */

static void body_read(struct driver_req *req)
{
	struct dead_read *r = req->arg;
	struct engine *e = r->engine;

	engine_answered(e);
	if (req->err)
		engine_error(e, "dead letter", req);
	r->fn(r, req->err, req->err ? NULL : req->u.dead_read.body);
	engine_check_end(e);
}

void dead_read(struct engine *e, struct dead *d, struct dead_read *r)
{
	memset(&r->req, 0, sizeof(r->req));
	r->engine = e;
	r->id = strdup(d->d.id);
	r->req.op = DRIVER_DEAD_READ;
	r->req.done = body_read;
	r->req.arg = r;
	r->req.u.dead_read.id = r->id ? r->id : "";
	engine_submit(e, &r->req);
}

void dead_read_fini(struct dead_read *r)
{
	driver_req_fini(&r->req);
	free(r->id);
}

struct dead_settle {
	struct driver_req req;
	struct settle item;
	struct engine *e;
	struct dead *d;
	struct ticket ticket;
};

static void settled(struct driver_req *req)
{
	struct dead_settle *s = req->arg;
	struct engine *e = s->e;
	bool failed = req->err || (s->item.err && s->item.err != -ENOENT);

	engine_answered(e);
	barrier_leave(e, &s->ticket);
	if (failed) {
		if (!req->err)
			req->err = s->item.err;
		engine_error(e, "dead letter", req);
		barrier_fail(e, -EIO);
		s->d->gone = false;
		e->ev.dead_added(e->ev.arg, s->d);
	} else {
		forget(e, s->d);
		if (!e->dead) /* there may be more than are listed at a time */
			dead_refresh(e);
	}
	free(s);
	engine_poll_soon(e);
	engine_depth_soon(e);
	engine_check_end(e);
}

static int settle(struct engine *e, struct dead *d, enum settle_op op)
{
	struct dead_settle *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	d->gone = true;
	s->e = e;
	s->d = d;
	s->item.op = op;
	s->item.id = d->d.id;
	s->req.op = DRIVER_SETTLE;
	s->req.done = settled;
	s->req.arg = s;
	s->req.u.settle.items = &s->item;
	s->req.u.settle.n = 1;
	barrier_enter(e, &s->ticket);
	engine_submit(e, &s->req);
	return 0;
}

int dead_discard(struct engine *e, struct dead *d)
{
	return settle(e, d, SETTLE_DISCARD);
}

int dead_revive(struct engine *e, struct dead *d)
{
	return settle(e, d, SETTLE_REVIVE);
}

void dead_fini(struct engine *e)
{
	struct dead *d, *next;

	HASH_ITER (hh, e->dead, d, next) {
		forget(e, d);
	}
}
