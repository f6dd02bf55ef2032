/* SPDX-License-Identifier: MIT */
/* Capped exponential back-off: how long to sleep after an empty poll. Pure. */
#ifndef SPOOLFS_ENGINE_BACKOFF_H
#define SPOOLFS_ENGINE_BACKOFF_H

#include <stdint.h>

enum backoff_decrease {
	BACKOFF_RESET, /* a message sets the interval to the floor */
	BACKOFF_HALVE, /* a message divides it by the factor, not below the floor */
};

struct backoff_config {
	int64_t floor_ns;
	int64_t ceiling_ns; /* >= floor_ns */
	double factor;      /* >= 1 */
	enum backoff_decrease decrease;
	unsigned jitter_percent; /* 0..100: each sleep is drawn from +-so much */
};

struct backoff {
	struct backoff_config cfg;
	int64_t interval_ns; /* the next sleep, before jitter */
};

/* Starts at the floor. */
void backoff_init(struct backoff *b, const struct backoff_config *cfg);
/* Takes over new bounds; the interval is clamped into them. */
void backoff_configure(struct backoff *b, const struct backoff_config *cfg);
/*
 * An empty poll: returns how long to sleep (the interval, with jitter, within
 * (0, ceiling]) and makes the interval min(ceiling, interval * factor).
 * RANDOM is uniform over [0, 1).
 */
int64_t backoff_empty(struct backoff *b, double random);
/* A poll that brought messages. */
void backoff_hit(struct backoff *b);

#endif
