/* SPDX-License-Identifier: MIT */
/*
 * Batches of settlements. The service settles one message a request: the items
 * of a batch go out together and the batch is answered when the last one is.
 * An item waits for an earlier one of the same message.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "azure_int.h"

/* What is sent as a receipt: printable, and never longer than one can be. */
static bool is_receipt(const char *receipt)
{
	size_t len = receipt ? strlen(receipt) : 0;

	for (size_t i = 0; i < len; i++)
		if (receipt[i] <= ' ' || receipt[i] > '~')
			return false;
	return len > 0 && len <= 1024;
}

static bool has_receipt(const struct settle *it)
{
	return it->op != SETTLE_DISCARD && it->op != SETTLE_REVIVE;
}

/* ---- the end ---- */

/* When nothing came through, the request as a whole has failed. */
static int common_error(const struct driver_req *req)
{
	const struct settle *items = req->u.settle.items;
	int err = items[0].err;

	for (size_t i = 1; i < req->u.settle.n; i++)
		if (items[i].err != err)
			return 0;
	return err == -EAGAIN || err == -EACCES ? err : 0;
}

static void item_answered(struct azure_op *op)
{
	if (--op->left > 0)
		return;
	op->req->err = common_error(op->req);
	azure_op_end(op);
}

static void start(struct azure_item *item);

static void unblock_next(struct azure *az, const char *id)
{
	struct azure_item *item;

	TAILQ_FOREACH (item, &az->items, link) {
		if (strcmp(item->it->id, id) != 0)
			continue;
		start(item);
		return;
	}
}

void azure_item_end(struct azure_item *item, int err, const struct azure_call *c)
{
	struct azure_op *op = item->op;
	struct driver_req *req = op->req;

	item->it->err = err;
	if (err && c && !req->detail[0])
		driver_detail(req, "%s", c->detail);
	if (err == -EAGAIN && c && c->retry_after_ns > req->retry_after_ns)
		req->retry_after_ns = c->retry_after_ns;
	TAILQ_REMOVE(&op->az->items, item, link);
	azure_call_fini(&item->call);
	azure_message_fini(&item->letter);
	unblock_next(op->az, item->it->id);
	item_answered(op);
}

/* ---- one request ---- */

/* What was sent twice, for a connection that was lost: the first has given it
 * back, and made the receipt of the second an old one. */
static bool was_given_back(const struct azure_item *item)
{
	const struct azure_call *c = &item->call;

	return item->it->op == SETTLE_RELEASE && c->err == -ESTALE && c->http.resent;
}

static void answered(struct azure_call *c)
{
	struct azure_item *item = c->arg;

	if (!c->err && item->it->op == SETTLE_RENEW) {
		item->it->new_receipt = c->new_receipt;
		c->new_receipt = NULL;
		item->it->lease_until_ns = clock_add(c->sent_ns, c->visible_s * NS_PER_S);
	}
	azure_item_end(item, was_given_back(item) ? 0 : c->err, c);
}

static void ask(struct azure_item *item, enum azure_verb verb, int64_t visible_s)
{
	item->call.az = item->op->az;
	item->call.verb = verb;
	item->call.queue = &item->op->az->queue;
	item->call.id = item->it->id;
	item->call.receipt = item->it->receipt;
	item->call.visible_s = visible_s;
	item->call.done = answered;
	item->call.arg = item;
	azure_call_start(&item->call);
}

static void bury(struct azure_item *item)
{
	struct azure *az = item->op->az;
	const struct settle *it = item->it;
	struct buf document = {0};
	int r = -EINVAL;

	if (it->body)
		r = azure_encode(az, it->body->data, it->body->len, &document);
	if (r) {
		driver_detail(item->op->req, "cannot be buried: %s",
			it->body ? strerrordesc_np(-r) : "its body is not known");
		buf_fini(&document);
		azure_item_end(item, r, NULL);
		return;
	}
	azure_move(item, &az->queue, &az->poison, it->id, it->receipt, &document);
}

static void start(struct azure_item *item)
{
	struct settle *it = item->it;

	switch (it->op) {
	case SETTLE_DELETE:
		ask(item, AZURE_DELETE, 0);
		break;
	case SETTLE_RELEASE:
		ask(item, AZURE_UPDATE, azure_seconds(it->delay_ns, 0));
		break;
	case SETTLE_RENEW:
		ask(item, AZURE_UPDATE, azure_seconds(it->delay_ns, 1));
		break;
	case SETTLE_BURY:
		bury(item);
		break;
	case SETTLE_DISCARD:
	case SETTLE_REVIVE:
		azure_hunt(item);
		break;
	case SETTLE_CLAIM:
	case SETTLE_UNCLAIM:
		azure_item_end(item, -EINVAL, NULL);
		break;
	}
}

/* ---- the beginning ---- */

static bool is_under_way(const struct azure *az, const char *id)
{
	const struct azure_item *item;

	TAILQ_FOREACH (item, &az->items, link)
		if (strcmp(item->it->id, id) == 0)
			return true;
	return false;
}

static void add(struct azure_item *item)
{
	struct azure *az = item->op->az;
	struct settle *it = item->it;
	bool blocked;

	it->err = 0;
	it->new_receipt = it->new_id = NULL;
	it->lease_until_ns = 0;
	if (!azure_is_id(it->id) || (has_receipt(it) && !is_receipt(it->receipt))) {
		it->err = -EINVAL;
		item_answered(item->op);
		return;
	}
	blocked = is_under_way(az, it->id);
	TAILQ_INSERT_TAIL(&az->items, item, link);
	if (!blocked)
		start(item);
}

void azure_settle(struct azure_op *op)
{
	size_t n = op->req->u.settle.n;

	if (n == 0) {
		azure_op_end(op);
		return;
	}
	op->items = calloc(n, sizeof(*op->items));
	if (!op->items) {
		azure_op_fail(op, -ENOMEM, "out of memory");
		return;
	}
	op->left = n + 1; /* nor is it answered before all have begun */
	for (size_t i = 0; i < n; i++) {
		op->items[i].op = op;
		op->items[i].it = &op->req->u.settle.items[i];
		add(&op->items[i]);
	}
	item_answered(op);
}
