/* SPDX-License-Identifier: MIT */
/*
 * Drafts and the outbox: what is being written here, and what is complete but
 * not yet accepted by the backend. Part of the engine (engine.h).
 *
 *   open ─► (put: durable) ─► last close ─► sending ─► sent (2 s) ─► gone
 *                                 └► kept: a draft name, or a writer cut off
 */
#ifndef SPOOLFS_ENGINE_OUTBOX_H
#define SPOOLFS_ENGINE_OUTBOX_H

#include "../base/buf.h"
#include "engine.h"

enum draft_state {
	DRAFT_OPEN,    /* somebody may write to it */
	DRAFT_KEPT,    /* closed, waiting for a rename or an rm */
	DRAFT_SENDING, /* in the outbox */
	DRAFT_SENT,    /* accepted; its name answers for 2 s more */
	DRAFT_DROPPED, /* discarded while still open */
};

/* Sends under way to a far service. */
#define OUTBOX_FAR_MAX 16

#define DRAFT_LINGER_NS ((int64_t)2000000000)
#define DRAFT_STALE_NS  ((int64_t)600 * 1000000000)

/* Others may read these and use `user`; everything else is outbox.c's. */
struct draft {
	enum draft_state state;
	char *name;       /* as its writer calls it now */
	uint64_t serial;  /* unique in this process, from 1; for names */
	int64_t begun_ns; /* wall clock */
	int64_t mtime_ns; /* wall clock */
	uint32_t mode, uid, gid;
	struct buf data;             /* what was written, while it may still change */
	struct blob *stored;         /* the last version given to the driver, or NULL */
	struct owner_chain creators; /* referenced; n == 0 for one of an earlier life */
	unsigned writers;
	bool keep;   /* not to be sent at the last close: its name is a draft's */
	bool cut;    /* the last writer was ended by a signal */
	int refused; /* the error of a write that was refused: never a message */
	bool unfit;  /* the backend cannot carry what was stored last */
	void *user;

	TAILQ_ENTRY(draft) link;
	int64_t store_id; /* 0: not in the store */
	uint64_t version, stored_version, put_version;
	bool putting, sealing, sealed, sending, stale_told;
	unsigned naming; /* renames under way */
	int put_err;
	int64_t until_ns;   /* SENT: when it is forgotten */
	int64_t touched_ns; /* monotonic; of the last write or rename */
	struct ticket ticket;
	TAILQ_HEAD(, draft_flush) flushes;
	/* SENDING, to a far service: its writer's message before it, if that is
	 * here still; and those that wait for this one */
	struct draft *follows;
	TAILQ_HEAD(, draft) followers;
	TAILQ_ENTRY(draft) follow_link;
};

TAILQ_HEAD(draft_list, draft);

/* One who waits until what was written so far is durable. Caller's memory. */
struct draft_flush {
	TAILQ_ENTRY(draft_flush) link;
	uint64_t version;
	void (*fn)(struct draft_flush *f, int err);
	void *arg;
};

/* A new draft, opened for writing once. NULL and errno. KEEP: see above. */
struct draft *draft_create(
	struct engine *e, const char *name, struct proc *creator, bool keep);
void draft_open(struct draft *d); /* one writer more */
/* 0, -EFBIG beyond what the backend takes, -ENOMEM. */
int draft_write(struct engine *e, struct draft *d, const void *p, size_t n, uint64_t off);
int draft_truncate(struct engine *e, struct draft *d, uint64_t len);
uint64_t draft_size(const struct draft *d);
/* The bytes from OFF, at most N: *P points into the draft. Returns how many. */
size_t draft_read(const struct draft *d, uint64_t off, size_t n, const char **p);
/* Calls f->fn when what was written is durable, at once when it is already. */
void draft_flush(struct engine *e, struct draft *d, struct draft_flush *f);
/* A writer closed. The last one sends it, unless it is kept or (the caller sets
 * d->cut) was cut off. D may be gone after. */
void draft_close(struct engine *e, struct draft *d);
/* rename(2). KEEP: the new name is a draft's too; otherwise it is sent (at the
 * last close when it is open). 0 or -ENOMEM. */
int draft_rename(struct engine *e, struct draft *d, const char *name, bool keep);
/* unlink(2): discards it; one already sent is only forgotten. D is gone after,
 * or DRAFT_DROPPED while it is open (then draft_close() frees it). */
void draft_discard(struct engine *e, struct draft *d);
/* Whether CALLER may write on in D: a relative of its creator, and D was not cut
 * off. Anyone else who opens its name writes a draft of his own. */
bool draft_belongs_to(const struct draft *d, const struct proc *caller);
/* Whether D's name means D to CALLER: a relative of the creator, or anyone when
 * no creator lives any more. */
bool draft_shared_with(
	struct engine *e, const struct draft *d, const struct proc *caller);
const struct draft_list *engine_drafts(const struct engine *e); /* OPEN, KEPT */
const struct draft_list *engine_outbox(const struct engine *e); /* SENDING */

#endif
