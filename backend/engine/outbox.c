/* SPDX-License-Identifier: MIT */
/*
 * Drafts and the outbox.
 *
 * What a writer closed is put into the store (durably, before his close()
 * returns) as a draft, whole; the last close makes it a waiting message. The
 * two are separate steps since nothing tells at a close() whether it is the
 * last: `{ a; b; } > f` closes three times.
 */
#include "outbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

static void put(struct engine *e, struct draft *d);

/* ---- making it durable ---- */

void draft_answer_flushes(struct draft *d, uint64_t version, int err)
{
	struct draft_flush *f, *next;

	for (f = TAILQ_FIRST(&d->flushes); f; f = next) {
		next = TAILQ_NEXT(f, link);
		if (!err && f->version > version)
			continue;
		TAILQ_REMOVE(&d->flushes, f, link);
		f->fn(f, err);
	}
}

/* The errors a close() may say. */
static int close_error(int err)
{
	return err == -ENOSPC || err == -EILSEQ || err == -ENOMEM ? err
	       : err == -EMSGSIZE                                 ? -EFBIG
								  : -EIO;
}

static void put_answered(struct driver_req *req)
{
	struct store_req *s = req->arg;
	struct engine *e = store_answered(s, "storing a draft");
	struct draft *d = s->d;

	d->putting = false;
	d->put_err = req->err ? close_error(req->err) : 0;
	if (!req->err) {
		d->store_id = req->u.draft.id;
		d->stored_version = d->put_version;
		blob_unref(d->stored);
		d->stored = s->body;
		s->body = NULL;
		d->unfit = !driver_carries(e->driver, d->stored->data, d->stored->len);
	}
	store_free(s);
	draft_answer_flushes(
		d, d->stored_version, !d->put_err && d->unfit ? -EILSEQ : d->put_err);
	if (d->state == DRAFT_DROPPED) /* meanwhile: the store has it now */
		draft_drop_stored(e, d);
	draft_advance(e, d);
	engine_check_end(e);
}

/* Stores D as it is now. One at a time; advance() looks again afterwards. */
static void put(struct engine *e, struct draft *d)
{
	struct store_req *s;

	if (d->putting || d->sending)
		return;
	s = store_req(e, d, DRIVER_DRAFT_PUT, put_answered);
	if (s)
		s->name = strdup(d->name);
	if (s)
		s->body = blob_create(d->data.p, d->data.len);
	if (!s || !s->name || !s->body) {
		d->put_err = -ENOMEM;
		if (s)
			store_free(s);
		draft_answer_flushes(d, 0, -ENOMEM);
		return;
	}
	d->putting = true;
	d->put_version = d->version;
	s->req.u.draft.name = s->name;
	s->req.u.draft.body = s->body;
	s->req.u.draft.begun_ns = d->begun_ns;
	s->req.u.draft.mode = d->mode;
	s->req.u.draft.uid = d->uid;
	s->req.u.draft.gid = d->gid;
	store_submit(s);
}

void draft_flush(struct engine *e, struct draft *d, struct draft_flush *f)
{
	if (d->stored_version == d->version || d->state == DRAFT_DROPPED || d->refused) {
		f->fn(f, d->refused ? d->refused : d->unfit ? -EILSEQ : 0);
		return;
	}
	f->version = d->version;
	TAILQ_INSERT_TAIL(&d->flushes, f, link);
	put(e, d);
}

/* ---- what is not sent ---- */

/* Closed and not to be sent: it waits in .drafts/, if it could be stored. */
static void keep(struct engine *e, struct draft *d)
{
	barrier_leave(e, &d->ticket);
	if (d->cut && d->state == DRAFT_OPEN)
		log_warn("outbox",
			"writer was ended by a signal: kept in .drafts name=%s", d->name);
	d->state = DRAFT_KEPT;
	if (!loop_timer_is_set(&e->stale_timer))
		loop_timer_set(e->loop, &e->stale_timer, d->touched_ns + DRAFT_STALE_NS);
	engine_changed(e);
}

void draft_take_back(struct engine *e, struct draft *d)
{
	log_error("outbox", "the backend refuses it, kept in .drafts name=%s", d->name);
	draft_unlist(e, d);
	barrier_leave(e, &d->ticket);
	d->sealed = false;
	d->state = DRAFT_OPEN;
	TAILQ_INSERT_TAIL(&e->drafts, d, link);
	e->n_drafts++;
	d->cut = true;
	keep(e, d);
}

/* The close of what could not be stored said so: what was stored before stays a
 * draft, and the rest is dropped, told in the log. */
static void give_up(struct engine *e, struct draft *d)
{
	log_error("outbox", "could not be stored, its writer was told name=%s", d->name);
	d->cut = true;
	if (d->put_err == -EILSEQ) {
		keep(e, d);
		return;
	}
	if (d->store_id) {
		buf_fini(&d->data);
		d->version = d->stored_version;
		keep(e, d);
		return;
	}
	e->ev.draft_gone(e->ev.arg, d);
	draft_unlist(e, d);
	d->state = DRAFT_DROPPED;
	draft_answer_flushes(d, UINT64_MAX, d->put_err);
	draft_reap(e, d);
}

/* An empty message needs no draft where it is durable as soon as it is sent. */
static bool must_be_put(const struct engine *e, const struct draft *d)
{
	return driver_can(e->driver, DRIVER_FAR) && !d->store_id && !d->keep && !d->cut;
}

void draft_advance(struct engine *e, struct draft *d)
{
	if (d->state == DRAFT_DROPPED) {
		draft_reap(e, d);
		return;
	}
	if (d->state == DRAFT_SENDING || d->state == DRAFT_SENT || d->putting ||
		d->naming)
		return;
	if (d->stored_version != d->version && !TAILQ_EMPTY(&d->flushes)) {
		put(e, d);
		return;
	}
	if (d->writers || !TAILQ_EMPTY(&d->flushes))
		return;
	if (d->refused) {
		d->put_err = d->refused;
		give_up(e, d);
		return;
	}
	if (d->stored_version != d->version || must_be_put(e, d)) {
		if (d->put_err)
			give_up(e, d);
		else
			put(e, d);
		return;
	}
	if (d->keep || d->cut || d->unfit)
		keep(e, d);
	else
		outbox_send(e, d);
}

void draft_close(struct engine *e, struct draft *d)
{
	d->writers--;
	if (d->writers)
		return;
	if (d->state == DRAFT_OPEN && !d->keep && !d->cut && !d->ticket.open)
		barrier_enter(e, &d->ticket); /* from now on a sync waits for it */
	draft_advance(e, d);
}

/* ---- start, timers, end ---- */

static void tell_stale(void *arg)
{
	struct engine *e = arg;
	int64_t now = clock_mono(), next = CLOCK_NEVER;
	struct draft *d;

	TAILQ_FOREACH (d, &e->drafts, link) {
		if (d->stale_told || d->state != DRAFT_KEPT)
			continue;
		if (d->touched_ns + DRAFT_STALE_NS > now) {
			if (d->touched_ns + DRAFT_STALE_NS < next)
				next = d->touched_ns + DRAFT_STALE_NS;
			continue;
		}
		d->stale_told = true;
		e->n_stale++;
		log_warn("outbox", "draft left alone for 10 min name=%s", d->name);
		engine_changed(e);
	}
	loop_timer_set(e->loop, &e->stale_timer, next);
}

bool outbox_idle(const struct engine *e)
{
	return !e->store_busy && TAILQ_EMPTY(&e->outbox);
}

void outbox_load(struct engine *e, struct driver_draft *drafts, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct draft *d = draft_new(e, drafts[i].name);

		if (!d)
			continue;
		d->store_id = drafts[i].id;
		d->stored = drafts[i].body;
		drafts[i].body = NULL;
		d->begun_ns = drafts[i].begun_ns;
		d->mtime_ns = drafts[i].begun_ns;
		d->mode = drafts[i].mode;
		d->uid = drafts[i].uid;
		d->gid = drafts[i].gid;
		d->keep = !drafts[i].outbox;
		d->sealed = drafts[i].outbox;
		e->ev.draft_found(e->ev.arg, d);
		draft_advance(e, d);
	}
}

void outbox_init(struct engine *e)
{
	TAILQ_INIT(&e->drafts);
	TAILQ_INIT(&e->outbox);
	sent_init(e);
	loop_timer_init(&e->stale_timer, tell_stale, e);
	sending_init(e);
}

static void free_all(struct engine *e, struct draft_list *list)
{
	struct draft *d;

	while ((d = TAILQ_FIRST(list))) {
		draft_unlist(e, d);
		draft_free(e, d);
	}
}

void outbox_fini(struct engine *e)
{
	loop_timer_clear(e->loop, &e->stale_timer);
	loop_timer_clear(e->loop, &e->outbox_timer);
	sent_fini(e);
	free_all(e, &e->outbox);
	free_all(e, &e->drafts);
}
