/* SPDX-License-Identifier: MIT */
/*
 * When to poll next. Pure: told what happened and the time, it answers when.
 * It never polls itself; the engine does, one receive at a time.
 */
#ifndef SPOOLFS_ENGINE_POLLER_H
#define SPOOLFS_ENGINE_POLLER_H

#include <stdbool.h>
#include <stdint.h>

#include "backoff.h"

enum poller_state {
	POLLER_POLLING, /* a receive is under way, or due now */
	POLLER_WAITING, /* sleeping its back-off */
	POLLER_FULL,    /* the window has no room */
	POLLER_PAUSED,
	POLLER_DRAINING, /* no more polls; what is claimed may finish */
	POLLER_OFFLINE,  /* the backend does not answer; retried with back-off */
	POLLER_STOPPED,
};

struct poller {
	struct backoff backoff;
	int64_t slept_ns;      /* the interval that is being slept, or comes next */
	int64_t next_ns;       /* when the sleep ends */
	int64_t not_before_ns; /* what the backend asked for: no wake ends it */
	bool busy;             /* a receive is under way */
	bool again;            /* woken while busy: poll once more at once */
	bool full, paused, draining, stopped, offline;
	bool receives; /* false: role=out */
	uint64_t polls_total, polls_empty, empty_in_a_row;
};

/* Due at once. RECEIVES false: never polls (role=out). */
void poller_init(struct poller *p, const struct backoff_config *cfg, bool receives,
	int64_t now_ns);
/* When the next receive is to be made; CLOCK_NEVER: not before something
 * else happens. Not after NOW: now. */
int64_t poller_next(const struct poller *p, int64_t now_ns);
enum poller_state poller_state(const struct poller *p, int64_t now_ns);
const char *poller_state_name(enum poller_state s);

/* A receive starts. */
void poller_begin(struct poller *p);
/*
 * It brought N messages; MORE: the queue may hold further ones at once. An
 * empty one sleeps; one that brought messages is followed by the next at once.
 * DUE_NS (monotonic, CLOCK_NEVER unknown) ends the sleep early: a delayed
 * message is visible then. RANDOM in [0, 1).
 */
void poller_result(struct poller *p, unsigned n, bool more, int64_t due_ns,
	int64_t now_ns, double random);
/* It failed with -EAGAIN or the like: offline, sleep at least RETRY_AFTER_NS. */
void poller_failed(
	struct poller *p, int64_t retry_after_ns, int64_t now_ns, double random);
/* Something arrived, or somebody said "poll": the sleep ends now. Nothing while
 * paused; while full, once there is room; offline, not before RETRY_AFTER_NS. */
void poller_wake(struct poller *p, int64_t now_ns);
void poller_set_full(struct poller *p, bool full);
/* Resuming ends the sleep. */
void poller_pause(struct poller *p, bool paused);
void poller_drain(struct poller *p);
void poller_stop(struct poller *p);

#endif
