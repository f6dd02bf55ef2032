/* SPDX-License-Identifier: MIT */
#include "account_expiry.h"

#include "../base/clock.h"

#define HOUR_NS (3600 * NS_PER_S)
#define STAGES  3

enum expiry_news expiry_look(struct expiry *e, int64_t now_ns, int64_t *next_ns)
{
	int64_t tenth = (e->end_ns - e->begin_ns) / 10;
	int64_t day = tenth < 24 * HOUR_NS ? tenth : 24 * HOUR_NS;
	/* Of a short life the last hour has begun before: no news. */
	int64_t left[STAGES] = {day, HOUR_NS, 0};
	unsigned stage = 0;

	*next_ns = CLOCK_NEVER;
	if (e->end_ns < 0)
		return EXPIRY_QUIET;
	while (stage < STAGES && now_ns >= e->end_ns - left[stage])
		stage++;
	if (stage < STAGES)
		*next_ns = e->end_ns - left[stage];
	if (stage <= e->told)
		return EXPIRY_QUIET;
	e->told = stage;
	return stage == STAGES ? EXPIRY_ENDED : EXPIRY_NEAR;
}
