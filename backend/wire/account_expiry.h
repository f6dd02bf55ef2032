/* SPDX-License-Identifier: MIT */
/* When to speak of the end of a shared access signature. Pure; wall clock ns. */
#ifndef SPOOLFS_WIRE_ACCOUNT_EXPIRY_H
#define SPOOLFS_WIRE_ACCOUNT_EXPIRY_H

#include <stdint.h>

enum expiry_news {
	EXPIRY_QUIET,
	EXPIRY_NEAR,
	EXPIRY_ENDED,
};

struct expiry {
	int64_t begin_ns, end_ns; /* end: -1 for never */
	unsigned told;            /* 0 at first */
};

/*
 * What is to be said at NOW_NS and was not said before: that the last day (the
 * last tenth, of a shorter life than ten days) has begun, the last hour, the end.
 * *NEXT_NS: when to ask again, CLOCK_NEVER when never.
 */
enum expiry_news expiry_look(struct expiry *e, int64_t now_ns, int64_t *next_ns);

#endif
