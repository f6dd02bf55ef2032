/* SPDX-License-Identifier: MIT */
/* What users of the engine do with messages: claim, delete, give back, wait. */
#ifndef SPOOLFS_ENGINE_HANDLING_H
#define SPOOLFS_ENGINE_HANDLING_H

#include "engine.h"

/*
 * CALLER wants to handle M. 0, -EBUSY when it is another's, -EAGAIN when none
 * is handed out any more. Claims it when it is READY; EXPLICIT claims (a
 * rename, .next) are not undone when a descriptor is closed without a read.
 * Each success with OPENS must be paired with engine_close().
 */
int engine_claim(struct engine *e, struct message *m, struct proc *caller, bool explicit,
	bool opens);
/* Something of the claimed message was read (or it is empty). */
void engine_was_read(struct engine *e, struct message *m);
/* A descriptor was closed: the last one of a claim without a read undoes it. */
void engine_close(struct engine *e, struct message *m);
/* Whether CALLER opened the claimed message itself: it goes on listing it. */
bool engine_is_opener(const struct message *m, const struct proc *caller);
/* The pid of the claim's owner, 0 for one that cannot be seen; -1: no claim. */
int engine_owner_pid(const struct message *m);
/* 0 when CALLER may delete, rename or give back M; else -EBUSY or -EAGAIN. */
int engine_may(struct engine *e, struct message *m, struct proc *caller);

/*
 * Delete M, asked by CALLER. 0: it is gone for the caller (left() is not
 * called); an unread one was buried as "unread" unless rm_unread_deletes.
 * -EBUSY, -EAGAIN as above.
 */
int engine_remove(struct engine *e, struct message *m, struct proc *caller);
/* Bury M with REASON (a string constant); the same errors and effect. */
int engine_bury(
	struct engine *e, struct message *m, struct proc *caller, const char *reason);
/* Give M back, to be ready again in DELAY_NS (-1: the usual retry delay).
 * left() is called. 0, or -EINVAL when it is not claimed. */
int engine_release(struct engine *e, struct message *m, int64_t delay_ns);
/* M was not handled, and that is nobody's fault: READY again at once, and no
 * attempt. unclaimed() is called. 0, or -EINVAL when it is not claimed. */
int engine_unclaim(struct engine *e, struct message *m);
/* The owner says it still works on M: renew, and inherit anew. */
void engine_touch(struct engine *e, struct message *m);
/* M, claimed, is shown as ALIAS (copied). 0 or -ENOMEM. */
int engine_alias(struct engine *e, struct message *m, const char *alias);

/* Ready messages in queue order, and those in flight. For iteration only. */
const struct message_list *engine_ready(const struct engine *e);
const struct message_list *engine_in_flight(const struct engine *e);

/* One who waits for a message. The caller's memory; zero-initialise. */
struct engine_waiter {
	TAILQ_ENTRY(engine_waiter) link;
	bool queued;
	struct proc *caller; /* the engine's */
	int err;             /* with no message: -ENOMEM, or 0 when the engine ends */
	/* M is claimed for the caller, explicitly; or NULL. */
	void (*fn)(struct engine_waiter *w, struct message *m);
	void *arg;
};
/* Calls w->fn at once (from inside) when a message is ready or the engine ends,
 * otherwise later; first come, first served. NONBLOCK: -EAGAIN instead of
 * waiting, 0 otherwise. */
int engine_next(
	struct engine *e, struct engine_waiter *w, struct proc *caller, bool nonblock);
void engine_next_cancel(struct engine *e, struct engine_waiter *w);

#endif
