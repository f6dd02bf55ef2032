/* SPDX-License-Identifier: MIT */
/* Drafts from inside, and requests about them to the driver's store. Their own. */
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

/* draft.c, sent.c */
struct draft *draft_new(struct engine *e, const char *name);
/* Takes D out of the list its state says. */
void draft_unlist(struct engine *e, struct draft *d);
void draft_free(struct engine *e, struct draft *d);
/* Frees a dropped D once nobody refers to it. */
void draft_reap(struct engine *e, struct draft *d);
void sent_init(struct engine *e);
/* D was accepted by the backend. */
void sent_add(struct engine *e, struct draft *d);
void sent_fini(struct engine *e);

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
