/* SPDX-License-Identifier: MIT */
#include "engine_bed_queue.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *eb_need(void *p)
{
	if (!p)
		abort();
	return p;
}

static void copy(char *to, size_t len, const char *from)
{
	if ((size_t)snprintf(to, len, "%s", from ? from : "") >= len)
		abort();
}

/* ---- the queue ---- */

struct eb_message *eb_insert(
	struct eb *b, const char *id, const char *given, struct blob *body)
{
	struct eb_message *m = eb_need(calloc(1, sizeof(*m)));

	copy(m->id, sizeof(m->id), id);
	copy(m->given, sizeof(m->given), given);
	m->body = blob_ref(body);
	m->size = body->len;
	m->enqueued_ns = clock_wall() + (int64_t)++b->serial * NS_PER_US;
	m->until_ns = clock_mono();
	TAILQ_INSERT_TAIL(&b->messages, m, link);
	return m;
}

static void new_receipt(struct eb *b, struct eb_message *m)
{
	snprintf(m->receipt, sizeof(m->receipt), "r%" PRIu64, ++b->serial);
}

static char *or_null(const char *text)
{
	return *text ? eb_need(strdup(text)) : NULL;
}

static void hand_out(const struct eb_message *m, struct driver_msg *out)
{
	*out = (struct driver_msg){
		.id = eb_need(strdup(m->id)),
		.receipt = m->state == EB_DEAD ? NULL : eb_need(strdup(m->receipt)),
		.given = or_null(m->given),
		.reason = or_null(m->reason),
		.record = or_null(m->record),
		.body = m->state == EB_DEAD ? NULL : blob_ref(m->body),
		.size = m->size,
		.enqueued_ns = m->enqueued_ns,
		.lease_until_ns = m->until_ns,
		.attempts = m->attempts,
		.dequeue_count = m->dequeues,
	};
}

static void expire(struct eb *b)
{
	struct eb_message *m;

	TAILQ_FOREACH (m, &b->messages, link) {
		if (m->state != EB_LEASED || m->until_ns > clock_mono())
			continue;
		b->lapsed++;
		m->state = EB_WAITING;
		m->attempts += m->record[0] != 0;
		m->record[0] = '\0';
	}
}

static void receive(struct eb *b, struct driver_req *req)
{
	struct eb_message *m;
	size_t bytes = 0;
	unsigned n = 0;

	b->receive_max = req->u.receive.max;
	req->u.receive.msgs =
		eb_need(calloc(req->u.receive.max, sizeof(struct driver_msg)));
	req->u.receive.next_due_ns = CLOCK_NEVER;
	TAILQ_FOREACH (m, &b->messages, link) {
		if (m->state != EB_WAITING)
			continue;
		if (m->until_ns > clock_mono()) {
			if (m->until_ns < req->u.receive.next_due_ns)
				req->u.receive.next_due_ns = m->until_ns;
			continue;
		}
		if (n == req->u.receive.max ||
			(n && bytes + m->size > req->u.receive.max_bytes))
			break;
		m->state = EB_LEASED;
		m->until_ns = clock_mono() + req->u.receive.lease_ns;
		m->dequeues++;
		new_receipt(b, m);
		bytes += m->size;
		hand_out(m, &req->u.receive.msgs[n++]);
	}
	req->u.receive.n = n;
}

static void renew(struct eb *b, struct eb_message *m, struct settle *s)
{
	m->until_ns = clock_mono() + s->delay_ns;
	s->lease_until_ns = m->until_ns;
	if (!b->new_receipts)
		return;
	new_receipt(b, m);
	s->new_receipt = eb_need(strdup(m->receipt));
}

static void end_lease(struct eb_message *m, enum eb_state state, const struct settle *s)
{
	m->state = state;
	m->attempts = s->attempts;
	m->until_ns = clock_mono() + s->delay_ns;
	m->record[0] = '\0';
	copy(m->reason, sizeof(m->reason), state == EB_DEAD ? s->reason : "");
}

static int settle_dead(struct eb_message *m, enum settle_op op)
{
	if (m->state != EB_DEAD)
		return -ENOENT;
	m->state = op == SETTLE_REVIVE ? EB_WAITING : EB_GONE;
	m->attempts = 0;
	return 0;
}

static int settle_leased(struct eb *b, struct eb_message *m, struct settle *s)
{
	if (m->state == EB_GONE || m->state == EB_DEAD)
		return -ENOENT;
	if (m->state != EB_LEASED || !s->receipt || strcmp(m->receipt, s->receipt) != 0)
		return -ESTALE;
	if (s->op == SETTLE_DELETE)
		m->state = EB_GONE;
	else if (s->op == SETTLE_RENEW)
		renew(b, m, s);
	else if (s->op == SETTLE_CLAIM)
		copy(m->record, sizeof(m->record), s->record);
	else if (s->op == SETTLE_UNCLAIM)
		m->record[0] = '\0';
	else
		end_lease(m, s->op == SETTLE_BURY ? EB_DEAD : EB_WAITING, s);
	return 0;
}

static int settle_one(struct eb *b, struct settle *s)
{
	struct eb_item_fault *f = &b->item_fault;
	struct eb_message *m = eb_stored(b, s->id);

	if (f->times && f->op == s->op && strcmp(f->id, s->id) == 0) {
		f->times--;
		return f->err;
	}
	if (!m)
		return -ENOENT;
	if (s->op == SETTLE_DISCARD || s->op == SETTLE_REVIVE)
		return settle_dead(m, s->op);
	return settle_leased(b, m, s);
}

static void settle(struct eb *b, struct driver_req *req)
{
	for (size_t i = 0; i < req->u.settle.n; i++)
		req->u.settle.items[i].err = settle_one(b, &req->u.settle.items[i]);
}

static void count(struct eb *b, struct driver_req *req)
{
	struct eb_message *m;

	req->u.depth.waiting = req->u.depth.leased = req->u.depth.dead = 0;
	TAILQ_FOREACH (m, &b->messages, link) {
		req->u.depth.waiting += m->state == EB_WAITING;
		req->u.depth.leased += m->state == EB_LEASED;
		req->u.depth.dead += m->state == EB_DEAD;
	}
}

static char *enqueue(struct eb *b, const char *given, struct blob *body)
{
	struct eb_message *m;
	char id[16];

	snprintf(id, sizeof(id), "s%" PRIu64, ++b->serial);
	m = eb_insert(b, id, given, body);
	if (buf_printf(&b->sent, "%s ", m->given))
		abort();
	return eb_need(strdup(id));
}

static struct eb_draft *find_draft(struct eb *b, int64_t id)
{
	struct eb_draft *d;

	TAILQ_FOREACH (d, &b->drafts, link) {
		if (d->id == id)
			return d;
	}
	return NULL;
}

static void drop_draft(struct eb *b, struct eb_draft *d)
{
	TAILQ_REMOVE(&b->drafts, d, link);
	blob_unref(d->body);
	free(d);
}

static int put_draft(struct eb *b, struct driver_req *req)
{
	struct eb_draft *d = find_draft(b, req->u.draft.id);

	if (!d && req->u.draft.id)
		return -ENOENT;
	if (!d) {
		d = eb_need(calloc(1, sizeof(*d)));
		d->id = (int64_t)++b->serial;
		TAILQ_INSERT_TAIL(&b->drafts, d, link);
	}
	copy(d->name, sizeof(d->name), req->u.draft.name);
	blob_unref(d->body);
	/* A copy: the caller's is not to change, and this shows when it does. */
	d->body = eb_need(blob_create(req->u.draft.body->data, req->u.draft.body->len));
	req->u.draft.id = d->id;
	return 0;
}

static int change_draft(struct eb *b, struct driver_req *req)
{
	struct eb_draft *d = find_draft(b, req->u.draft.id);

	if (!d)
		return -ENOENT;
	if (req->op == DRIVER_DRAFT_SEND)
		req->u.draft.msg_id = enqueue(b, req->u.draft.given, d->body);
	if (req->op == DRIVER_DRAFT_NAME)
		copy(d->name, sizeof(d->name), req->u.draft.name);
	else if (req->op == DRIVER_DRAFT_SEAL)
		d->outbox = true;
	else
		drop_draft(b, d);
	return 0;
}

static void load_drafts(struct eb *b, struct driver_req *req, unsigned max)
{
	struct eb_draft *d;

	req->u.load.drafts = eb_need(calloc(max + 1, sizeof(struct driver_draft)));
	TAILQ_FOREACH (d, &b->drafts, link)
		req->u.load.drafts[req->u.load.n_drafts++] = (struct driver_draft){
			.id = d->id,
			.name = eb_need(strdup(d->name)),
			.body = blob_ref(d->body),
			.outbox = d->outbox,
		};
}

static void load(struct eb *b, struct driver_req *req)
{
	struct eb_message *m;
	unsigned max = (unsigned)b->serial;

	load_drafts(b, req, max);
	req->u.load.msgs = eb_need(calloc(max + 1, sizeof(struct driver_msg)));
	TAILQ_FOREACH (m, &b->messages, link) {
		if (m->state != EB_LEASED)
			continue;
		m->until_ns = clock_mono() + req->u.load.lease_ns;
		hand_out(m, &req->u.load.msgs[req->u.load.n_msgs++]);
	}
}

static void list_dead(struct eb *b, struct driver_req *req)
{
	struct eb_message *m;

	req->u.dead.n = 0;
	req->u.dead.msgs = eb_need(calloc(req->u.dead.max, sizeof(struct driver_msg)));
	TAILQ_FOREACH (m, &b->messages, link) {
		if (m->state == EB_DEAD && req->u.dead.n < req->u.dead.max)
			hand_out(m, &req->u.dead.msgs[req->u.dead.n++]);
	}
}

static int read_dead(struct eb *b, struct driver_req *req)
{
	struct eb_message *m = eb_stored(b, req->u.dead_read.id);

	if (!m || m->state != EB_DEAD)
		return -ENOENT;
	req->u.dead_read.body = blob_ref(m->body);
	return 0;
}

static void carry_out(struct eb *b, struct driver_req *req)
{
	switch (req->op) {
	case DRIVER_RECEIVE:
		receive(b, req);
		break;
	case DRIVER_SETTLE:
		settle(b, req);
		break;
	case DRIVER_SEND:
		req->u.send.id = enqueue(b, req->u.send.given, req->u.send.body);
		break;
	case DRIVER_DEPTH:
		count(b, req);
		break;
	case DRIVER_DRAFT_PUT:
		req->err = put_draft(b, req);
		break;
	case DRIVER_DRAFT_NAME:
	case DRIVER_DRAFT_SEAL:
	case DRIVER_DRAFT_SEND:
	case DRIVER_DRAFT_DROP:
		req->err = change_draft(b, req);
		break;
	case DRIVER_LOAD:
		load(b, req);
		break;
	case DRIVER_DEAD_LIST:
		list_dead(b, req);
		break;
	case DRIVER_DEAD_READ:
		req->err = read_dead(b, req);
		break;
	case DRIVER_PEERS:
		req->u.peers.any = b->others;
		req->u.peers.n_peers = b->n_peers;
		break;
	default: /* a sync is done; no other is among the capabilities */
		break;
	}
}

/* ---- the driver ---- */

static void answer(struct eb *b, struct driver_req *req)
{
	struct eb_fault *f = &b->fault[req->op];

	expire(b);
	if (f->times) {
		f->times--;
		req->err = f->err;
		req->retry_after_ns = f->retry_after_ns;
		driver_detail(req, "as told");
	} else {
		carry_out(b, req);
	}
	b->activity++;
	driver_complete(req);
}

static void deliver(void *arg)
{
	struct eb *b = arg;
	struct eb_reqs now = TAILQ_HEAD_INITIALIZER(now);
	struct driver_req *req;

	TAILQ_CONCAT(&now, &b->pending, link);
	while ((req = TAILQ_FIRST(&now))) {
		TAILQ_REMOVE(&now, req, link);
		answer(b, req);
	}
}

static void remember(struct eb *b, const struct driver_req *req)
{
	size_t n = b->n_settles + req->u.settle.n;

	b->batches++;
	b->settles = eb_need(realloc(b->settles, n * sizeof(*b->settles)));
	for (size_t i = 0; i < req->u.settle.n; i++) {
		const struct settle *s = &req->u.settle.items[i];
		struct eb_settle *to = &b->settles[b->n_settles++];

		*to = (struct eb_settle){.op = s->op,
			.batch = b->batches,
			.delay_ns = s->delay_ns,
			.attempts = s->attempts};
		copy(to->id, sizeof(to->id), s->id);
		copy(to->receipt, sizeof(to->receipt), s->receipt);
		copy(to->reason, sizeof(to->reason), s->reason);
	}
}

static bool is_draft(const struct driver_req *req)
{
	return req->op >= DRIVER_DRAFT_PUT && req->op <= DRIVER_DRAFT_DROP;
}

/* Requests about drafts do not overtake each other. */
static bool is_held(const struct eb *b, const struct driver_req *req)
{
	const struct driver_req *r;

	if (b->fault[req->op].hold)
		return true;
	TAILQ_FOREACH (r, &b->held, link) {
		if (is_draft(r) && is_draft(req))
			return true;
	}
	return false;
}

static void take_in(struct eb *b, struct driver_req *req)
{
	if (is_held(b, req)) {
		TAILQ_INSERT_TAIL(&b->held, req, link);
		return;
	}
	TAILQ_INSERT_TAIL(&b->pending, req, link);
	loop_task_queue(b->loop, &b->task);
}

static void submit(struct driver *d, struct driver_req *req)
{
	struct eb *b = (struct eb *)(void *)d;

	b->activity++;
	b->asked[req->op]++;
	if (req->op == DRIVER_SETTLE)
		remember(b, req);
	if (req->op == DRIVER_PEERS)
		b->mine = req->u.peers.mine;
	take_in(b, req);
}

void eb_queue_let(struct eb *b)
{
	struct eb_reqs all = TAILQ_HEAD_INITIALIZER(all);
	struct driver_req *req;

	TAILQ_CONCAT(&all, &b->held, link);
	while ((req = TAILQ_FIRST(&all))) {
		TAILQ_REMOVE(&all, req, link);
		take_in(b, req);
	}
}

static void close_driver(struct driver *d)
{
	struct eb *b = (struct eb *)(void *)d;

	for (int op = 0; op < DRIVER_OPS; op++)
		b->fault[op].hold = false;
	eb_queue_let(b);
	while (!TAILQ_EMPTY(&b->pending))
		deliver(b);
	loop_task_cancel(b->loop, &b->task);
}

void eb_queue_init(struct eb *b)
{
	b->ops = (struct driver_ops){
		.name = "memory",
		.caps = DRIVER_STORE | DRIVER_ATTEMPTS | DRIVER_DEAD | DRIVER_NAMES |
			DRIVER_NOTIFIES | DRIVER_PEERS_KNOWN,
		.max_receive = 100,
		.close = close_driver,
		.submit = submit,
	};
	b->base.ops = &b->ops;
	b->base.max_body = 1000;
	TAILQ_INIT(&b->messages);
	TAILQ_INIT(&b->drafts);
	TAILQ_INIT(&b->pending);
	TAILQ_INIT(&b->held);
	loop_task_init(&b->task, deliver, b);
}

void eb_queue_fini(struct eb *b)
{
	struct eb_message *m;

	while ((m = TAILQ_FIRST(&b->messages))) {
		TAILQ_REMOVE(&b->messages, m, link);
		blob_unref(m->body);
		free(m);
	}
	while (!TAILQ_EMPTY(&b->drafts))
		drop_draft(b, TAILQ_FIRST(&b->drafts));
}
