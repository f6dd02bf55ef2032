/* SPDX-License-Identifier: MIT */
/*
 * The relay's inside.
 *
 *   relay.c         open, close, and requests that take a step on both sides
 *   relay_settle.c  settlements: what of them is whose
 *   relay_keep.c    notes to the keeper
 *   relay_state.c   where the keeper's file is
 */
#ifndef SPOOLFS_DRIVERS_RELAY_INT_H
#define SPOOLFS_DRIVERS_RELAY_INT_H

#include "../base/loop.h"
#include "../base/table.h"
#include "relay.h"

/* A message that was handed out. */
struct relay_msg {
	UT_hash_handle hh;
	char *id;
	uint64_t serial; /* of this lease: the same message may come again */
	struct blob *body;
	int64_t enqueued_ns, lease_until_ns;
	unsigned attempts, dequeue_count;
	bool kept; /* the keeper has its claim */
};

struct relay {
	struct driver_base base;
	struct driver_ops ops; /* the far one's, with what the keeper adds */
	struct driver *far, *local;
	struct loop *loop;
	struct relay_msg *msgs; /* by id */
	uint64_t serial;        /* of the newest of them */
	bool closing;           /* the far driver is closed */
	TAILQ_HEAD(, driver_req) done;
	struct loop_task done_task;
};

/* Hands REQ back, from the loop: what answers at once must not do so inside
 * driver_submit(). */
void relay_complete(struct relay *r, struct driver_req *req);
struct relay_msg *relay_find(struct relay *r, const char *id);
/* Takes NULL. */
void relay_forget(struct relay *r, struct relay_msg *m);

/* relay_keep.c: tells the keeper, nobody waits for its answer. */
struct relay_note;
struct relay_note *relay_note_create(struct relay *r, size_t max);
/* Strings are copied, the body is referenced. */
void relay_note_add(struct relay_note *n, const struct keep *k);
/* DONE(ARG) once the keeper has answered; DONE may be NULL. An empty one is
 * answered without asking when DONE is NULL. Takes NULL, as one that failed. */
void relay_note_send(struct relay_note *n, void (*done)(void *arg, int err), void *arg);

/* relay_settle.c */
void relay_settle(struct relay *r, struct driver_req *req);

#endif
