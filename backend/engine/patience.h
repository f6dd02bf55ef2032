/* SPDX-License-Identifier: MIT */
/*
 * How long unread messages of a far queue are held. Pure.
 *
 * Holding costs a renewal each and keeps them from other machines; giving them
 * back and fetching them again counts against them in the service, and makes a
 * listing flicker. Nothing tells which other machines there are, but one thing
 * is seen: the count of the queue falls by more than was handled here.
 *
 * Rule, asked at half of each lease: while somebody here consumes, hold. When
 * others have been seen to consume, and nobody does here, let all go and rest
 * before fetching again, longer each time. When nobody was seen to consume at
 * all, hold; but from time to time let one go, and leave it for the length of
 * a lease or longer: a machine that has just come finds it, and its count falls.
 */
#ifndef SPOOLFS_ENGINE_PATIENCE_H
#define SPOOLFS_ENGINE_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

/* In leases. */
#define PATIENCE_OTHERS     10 /* so long others are remembered */
#define PATIENCE_REST_MAX   20 /* longest rest */
#define PATIENCE_BAIT_FIRST 4  /* first time one is let go; doubled each time */
#define PATIENCE_BAIT_MAX   120

struct patience {
	bool counted;
	uint64_t depth;    /* as counted last, and since then changed from here */
	int64_t others_ns; /* when others were last seen; 0: never */
	int64_t rest_ns;   /* the next rest; 0: the first */
	int64_t bait_ns;   /* when one is let go; 0: not begun */
	int64_t bait_every_ns;
};

enum patience_do {
	PATIENCE_HOLD,   /* renew all */
	PATIENCE_LET_GO, /* give all back, and fetch none for rest_ns */
	PATIENCE_BAIT,   /* give one back, the same; renew the others */
};

struct patience_decision {
	enum patience_do what;
	int64_t rest_ns;
};

/* A message was sent (+1) or deleted or buried (-1) from here. */
void patience_own(struct patience *p, int change);
/* The queue counts DEPTH; of UNSURE messages it is not known yet whether they
 * are gone. Whether this shows that others consume. */
bool patience_counted(
	struct patience *p, uint64_t depth, unsigned unsure, int64_t now_ns);
/* What to do with the unread ones. INTERESTED: somebody here consumes, or waits. */
struct patience_decision patience_decide(
	struct patience *p, bool interested, int64_t visibility_ns, int64_t now_ns);

#endif
