/* SPDX-License-Identifier: MIT */
/* Who waits until everything so far is durable. The engine's own. */
#ifndef SPOOLFS_ENGINE_BARRIER_H
#define SPOOLFS_ENGINE_BARRIER_H

#include "../base/loop.h"
#include "message.h"

struct engine;
struct engine_sync;

struct barrier {
	uint64_t next_ticket;         /* given to deletions and sends in turn */
	TAILQ_HEAD(, ticket) tickets; /* not yet confirmed, oldest first */
	TAILQ_HEAD(, engine_sync) syncs;
	struct loop_task task;
	bool syncing;
	uint64_t syncing_ticket;
};

void barrier_init(struct engine *e);
/* T must stay where it is until it was left; leaving twice is harmless. */
void barrier_enter(struct engine *e, struct ticket *t);
void barrier_leave(struct engine *e, struct ticket *t);
/* The backend does not answer: those who wait get ERR. */
void barrier_fail(struct engine *e, int err);

#endif
