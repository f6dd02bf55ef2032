/* SPDX-License-Identifier: MIT */
/*
 * A batch of settlements, in three steps: the keeper is told what must be known
 * before the service acts (a claim; how often a message has failed that goes
 * back, since it may be here again in a moment), the service is asked, and the
 * keeper is told what has become of it. The last step nobody waits for: it is
 * carried out before whatever comes after it, and a crash in between costs a
 * second delivery.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "relay_int.h"

/* Of an item for the service. */
struct place {
	size_t at;       /* where it stands in the original */
	uint64_t serial; /* of the lease it is about; 0 none is known */
};

struct settling {
	struct relay *r;
	struct driver_req *orig;
	struct driver_req sub;
	struct settle *items; /* those for the service */
	struct place *places; /* of each */
	size_t n;
	bool released;
};

static void settling_free(struct settling *s)
{
	if (!s)
		return;
	free(s->items);
	free(s->places);
	free(s);
}

static bool is_local(enum settle_op op)
{
	return op == SETTLE_CLAIM || op == SETTLE_UNCLAIM;
}

/* ---- before ---- */

static void keep_claim(
	struct relay_note *note, struct relay_msg *m, const struct settle *it)
{
	relay_note_add(note, &(struct keep){.op = KEEP_CLAIM,
				     .id = m->id,
				     .receipt = it->receipt,
				     .record = it->record,
				     .body = m->body,
				     .enqueued_ns = m->enqueued_ns,
				     .lease_until_ns = m->lease_until_ns,
				     .attempts = m->attempts,
				     .dequeue_count = m->dequeue_count});
	m->kept = true;
}

static void keep_count(struct relay_note *note, struct relay_msg *m, unsigned attempts)
{
	enum keep_op op = attempts ? KEEP_COUNT : KEEP_FORGET;

	if (m->kept || m->attempts != attempts)
		relay_note_add(note,
			&(struct keep){.op = op, .id = m->id, .attempts = attempts});
	m->kept = false;
	m->attempts = attempts;
}

static void before(struct settling *s, struct relay_note *note, struct settle *it)
{
	struct relay_msg *m = relay_find(s->r, it->id);

	it->err = is_local(it->op) && !m ? -ENOENT : 0;
	it->new_receipt = NULL;
	it->new_id = NULL;
	it->lease_until_ns = 0;
	if (m && it->op == SETTLE_CLAIM)
		keep_claim(note, m, it);
	else if (m && it->op == SETTLE_UNCLAIM)
		keep_count(note, m, m->attempts);
	else if (m && it->op == SETTLE_RELEASE)
		keep_count(note, m, it->attempts);
}

/* ---- after ---- */

static void lost(struct relay_note *note, struct relay_msg *m, int err)
{
	if (err == -ENOENT && (m->kept || m->attempts))
		relay_note_add(note, &(struct keep){.op = KEEP_FORGET, .id = m->id});
	else if (m->kept)
		relay_note_add(note, &(struct keep){.op = KEEP_COUNT,
					     .id = m->id,
					     .attempts = m->attempts + 1});
}

static void renewed(struct relay_note *note, struct relay_msg *m, const struct settle *it)
{
	m->lease_until_ns = it->lease_until_ns;
	if (m->kept)
		relay_note_add(note, &(struct keep){.op = KEEP_RENEW,
					     .id = m->id,
					     .receipt = it->new_receipt ? it->new_receipt
									: it->receipt,
					     .lease_until_ns = it->lease_until_ns});
}

static void buried(struct relay_note *note, const struct relay_msg *m, struct settle *it)
{
	bool known = m && (m->kept || m->attempts);

	if (known && it->new_id)
		relay_note_add(note, &(struct keep){.op = KEEP_FORGET, .id = it->id});
	relay_note_add(note, &(struct keep){.op = KEEP_DEAD,
				     .id = it->new_id ? it->new_id : it->id,
				     .attempts = it->attempts,
				     .reason = it->reason});
	free(it->new_id);
	it->new_id = NULL;
}

/* Nothing of an earlier lease is said of a later one. */
static void after(
	struct settling *s, struct relay_note *note, struct settle *it, uint64_t serial)
{
	struct relay_msg *m = relay_find(s->r, it->id);

	if (m && m->serial != serial)
		m = NULL;
	if (it->err && it->err != -ENOENT && it->err != -ESTALE)
		return;
	if (it->op == SETTLE_DISCARD || it->op == SETTLE_REVIVE)
		relay_note_add(note, &(struct keep){.op = KEEP_FORGET, .id = it->id});
	else if (it->op == SETTLE_BURY && !it->err)
		buried(note, m, it);
	else if (m && it->op == SETTLE_RENEW && !it->err)
		renewed(note, m, it);
	else if (m && it->op == SETTLE_DELETE && !it->err)
		lost(note, m, -ENOENT);
	else if (m && it->err)
		lost(note, m, it->err);
	s->released |= it->op == SETTLE_RELEASE;
	if (it->op != SETTLE_RENEW || it->err)
		relay_forget(s->r, m);
}

/* The other mounts of this machine may have what was given back. */
static void ring(struct relay *r)
{
	relay_note_send(relay_note_create(r, 0), NULL, NULL);
}

static void finish(struct settling *s)
{
	struct driver_req *orig = s->orig;
	/* A burial is two notes. One of nothing would be a bell. */
	struct relay_note *note = s->n ? relay_note_create(s->r, 2 * s->n) : NULL;

	for (size_t i = 0; i < s->n; i++) {
		if (s->sub.err && !s->items[i].err)
			s->items[i].err = s->sub.err;
		after(s, note, &s->items[i], s->places[i].serial);
		orig->u.settle.items[s->places[i].at] = s->items[i];
	}
	relay_note_send(note, NULL, NULL);
	if (s->released)
		ring(s->r);
	orig->err = s->sub.err;
	orig->retry_after_ns = s->sub.retry_after_ns;
	memcpy(orig->detail, s->sub.detail, sizeof(orig->detail));
	relay_complete(s->r, orig);
	settling_free(s);
}

static void settled(struct driver_req *req)
{
	finish(req->arg);
}

/* ---- the steps ---- */

static void ask_service(void *arg, int err)
{
	struct settling *s = arg;

	for (size_t i = 0; err && i < s->orig->u.settle.n; i++)
		if (is_local(s->orig->u.settle.items[i].op))
			s->orig->u.settle.items[i].err = err;
	if (!s->n || s->r->closing) {
		s->sub.err = s->n ? -EAGAIN : 0;
		finish(s);
		return;
	}
	s->sub.op = DRIVER_SETTLE;
	s->sub.done = settled;
	s->sub.arg = s;
	s->sub.u.settle.items = s->items;
	s->sub.u.settle.n = s->n;
	driver_submit(s->r->far, &s->sub);
}

static struct settling *settling_create(struct relay *r, struct driver_req *req)
{
	struct settling *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->r = r;
	s->orig = req;
	s->items = calloc(req->u.settle.n + 1, sizeof(*s->items));
	s->places = calloc(req->u.settle.n + 1, sizeof(*s->places));
	if (s->items && s->places)
		return s;
	settling_free(s);
	return NULL;
}

void relay_settle(struct relay *r, struct driver_req *req)
{
	struct settling *s = settling_create(r, req);
	struct relay_note *note = s ? relay_note_create(r, req->u.settle.n) : NULL;

	if (!note) {
		settling_free(s);
		req->err = -ENOMEM;
		relay_complete(r, req);
		return;
	}
	for (size_t i = 0; i < req->u.settle.n; i++) {
		struct settle *it = &req->u.settle.items[i];
		const struct relay_msg *m = relay_find(r, it->id);

		before(s, note, it);
		if (is_local(it->op))
			continue;
		s->places[s->n] = (struct place){i, m ? m->serial : 0};
		s->items[s->n++] = *it;
	}
	relay_note_send(note, ask_service, s);
}
