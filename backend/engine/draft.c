/* SPDX-License-Identifier: MIT */
/* One draft: its life, who shares it, what is in it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

const struct draft_list *engine_drafts(const struct engine *e)
{
	return &e->drafts;
}

const struct draft_list *engine_outbox(const struct engine *e)
{
	return &e->outbox;
}

struct draft *draft_new(struct engine *e, const char *name)
{
	struct draft *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->name = strdup(name);
	if (!d->name) {
		free(d);
		return NULL;
	}
	d->data.max = (size_t)driver_max_body(e->driver);
	d->serial = ++e->serial;
	d->begun_ns = clock_wall();
	d->mtime_ns = d->begun_ns;
	d->touched_ns = clock_mono();
	TAILQ_INIT(&d->flushes);
	TAILQ_INIT(&d->followers);
	TAILQ_INSERT_TAIL(&e->drafts, d, link);
	e->n_drafts++;
	return d;
}

struct draft *draft_create(
	struct engine *e, const char *name, struct proc *creator, bool keep)
{
	struct draft *d = draft_new(e, name);

	if (!d)
		return NULL;
	d->keep = keep;
	d->writers = 1;
	owner_chain_init(&d->creators, creator);
	for (unsigned i = 0; i < d->creators.n; i++)
		procs_ref(d->creators.p[i]);
	return d;
}

/* Those that wait for D need not do so any more. */
static void leave_line(struct draft *d)
{
	struct draft *next;

	if (d->follows)
		TAILQ_REMOVE(&d->follows->followers, d, follow_link);
	d->follows = NULL;
	while ((next = TAILQ_FIRST(&d->followers))) {
		TAILQ_REMOVE(&d->followers, next, follow_link);
		next->follows = NULL;
	}
}

void draft_unlist(struct engine *e, struct draft *d)
{
	switch (d->state) {
	case DRAFT_OPEN:
	case DRAFT_KEPT:
		TAILQ_REMOVE(&e->drafts, d, link);
		e->n_drafts--;
		e->n_stale -= d->stale_told;
		d->stale_told = false;
		break;
	case DRAFT_SENDING:
		leave_line(d);
		TAILQ_REMOVE(&e->outbox, d, link);
		e->n_outbox--;
		break;
	case DRAFT_SENT:
		TAILQ_REMOVE(&e->sent, d, link);
		e->n_sent--;
		e->sent_bytes -= draft_size(d);
		break;
	case DRAFT_DROPPED:
		break;
	}
}

void draft_free(struct engine *e, struct draft *d)
{
	barrier_leave(e, &d->ticket);
	for (unsigned i = 0; i < d->creators.n; i++)
		procs_unref(e->procs, d->creators.p[i]);
	buf_fini(&d->data);
	blob_unref(d->stored);
	free(d->name);
	free(d);
}

/* Frees D as soon as nobody refers to it any more. */
void draft_reap(struct engine *e, struct draft *d)
{
	if (d->state != DRAFT_DROPPED || d->writers || d->putting || d->naming ||
		d->sending || !TAILQ_EMPTY(&d->flushes))
		return;
	draft_free(e, d);
	engine_check_end(e);
}

void draft_open(struct draft *d)
{
	d->writers++;
	if (d->state == DRAFT_KEPT)
		d->state = DRAFT_OPEN;
}

bool draft_belongs_to(const struct draft *d, const struct proc *caller)
{
	if (d->cut || !d->creators.n)
		return false;
	return owner_may(&d->creators, caller);
}

bool draft_shared_with(struct engine *e, const struct draft *d, const struct proc *caller)
{
	if (!d->creators.n)
		return true;
	if (owner_may(&d->creators, caller))
		return true;
	for (unsigned i = 0; i < d->creators.n; i++)
		if (procs_check_alive(e->procs, d->creators.p[i]))
			return owner_may(&d->creators, caller);
	return true;
}

/* ---- content ---- */

uint64_t draft_size(const struct draft *d)
{
	return d->data.p || !d->stored ? d->data.len : d->stored->len;
}

size_t draft_read(const struct draft *d, uint64_t off, size_t n, const char **p)
{
	uint64_t size = draft_size(d);
	const char *base =
		d->data.p || !d->stored ? d->data.p : (const char *)d->stored->data;

	if (off >= size)
		return 0;
	*p = base + off;
	return n < size - off ? n : (size_t)(size - off);
}

/* What was stored becomes changeable again. */
static int thaw(struct draft *d)
{
	if (d->data.p || !d->stored)
		return 0;
	return buf_add(&d->data, d->stored->data, d->stored->len);
}

static void changed(struct draft *d)
{
	d->version++;
	d->mtime_ns = clock_wall();
	d->touched_ns = clock_mono();
}

int draft_write(struct engine *e, struct draft *d, const void *p, size_t n, uint64_t off)
{
	(void)e;
	if (off > d->data.max || n > d->data.max - off)
		d->refused = -EFBIG;
	if (!d->refused)
		d->refused = thaw(d);
	if (!d->refused)
		d->refused = buf_pwrite(&d->data, p, n, (size_t)off);
	if (!d->refused)
		changed(d);
	return d->refused;
}

int draft_truncate(struct engine *e, struct draft *d, uint64_t len)
{
	(void)e;
	if (len > d->data.max)
		d->refused = -EFBIG;
	else if (!len)
		d->refused = 0;
	if (d->refused || len == draft_size(d))
		return d->refused;
	d->refused = thaw(d);
	if (!d->refused)
		d->refused = buf_truncate(&d->data, (size_t)len);
	if (!d->refused)
		changed(d);
	return d->refused;
}
