/* SPDX-License-Identifier: MIT */
/* Drafts that are renamed, and drafts that are discarded. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

static void named(struct driver_req *req)
{
	struct store_req *s = req->arg;
	struct engine *e = store_answered(s, "renaming a draft");
	struct draft *d = s->d;

	d->naming--;
	barrier_leave(e, &s->ticket);
	store_free(s);
	draft_advance(e, d);
	engine_check_end(e);
}

static int store_name(struct engine *e, struct draft *d)
{
	struct store_req *s = store_req(e, d, DRIVER_DRAFT_NAME, named);

	if (!s)
		return -ENOMEM;
	s->name = strdup(d->name);
	if (!s->name) {
		store_free(s);
		return -ENOMEM;
	}
	s->req.u.draft.name = s->name;
	d->naming++;
	barrier_enter(e, &s->ticket);
	store_submit(s);
	return 0;
}

int draft_rename(struct engine *e, struct draft *d, const char *name, bool keep_it)
{
	char *copy = strdup(name);

	if (!copy)
		return -ENOMEM;
	free(d->name);
	d->name = copy;
	d->touched_ns = clock_mono();
	if (d->state == DRAFT_SENT || d->state == DRAFT_SENDING)
		return 0;
	d->keep = keep_it;
	if (!d->writers)
		d->cut = false;
	if (d->putting)
		d->version++; /* it is being stored under its old name */
	else if (keep_it && d->store_id)
		return store_name(e, d);
	if (!d->writers)
		draft_advance(e, d);
	return 0;
}

static void dropped(struct driver_req *req)
{
	struct store_req *s = req->arg;
	struct engine *e;

	if (req->err == -ENOENT) /* gone is what was wanted */
		req->err = 0;
	e = store_answered(s, "discarding a draft");

	barrier_leave(e, &s->ticket);
	store_free(s);
	engine_check_end(e);
}

void draft_drop_stored(struct engine *e, struct draft *d)
{
	struct store_req *s =
		d->store_id ? store_req(e, d, DRIVER_DRAFT_DROP, dropped) : NULL;

	if (!s)
		return;
	s->d = NULL;
	d->store_id = 0;
	barrier_enter(e, &s->ticket);
	store_submit(s);
}

void draft_discard(struct engine *e, struct draft *d)
{
	if (d->state == DRAFT_SENDING)
		return;
	if (d->state != DRAFT_SENT)
		draft_drop_stored(e, d);
	draft_unlist(e, d);
	d->state = DRAFT_DROPPED;
	draft_answer_flushes(d, UINT64_MAX, 0);
	engine_changed(e);
	draft_reap(e, d);
}
