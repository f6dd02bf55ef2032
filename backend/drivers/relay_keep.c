/* SPDX-License-Identifier: MIT */
/* Notes to the keeper: what it is to remember of the service's messages. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../base/log.h"
#include "relay_int.h"

struct relay_note {
	struct driver_req req;
	struct relay *r;
	struct keep *items;
	size_t n, max;
	bool failed; /* out of memory: part of it is missing */
	void (*done)(void *arg, int err);
	void *arg;
};

static void note_free(struct relay_note *n)
{
	for (size_t i = 0; i < n->n; i++) {
		struct keep *k = &n->items[i];

		free((char *)(uintptr_t)k->id);
		free((char *)(uintptr_t)k->receipt);
		free((char *)(uintptr_t)k->record);
		free((char *)(uintptr_t)k->reason);
		blob_unref(k->body);
	}
	free(n->items);
	free(n);
}

struct relay_note *relay_note_create(struct relay *r, size_t max)
{
	struct relay_note *n = calloc(1, sizeof(*n));

	if (n)
		n->items = calloc(max ? max : 1, sizeof(*n->items));
	if (!n || !n->items) {
		free(n);
		return NULL;
	}
	n->r = r;
	n->max = max;
	return n;
}

static const char *copy(struct relay_note *n, const char *text)
{
	char *p = text ? strdup(text) : NULL;

	n->failed |= text && !p;
	return p;
}

void relay_note_add(struct relay_note *n, const struct keep *k)
{
	struct keep *to;

	if (!n || n->n == n->max)
		return;
	to = &n->items[n->n++];
	*to = *k;
	to->id = copy(n, k->id);
	to->receipt = copy(n, k->receipt);
	to->record = copy(n, k->record);
	to->reason = copy(n, k->reason);
	to->body = k->body ? blob_ref(k->body) : NULL;
}

static void finish(struct relay_note *n, int err)
{
	if (n->done)
		n->done(n->arg, err);
	note_free(n);
}

static void kept(struct driver_req *req)
{
	struct relay_note *n = req->arg;

	if (req->err)
		log_warn("relay", "the state could not be written: %s", req->detail);
	finish(n, req->err);
}

void relay_note_send(struct relay_note *n, void (*done)(void *arg, int err), void *arg)
{
	if (!n) {
		if (done)
			done(arg, -ENOMEM);
		return;
	}
	n->done = done;
	n->arg = arg;
	if (n->failed || (!n->n && n->max)) {
		finish(n, n->failed ? -ENOMEM : 0);
		return;
	}
	n->req.op = DRIVER_KEEP;
	n->req.done = kept;
	n->req.arg = n;
	n->req.u.keep.items = n->items;
	n->req.u.keep.n = n->n;
	driver_submit(n->r->local, &n->req);
}
