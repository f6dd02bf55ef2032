/* SPDX-License-Identifier: MIT */
#include "store.h"

#include <stdlib.h>

struct store_req *store_req(struct engine *e, struct draft *d, enum driver_op op,
	void (*done)(struct driver_req *req))
{
	struct store_req *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->e = e;
	s->d = d;
	s->req.op = op;
	s->req.done = done;
	s->req.arg = s;
	s->req.u.draft.id = d->store_id;
	return s;
}

void store_submit(struct store_req *s)
{
	s->e->store_busy++;
	engine_submit(s->e, &s->req);
}

struct engine *store_answered(struct store_req *s, const char *what)
{
	struct engine *e = s->e;

	engine_answered(e);
	e->store_busy--;
	if (s->req.err)
		engine_error(e, what, &s->req);
	return e;
}

void store_free(struct store_req *s)
{
	driver_req_fini(&s->req);
	blob_unref(s->body);
	free(s->name);
	free(s);
}
