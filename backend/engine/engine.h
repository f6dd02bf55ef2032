/* SPDX-License-Identifier: MIT */
/*
 * The queue as this process holds it: a window of leased messages, the claims
 * on them, drafts and an outbox, dead letters, and the poller that fills the
 * window. Knows no filesystem: fs/ shows it as a directory, and a consumer
 * without a mount can drive it as well.
 *
 * Everything happens on the loop's thread. No call waits: what must reach the
 * driver is written behind, and those who need to know get a callback.
 */
#ifndef SPOOLFS_ENGINE_ENGINE_H
#define SPOOLFS_ENGINE_ENGINE_H

#include "backoff.h"
#include "budget.h"
#include "errors.h"
#include "idle.h"
#include "lease.h"
#include "message.h"
#include "owner.h"
#include "poller.h"

struct engine;
struct loop;
struct draft;
struct dead;
struct histogram;

struct engine_config {
	struct lease_policy lease;
	struct backoff_config backoff;
	struct budget_config budget; /* budget_possible() */
	int64_t idle_timeout_ns;     /* nothing handled for so long ends it; 0: never */
	unsigned window;             /* unread messages held at most (>= 1) */
	size_t window_bytes;         /* and their bytes; one larger message is held too */
	bool receives;               /* false: role=out */
	bool owned;                  /* claims belong to processes (claims=owner) */
	bool rm_unread_deletes;
};

/*
 * What the engine tells. Called from the loop or from inside an engine call;
 * a callback must not call back into the engine for the same object, except
 * where it says so.
 */
struct engine_events {
	/* M is here: READY (-ENOMEM gives it back), or CLAIMED before a restart. */
	int (*arrived)(void *arg, struct message *m);
	/* M went for another reason than engine_remove() or a call that says so.
	 * Forget it. */
	void (*left)(void *arg, struct message *m);
	/* M's claim was undone: it is READY again, under its own name. */
	void (*unclaimed)(void *arg, struct message *m);
	void (*dead_added)(void *arg, struct dead *d);
	void (*dead_removed)(void *arg, struct dead *d);
	/* A draft of an earlier life was found: its name is to be shown. */
	void (*draft_found)(void *arg, struct draft *d);
	/* D was accepted by the backend, and 2 s later it is forgotten. */
	void (*draft_sent)(void *arg, struct draft *d);
	void (*draft_gone)(void *arg, struct draft *d);
	/* The poller's state, or another thing .control tells, changed. */
	void (*changed)(void *arg);
	/* A readable message came, or the last one went: for poll(2). */
	void (*ready_changed)(void *arg, bool ready);
	/* The engine wants to end, see engine_end_reason(): a drain came to its end,
	 * the time of a bounded run is used, or idle_timeout has passed. Once; to be
	 * answered by engine_stop(), also from inside. */
	void (*finished)(void *arg);
	void *arg;
};

/* Figures for .control. Counters only grow. */
struct engine_stats {
	enum poller_state state;
	int poll_err; /* of the last poll or start, as in driver_req.err; -EAGAIN
			 while none was answered */
	int64_t backoff_interval_ns;
	int64_t next_poll_in_ns; /* -1: none planned */
	uint64_t polls_total, polls_empty, polls_empty_in_a_row;
	uint64_t requests_total; /* requests made to the backend */
	uint64_t depth;          /* waiting, delayed and leased, as last counted */
	bool depth_known;        /* it was counted */
	unsigned ready, in_flight, outbox, drafts, drafts_stale;
	uint64_t dead;
	uint64_t received_total, claims_total, handled_total, released_total,
		buried_total;
	uint64_t sent_total, leases_lost, errors_total;
	uint64_t errors[ERROR_KINDS];     /* the same by kind */
	const struct histogram *handling; /* of all handlings; the engine's */
	int64_t avg_handling_ns;          /* -1: none yet */
	int64_t margin_ns, stop_in_ns;    /* of a bounded run; -1: it is none */
	enum idle_state idle;
	int64_t idle_left_ns;                     /* -1: not counting */
	int64_t oldest_claim_ns, oldest_ready_ns; /* ages; -1: none */
	const char *last_error;                   /* "" when there was none */
};

/*
 * Takes DRIVER (not owned: close it after engine_destroy()), which must have
 * DRIVER_STORE. CFG and EV are copied. NULL and errno.
 */
struct engine *engine_create(struct loop *loop, struct driver *driver,
	const struct engine_config *cfg, const struct engine_events *ev);
/* Takes NULL. Tells nobody. Every driver request must have been answered:
 * after engine_stop() has called back, or the driver was closed. */
void engine_destroy(struct engine *e);

/* Takes over what an earlier daemon left, then begins to poll. FN(ARG) once the
 * first poll was answered or failed (role=out: once the store was read). */
void engine_start(struct engine *e, void (*fn)(void *arg, int err), void *arg);
/* The driver's on_change: another process changed the queue. */
void engine_driver_changed(struct engine *e);
/* New policies, from the next decision on. The role cannot change. */
void engine_configure(struct engine *e, const struct engine_config *cfg);
/*
 * Ends: no more claims, readers in engine_next() get nothing, unread messages
 * go back, deletions and sends are finished as far as the backend lets (at most
 * GRACE_NS), claims are kept for the next daemon. Then FN(ARG).
 */
void engine_stop(struct engine *e, int64_t grace_ns, void (*fn)(void *arg), void *arg);
bool engine_stopping(const struct engine *e);
/* False from the beginning of a stop, a drain, or the end of a bounded run. */
bool engine_hands_out(struct engine *e);
/* Why finished() was called, for the log: "drained" and so on; "" before. */
const char *engine_end_reason(const struct engine *e);

/* The commands of .control. */
void engine_poll_now(struct engine *e);
void engine_pause(struct engine *e, bool paused); /* gives unread ones back */
void engine_drain(struct engine *e);              /* finished() when nothing is claimed */

/* The process behind a thread id. Borrowed until the next return to the loop. */
struct proc *engine_caller(struct engine *e, pid_t tid);

/* Everything deleted and sent so far is durable at the backend, or -EIO. */
struct engine_sync {
	TAILQ_ENTRY(engine_sync) link;
	uint64_t ticket;
	bool queued;
	void (*fn)(struct engine_sync *s, int err);
	void *arg;
};
void engine_sync(struct engine *e, struct engine_sync *s);
void engine_sync_cancel(struct engine *e, struct engine_sync *s);

void engine_stats(struct engine *e, struct engine_stats *out);
const struct driver_ops *engine_driver(const struct engine *e);

#endif
