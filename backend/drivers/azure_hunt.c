/* SPDX-License-Identifier: MIT */
/*
 * Leasing certain dead letters, to discard or revive them.
 *
 * Problem: the service leases what comes first, not what is asked for; and
 * letters that one search holds another would not find. Rule: there is one hunt
 * at a time, for all that is wanted. It leases page after page for a short time
 * until everything was found or nothing more comes, and then gives back what
 * nobody wanted. What is wanted meanwhile joins it, or the next one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "azure_int.h"

#define HUNT_S 30
/* A listing shows one page; a letter far behind it has come from elsewhere. */
#define PAGES_MAX 8

struct azure_held {
	struct azure_message letter;
	struct azure_call call;
	TAILQ_ENTRY(azure_held) link;
};

static void next_page(struct azure *az);

/* ---- what is wanted ---- */

static void discarded(struct azure_call *c)
{
	struct azure_item *item = c->arg;
	/* The receipt is our own affair: somebody else has it now. */
	int err = c->err == -ESTALE ? -EAGAIN : c->err;

	if (!err || err == -ENOENT)
		azure_dead_changed(c->az, item->it->id);
	azure_item_end(item, err, c);
}

static void discard(struct azure_item *item)
{
	item->call.az = item->op->az;
	item->call.verb = AZURE_DELETE;
	item->call.queue = &item->op->az->poison;
	item->call.id = item->letter.id;
	item->call.receipt = item->letter.receipt;
	item->call.done = discarded;
	item->call.arg = item;
	azure_call_start(&item->call);
}

/* As it is: what it means is not looked at. */
static void revive(struct azure_item *item)
{
	struct azure *az = item->op->az;
	struct buf document = {0};
	int r = azure_xml_message(item->letter.text, item->letter.text_len, &document);

	if (r) {
		buf_fini(&document);
		azure_item_end(item, r, NULL);
		return;
	}
	azure_move(item, &az->poison, &az->queue, item->letter.id, item->letter.receipt,
		&document);
}

/* ---- what was leased ---- */

static struct azure_held *find(struct azure *az, const char *id)
{
	struct azure_held *h;

	TAILQ_FOREACH (h, &az->hunt.held, link)
		if (strcmp(h->letter.id, id) == 0)
			return h;
	return NULL;
}

static void held_free(struct azure_held *h)
{
	azure_call_fini(&h->call);
	azure_message_fini(&h->letter);
	free(h);
}

/* No memory for it: it comes back by itself. */
static void hold(struct azure *az, struct azure_message *m)
{
	struct azure_held *h = calloc(1, sizeof(*h));

	if (!h)
		return;
	h->letter = *m;
	*m = (struct azure_message){0};
	TAILQ_INSERT_TAIL(&az->hunt.held, h, link);
}

/* Gives what was found to those who want it. Ending an item may bring another
 * that was blocked by it, and which is wanted then. */
static void distribute(struct azure *az)
{
	struct azure_item *item = TAILQ_FIRST(&az->hunt.wanted);

	while (item) {
		struct azure_item *next = TAILQ_NEXT(item, wanted);
		struct azure_held *h = find(az, item->it->id);

		if (h) {
			TAILQ_REMOVE(&az->hunt.wanted, item, wanted);
			TAILQ_REMOVE(&az->hunt.held, h, link);
			item->letter = h->letter;
			h->letter = (struct azure_message){0};
			held_free(h);
			if (item->it->op == SETTLE_DISCARD)
				discard(item);
			else
				revive(item);
		}
		item = next;
	}
}

/* ---- the end of a hunt ---- */

static void begin(struct azure *az)
{
	az->hunt.running = true;
	az->hunt.pages = 0;
	next_page(az);
}

static void released_one(struct azure *az)
{
	if (--az->hunt.releasing > 0)
		return;
	az->hunt.running = false;
	if (!TAILQ_EMPTY(&az->hunt.wanted))
		begin(az);
}

static void released(struct azure_call *c)
{
	struct azure *az = c->az;

	held_free(c->arg);
	released_one(az);
}

static void release_all(struct azure *az)
{
	struct azure_held *h;

	az->hunt.releasing = 1;
	while ((h = TAILQ_FIRST(&az->hunt.held))) {
		TAILQ_REMOVE(&az->hunt.held, h, link);
		az->hunt.releasing++;
		h->call.az = az;
		h->call.verb = AZURE_UPDATE;
		h->call.queue = &az->poison;
		h->call.id = h->letter.id;
		h->call.receipt = h->letter.receipt;
		h->call.done = released;
		h->call.arg = h;
		azure_call_start(&h->call);
	}
	released_one(az);
}

static void drop_all(struct azure *az)
{
	struct azure_held *h;

	while ((h = TAILQ_FIRST(&az->hunt.held))) {
		TAILQ_REMOVE(&az->hunt.held, h, link);
		held_free(h);
	}
}

/* Those still wanted get ERR. What they bring is for the next hunt. A service
 * that is away is not asked to take letters back: they come back by themselves. */
static void end(struct azure *az, int err, const struct azure_call *c)
{
	struct azure_items missing = TAILQ_HEAD_INITIALIZER(missing);
	struct azure_item *item;

	TAILQ_CONCAT(&missing, &az->hunt.wanted, wanted);
	while ((item = TAILQ_FIRST(&missing))) {
		TAILQ_REMOVE(&missing, item, wanted);
		azure_item_end(item, err, c);
	}
	if (err == -EAGAIN)
		drop_all(az);
	release_all(az);
}

static void paged(struct azure_call *c)
{
	struct azure *az = c->arg;
	unsigned n = c->page.n;

	if (c->err) {
		end(az, c->err, c);
		return;
	}
	for (unsigned i = 0; i < n; i++)
		hold(az, &c->page.items[i]);
	distribute(az);
	if (TAILQ_EMPTY(&az->hunt.wanted) || n == 0 || az->hunt.pages >= PAGES_MAX)
		end(az, -ENOENT, c);
	else
		next_page(az);
}

static void next_page(struct azure *az)
{
	struct azure_call *c = &az->hunt.call;

	az->hunt.pages++;
	azure_call_fini(c);
	c->az = az;
	c->verb = AZURE_GET;
	c->queue = &az->poison;
	c->visible_s = HUNT_S;
	c->max = AZURE_PAGE_MAX;
	c->done = paged;
	c->arg = az;
	azure_call_start(c);
}

void azure_hunt(struct azure_item *item)
{
	struct azure *az = item->op->az;

	TAILQ_INSERT_TAIL(&az->hunt.wanted, item, wanted);
	if (!az->hunt.running)
		begin(az);
}

void azure_hunt_fini(struct azure *az)
{
	drop_all(az);
	azure_call_fini(&az->hunt.call);
}
