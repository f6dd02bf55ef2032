/* SPDX-License-Identifier: MIT */
/* Dead letters, as last listed by the driver. Part of the engine (engine.h). */
#ifndef SPOOLFS_ENGINE_DEAD_H
#define SPOOLFS_ENGINE_DEAD_H

#include "../base/table.h"
#include "engine.h"

struct dead {
	struct driver_msg d; /* no body */
	void *user;          /* the caller's */
	/* the engine's own */
	bool gone; /* discarded or revived here; the driver is being told */
	bool seen;
	UT_hash_handle hh;
};

/* Fetches a body. The caller's memory until fn. */
struct dead_read {
	void (*fn)(struct dead_read *r, int err, struct blob *body);
	void *arg;
	struct engine *engine; /* the rest is the engine's */
	char *id;
	struct driver_req req;
};

/* r->fn later; -ENOENT when it is gone meanwhile. BODY is borrowed: take a
 * reference, then call dead_read_fini() and free R. */
void dead_read(struct engine *e, struct dead *d, struct dead_read *r);
void dead_read_fini(struct dead_read *r);
/* Removes D for good / puts it back into the queue, attempts 0. D is gone after
 * (dead_removed() is not called). 0 or -ENOMEM. */
int dead_discard(struct engine *e, struct dead *d);
int dead_revive(struct engine *e, struct dead *d);
/* uthash head, for iteration over those with !gone. At most `window` of them. */
struct dead *engine_dead(const struct engine *e);

#endif
