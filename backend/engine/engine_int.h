/* SPDX-License-Identifier: MIT */
/* The engine's inside, shared by its own files only. */
#ifndef SPOOLFS_ENGINE_INT_H
#define SPOOLFS_ENGINE_INT_H

#include "../base/clock.h"
#include "../base/log.h"
#include "../base/loop.h"
#include "barrier.h"
#include "dead.h"
#include "depth.h"
#include "handling.h"
#include "histogram.h"
#include "ledger.h"
#include "outbox.h"
#include "patience.h"
#include "procs.h"
#include "run_end.h"
#include "share.h"
#include "window.h"

struct engine {
	struct loop *loop;
	struct driver *driver;
	struct engine_config cfg;
	struct engine_events ev;
	struct procs *procs;

	/* window */
	struct message_list ready, in_flight;
	struct message *held; /* uthash by id: both of them */
	unsigned n_ready, n_in_flight, n_settling;
	size_t ready_bytes, in_flight_bytes;
	TAILQ_HEAD(, engine_waiter) waiters;
	struct heap due; /* lease deadlines of messages */
	struct loop_timer due_timer;
	bool was_ready;

	/* polling */
	struct poller poller;
	struct loop_timer poll_timer, load_timer;
	int64_t poll_due_ns; /* a message will be ready then, though asleep */
	int64_t hold_off_ns; /* others come first until then */
	unsigned short seed[3];
	bool loaded;
	int poll_err; /* see engine_stats */
	void (*started)(void *arg, int err);
	void *started_arg;

	/* the other mounts */
	bool told_hungry, peers_asked, peers_again;
	unsigned n_peers;
	int64_t consumed_ns, gave_ns; /* wall clock */
	struct loop_timer hungry_timer;

	struct ledger ledger;
	struct barrier barrier;

	/* outbox */
	struct draft_list drafts, outbox, sent;
	unsigned n_drafts, n_outbox, n_sending, n_sent, n_stale;
	size_t sent_bytes;
	unsigned store_busy; /* requests under way */
	uint64_t serial;
	struct loop_timer sent_timer, stale_timer, outbox_timer;
	struct backoff outbox_retry;
	bool outbox_failed;

	/* dead letters */
	struct dead *dead;
	bool dead_asked, dead_again;

	/* depth */
	struct loop_timer depth_timer;
	int64_t counted_ns;
	bool depth_asked, depth_known;
	uint64_t depth, dead_total;
	struct patience patience;

	/* a run that ends by itself */
	struct budget budget;
	struct idle idle;
	struct histogram handling;
	struct loop_timer run_timer;

	/* ending */
	bool stopping, draining, stopped;
	const char *end_reason; /* finished() was told */
	struct loop_timer stop_timer;
	struct loop_task stop_task;
	void (*stop_fn)(void *arg);
	void *stop_arg;

	unsigned requests; /* under way */
	bool unseen_told;
	bool refused;              /* the backend said -EACCES */
	int64_t given_ns;          /* when access may have been given last */
	struct engine_stats stats; /* the counters */
	char last_error[240];
};

/* engine.c */
double engine_random(struct engine *e); /* [0, 1) */
void engine_changed(struct engine *e);
/* Counts and remembers an error of the driver; logs it once per text. */
void engine_error(struct engine *e, const char *what, const struct driver_req *req);
/* Gives REQ (zeroed but for its inputs) to the driver, counting it. */
void engine_submit(struct engine *e, struct driver_req *req);
/* First line of every done(): the request came back. */
void engine_answered(struct engine *e);
void engine_poll_soon(struct engine *e);
/* Something is to be had at AT_NS (monotonic): poll then, if not before. */
void engine_poll_at(struct engine *e, int64_t at_ns);
/* When the next poll is planned, or CLOCK_NEVER; a budget may forbid it. */
int64_t engine_next_poll_ns(const struct engine *e);
/* How long to wait after REQ failed, at least. */
int64_t engine_retry_after(struct engine *e, const struct driver_req *req);

/* ending.c; check: something that an ending waits for may be finished */
void engine_end_init(struct engine *e);
void engine_end_fini(struct engine *e);
void engine_check_end(struct engine *e);
/* Tells finished(), once. */
void engine_finish(struct engine *e, const char *reason);

/* peers.c: the other mounts */
void peers_check(struct engine *e);
void peers_tell(struct engine *e);
void peers_changed(struct engine *e);
void peers_init(struct engine *e);

/* draft.c, sent.c, sending.c, outbox.c */
void sending_init(struct engine *e);
void outbox_init(struct engine *e);
void outbox_load(struct engine *e, struct driver_draft *drafts, unsigned n);
void outbox_fini(struct engine *e);
void outbox_flush(struct engine *e);
void outbox_retry_now(struct engine *e);
bool outbox_idle(const struct engine *e);

/* dead.c: asks the driver for its list, as far as the window goes */
void dead_refresh(struct engine *e);
void dead_fini(struct engine *e);

#endif
