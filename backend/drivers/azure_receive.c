/* SPDX-License-Identifier: MIT */
/* Receive, send, depth. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "azure_int.h"

/* The longest text of a message. */
#define TEXT_MAX 65536
/* Each look at the dead letters costs a request; others bury seldom. */
#define DEAD_LOOK_NS (600 * NS_PER_S)

static void start(struct azure_op *op, enum azure_verb verb, struct azure_queue *queue,
	void (*done)(struct azure_call *c))
{
	op->call.az = op->az;
	op->call.verb = verb;
	op->call.queue = queue;
	op->call.done = done;
	op->call.arg = op;
	azure_call_start(&op->call);
}

/* ---- receive ---- */

static int fill_message(struct azure *az, struct driver_msg *out, struct azure_message *m,
	int64_t lease_until_ns)
{
	int r = azure_decode(az, m, &out->body);

	if (r)
		return r;
	out->id = m->id;
	out->receipt = m->receipt;
	m->id = m->receipt = NULL;
	out->size = out->body->len;
	out->enqueued_ns = m->inserted_ns;
	out->dequeue_count = m->dequeued;
	out->lease_until_ns = lease_until_ns;
	return 0;
}

static void received(struct azure_call *c)
{
	struct azure_op *op = c->arg;
	struct driver_req *req = op->req;
	int64_t until = clock_add(c->sent_ns, c->visible_s * NS_PER_S);
	int r = 0;

	if (c->err) {
		azure_op_failed(op, c);
		return;
	}
	req->u.receive.msgs = calloc(c->page.n + 1, sizeof(*req->u.receive.msgs));
	if (!req->u.receive.msgs)
		r = -ENOMEM;
	for (unsigned i = 0; r == 0 && i < c->page.n; i++) {
		r = fill_message(
			op->az, &req->u.receive.msgs[i], &c->page.items[i], until);
		if (r == 0)
			req->u.receive.n++;
	}
	if (r) {
		driver_req_fini(req);
		azure_op_fail(op, r, "out of memory");
		return;
	}
	azure_op_end(op);
}

void azure_receive(struct azure_op *op)
{
	struct driver_req *req = op->req;
	size_t room = req->u.receive.max_bytes / TEXT_MAX;
	unsigned max = req->u.receive.max;

	req->u.receive.msgs = NULL;
	req->u.receive.n = 0;
	req->u.receive.next_due_ns = CLOCK_NEVER;
	if (max == 0) {
		azure_op_fail(op, -EINVAL, "a receive of no messages");
		return;
	}
	/* How long they are is not known before they are leased. */
	if (max > room)
		max = room ? (unsigned)room : 1;
	op->call.max = max > AZURE_PAGE_MAX ? AZURE_PAGE_MAX : max;
	op->call.visible_s = azure_seconds(req->u.receive.lease_ns, 1);
	start(op, AZURE_GET, &op->az->queue, received);
}

/* ---- send ---- */

static void sent(struct azure_call *c)
{
	struct azure_op *op = c->arg;

	if (c->err) {
		azure_op_failed(op, c);
		return;
	}
	op->req->u.send.id = c->page.items[0].id;
	c->page.items[0].id = NULL;
	op->req->u.send.enqueued_ns = c->page.items[0].inserted_ns;
	azure_op_end(op);
}

void azure_send(struct azure_op *op)
{
	const struct blob *body = op->req->u.send.body;
	int r;

	op->req->u.send.id = NULL;
	if (body->len > op->az->base.max_body) {
		azure_op_fail(op, -EMSGSIZE, "the message is too large for the service");
		return;
	}
	r = azure_encode(op->az, body->data, body->len, &op->call.document);
	if (r)
		azure_op_fail(op, r,
			r == -EILSEQ ? "not text that XML can carry: use encoding=base64"
				     : "out of memory");
	else
		start(op, AZURE_PUT, &op->az->queue, sent);
}

/* ---- depth ---- */

static void answer_depth(struct azure_op *op)
{
	op->req->u.depth.dead = op->az->dead;
	azure_op_end(op);
}

/* When they cannot be counted the earlier count stands. */
static void dead_counted(struct azure_call *c)
{
	struct azure_op *op = c->arg;

	if (!c->err)
		op->az->dead = c->count;
	else if (c->err == -ENOENT)
		op->az->dead = 0;
	else if (c->err == -EAGAIN)
		op->az->dead_look_ns = 0;
	answer_depth(op);
}

static void counted(struct azure_call *c)
{
	struct azure_op *op = c->arg;
	struct azure *az = op->az;
	int64_t now = clock_mono();

	if (c->err) {
		azure_op_failed(op, c);
		return;
	}
	op->req->u.depth.waiting = c->count;
	op->req->u.depth.leased = 0;
	if (now < az->dead_look_ns) {
		answer_depth(op);
		return;
	}
	az->dead_look_ns = clock_add(now, DEAD_LOOK_NS);
	azure_call_fini(c);
	start(op, AZURE_COUNT, &az->poison, dead_counted);
}

void azure_depth(struct azure_op *op)
{
	start(op, AZURE_COUNT, &op->az->queue, counted);
}
