/* SPDX-License-Identifier: MIT */
/*
 * Dead letters, listed and read. What a listing peeked at is remembered: whoever
 * lists them reads them next, and each look costs a request.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "azure_int.h"

static struct azure_message *seen(struct azure *az, const char *id)
{
	for (unsigned i = 0; i < az->seen.n; i++)
		if (az->seen.items[i].id && strcmp(az->seen.items[i].id, id) == 0)
			return &az->seen.items[i];
	return NULL;
}

void azure_dead_changed(struct azure *az, const char *id)
{
	struct azure_message *m = seen(az, id);

	if (m)
		azure_message_fini(m);
	az->dead_look_ns = 0;
}

static void peek(struct azure_op *op, unsigned max, void (*done)(struct azure_call *c))
{
	op->call.az = op->az;
	op->call.verb = AZURE_PEEK;
	op->call.queue = &op->az->poison;
	op->call.max = max;
	op->call.done = done;
	op->call.arg = op;
	azure_call_start(&op->call);
}

/* What C saw is what there is. False: it saw nothing, for a reason. */
static bool remember(struct azure_call *c)
{
	if (c->err && c->err != -ENOENT)
		return false;
	azure_page_fini(&c->az->seen);
	c->az->seen = c->page;
	c->page = (struct azure_page){0};
	return true;
}

/* ---- list ---- */

static int fill_letter(struct azure *az, struct driver_msg *out, struct azure_message *m)
{
	struct blob *body;
	int r = azure_decode(az, m, &body);

	if (r)
		return r;
	out->size = body->len;
	out->enqueued_ns = m->inserted_ns;
	out->dequeue_count = m->dequeued;
	out->id = strdup(m->id);
	blob_unref(body);
	return out->id ? 0 : -ENOMEM;
}

static int fill_list(struct azure *az, struct driver_req *req)
{
	unsigned n = az->seen.n;
	int r = 0;

	req->u.dead.msgs = calloc(n + 1, sizeof(*req->u.dead.msgs));
	if (!req->u.dead.msgs)
		return -ENOMEM;
	for (unsigned i = 0; r == 0 && i < n; i++) {
		r = fill_letter(az, &req->u.dead.msgs[i], &az->seen.items[i]);
		if (r == 0)
			req->u.dead.n++;
	}
	if (r)
		driver_req_fini(req);
	return r;
}

static void listed(struct azure_call *c)
{
	struct azure_op *op = c->arg;

	if (!remember(c))
		azure_op_failed(op, c);
	else if (fill_list(op->az, op->req))
		azure_op_fail(op, -ENOMEM, "out of memory");
	else
		azure_op_end(op);
}

void azure_dead_list(struct azure_op *op)
{
	unsigned max = op->req->u.dead.max;

	op->req->u.dead.msgs = NULL;
	op->req->u.dead.n = 0;
	if (max == 0)
		azure_op_fail(op, -EINVAL, "a list of no dead letters");
	else
		peek(op, max < AZURE_PAGE_MAX ? max : AZURE_PAGE_MAX, listed);
}

/* ---- read ---- */

static void answer(struct azure_op *op, const struct azure_message *m)
{
	if (!m)
		azure_op_fail(op, -ENOENT, "no such dead letter");
	else if (azure_decode(op->az, m, &op->req->u.dead_read.body))
		azure_op_fail(op, -ENOMEM, "out of memory");
	else
		azure_op_end(op);
}

static void looked(struct azure_call *c)
{
	struct azure_op *op = c->arg;

	if (remember(c))
		answer(op, seen(op->az, op->req->u.dead_read.id));
	else
		azure_op_failed(op, c);
}

void azure_dead_read(struct azure_op *op)
{
	const struct azure_message *m = seen(op->az, op->req->u.dead_read.id);

	op->req->u.dead_read.body = NULL;
	if (m)
		answer(op, m);
	else
		peek(op, AZURE_PAGE_MAX, looked);
}
