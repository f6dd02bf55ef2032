/* SPDX-License-Identifier: MIT */
/* Requests about drafts to the driver's store. The outbox's own. */
#ifndef SPOOLFS_ENGINE_STORE_H
#define SPOOLFS_ENGINE_STORE_H

#include "engine_int.h"

struct store_req {
	struct driver_req req;
	struct engine *e;
	struct draft *d; /* NULL once nobody waits for the answer */
	char *name;
	struct blob *body;
	struct ticket ticket;
};

/* A request about D, to be filled in further. NULL when out of memory. */
struct store_req *store_req(struct engine *e, struct draft *d, enum driver_op op,
	void (*done)(struct driver_req *req));
void store_submit(struct store_req *s);
/* The first call of every answer: counts it, and WHAT failed if it did. */
struct engine *store_answered(struct store_req *s, const char *what);
void store_free(struct store_req *s);

/* outbox.c: the backend will never take D: back to .drafts/, for people. */
void draft_take_back(struct engine *e, struct draft *d);
/* sending.c: D is complete, into the outbox with it. */
void outbox_send(struct engine *e, struct draft *d);
/* outbox.c: something about D is done: the next step, if nobody writes to it. */
void draft_advance(struct engine *e, struct draft *d);
/* Answers those who wait for VERSION or an earlier one; all when ERR. */
void draft_answer_flushes(struct draft *d, uint64_t version, int err);
/* draft_name.c: the store is to forget what it has of D. */
void draft_drop_stored(struct engine *e, struct draft *d);

#endif
