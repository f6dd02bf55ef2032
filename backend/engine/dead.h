/* SPDX-License-Identifier: MIT */
/* Dead letters, as last listed by the driver. Part of the engine (engine.h). */
#ifndef SPOOLFS_ENGINE_DEAD_H
#define SPOOLFS_ENGINE_DEAD_H

#include <uthash.h>

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
	char *id; /* the engine's */
	struct driver_req req;
};

/* BODY is borrowed for the call. -ENOENT when it is gone meanwhile. */
void dead_read(struct engine *e, struct dead *d, struct dead_read *r);
/* Removes D for good / puts it back into the queue, attempts 0. D is gone after
 * (dead_removed() is not called). 0 or -ENOMEM. */
int dead_discard(struct engine *e, struct dead *d);
int dead_revive(struct engine *e, struct dead *d);
/* uthash head, for iteration over those with !gone. At most `window` of them. */
struct dead *engine_dead(const struct engine *e);

#endif
