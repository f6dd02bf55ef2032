/* SPDX-License-Identifier: MIT */
/*
 * A message from one queue to the other: put there, then deleted here.
 *
 * Problem: either step may fail, and the caller then asks anew. Rule: while the
 * message still stands where it was, its copy is remembered, so that asking
 * anew does not make another. When the message turns out to be somebody else's,
 * or gone, the copy is deleted: it is not ours to move. But not when it may be
 * gone because an earlier deletion was carried out whose answer was lost: then
 * the copy is all there is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "azure_int.h"

void azure_copy_free(struct azure_copy *c)
{
	if (!c)
		return;
	free(c->of);
	free(c->id);
	free(c->receipt);
	free(c);
}

static struct azure_copy *find(struct azure *az, const char *of)
{
	struct azure_copy *c;

	TAILQ_FOREACH (c, &az->copies, link)
		if (strcmp(c->of, of) == 0)
			return c;
	return NULL;
}

static struct azure_copy *copy_create(const char *of)
{
	struct azure_copy *c = calloc(1, sizeof(*c));

	if (c && (c->of = strdup(of)))
		return c;
	azure_copy_free(c);
	return NULL;
}

static void forget(struct azure_item *item)
{
	TAILQ_REMOVE(&item->op->az->copies, item->copy, link);
	azure_copy_free(item->copy);
	item->copy = NULL;
}

/* What is asked of QUEUE next for ITEM. */
static void ask(struct azure_item *item, enum azure_verb verb, struct azure_queue *queue,
	void (*done)(struct azure_call *c))
{
	item->call.az = item->op->az;
	item->call.verb = verb;
	item->call.queue = queue;
	item->call.done = done;
	item->call.arg = item;
	azure_call_start(&item->call);
}

static void undone(struct azure_call *c)
{
	struct azure_item *item = c->arg;

	forget(item);
	azure_item_end(item, item->err, NULL);
}

static void undo(struct azure_item *item, int err)
{
	item->err = err;
	azure_call_fini(&item->call);
	item->call.id = item->copy->id;
	item->call.receipt = item->copy->receipt;
	ask(item, AZURE_DELETE, item->to, undone);
}

static void moved(struct azure_item *item)
{
	if (item->it->op == SETTLE_BURY) {
		item->it->new_id = item->copy->id;
		item->copy->id = NULL;
	}
	forget(item);
	azure_dead_changed(item->op->az, item->id);
	azure_item_end(item, 0, NULL);
}

static void deleted(struct azure_call *c)
{
	struct azure_item *item = c->arg;
	bool gone = c->err == -ENOENT;

	if (c->err == 0 || (gone && item->copy->in_doubt)) {
		moved(item);
	} else if (gone || c->err == -ESTALE) {
		undo(item, c->err);
	} else {
		item->copy->in_doubt = true;
		azure_item_end(item, c->err, c);
	}
}

static void delete_here(struct azure_item *item)
{
	azure_call_fini(&item->call);
	item->call.id = item->id;
	item->call.receipt = item->receipt;
	ask(item, AZURE_DELETE, item->from, deleted);
}

static void copied(struct azure_call *c)
{
	struct azure_item *item = c->arg;
	struct azure_copy *copy = item->copy;

	if (c->err) {
		azure_copy_free(copy);
		item->copy = NULL;
		azure_item_end(item, c->err, c);
		return;
	}
	copy->id = c->page.items[0].id;
	copy->receipt = c->page.items[0].receipt;
	c->page.items[0].id = c->page.items[0].receipt = NULL;
	TAILQ_INSERT_TAIL(&item->op->az->copies, copy, link);
	delete_here(item);
}

void azure_move(struct azure_item *item, struct azure_queue *from, struct azure_queue *to,
	const char *id, const char *receipt, struct buf *document)
{
	item->from = from;
	item->to = to;
	item->id = id;
	item->receipt = receipt;
	item->copy = find(item->op->az, id);
	if (item->copy) {
		buf_fini(document);
		delete_here(item);
		return;
	}
	item->copy = copy_create(id);
	if (!item->copy) {
		buf_fini(document);
		azure_item_end(item, -ENOMEM, NULL);
		return;
	}
	azure_call_fini(&item->call);
	item->call.id = NULL;
	item->call.document = *document;
	ask(item, AZURE_PUT, to, copied);
}
