/* SPDX-License-Identifier: MIT */
/*
 * Tells when nothing was handled for a while. Pure.
 *
 * The time counts from the start, and anew from the end of the last of
 * concurrent handlings; never while a message is handled, however long that
 * takes. It fires once. What a fire means is its owner's: the end of a mount,
 * or that a message session rolls to the next one, which then rearms it.
 *
 * A begin and a fire at the same instant, or with the loop late: the call that
 * comes first wins. After idle_begin() it does not fire; after idle_fire() said
 * true it has fired, and a handling that begins then does not undo that.
 */
#ifndef SPOOLFS_ENGINE_IDLE_H
#define SPOOLFS_ENGINE_IDLE_H

#include <stdbool.h>
#include <stdint.h>

enum idle_state {
	IDLE_OFF,   /* no timeout, or cancelled */
	IDLE_ARMED, /* counting */
	IDLE_HELD,  /* something is handled */
	IDLE_FIRED,
};

struct idle {
	int64_t timeout_ns; /* 0: never fires */
	int64_t since_ns;   /* when nothing has been handled since */
	unsigned handling;  /* how many are */
	bool cancelled, fired;
};

void idle_init(struct idle *i, int64_t timeout_ns, int64_t now_ns);
/* Starts anew: after it fired, was cancelled, or was told another timeout.
 * What is being handled goes on holding it. */
void idle_rearm(struct idle *i, int64_t timeout_ns, int64_t now_ns);
/* A handling begins, and ends: in pairs. */
void idle_begin(struct idle *i);
void idle_end(struct idle *i, int64_t now_ns);
/* A stop: it does not fire any more. */
void idle_cancel(struct idle *i);

/* When to call idle_fire(); CLOCK_NEVER unless armed. It may be past. */
int64_t idle_due(const struct idle *i);
/* True once, at its time or when asked later. */
bool idle_fire(struct idle *i, int64_t now_ns);

/* idle_timer and idle_left_ms of .control. -1: does not apply (not armed). */
enum idle_state idle_state(const struct idle *i);
const char *idle_state_name(enum idle_state s);
int64_t idle_left_ns(const struct idle *i, int64_t now_ns);

#endif
