/* SPDX-License-Identifier: MIT */
#include "patience.h"

#include "../base/clock.h"

void patience_own(struct patience *p, int change)
{
	if (change > 0)
		p->depth++;
	else if (p->depth)
		p->depth--;
}

bool patience_counted(struct patience *p, uint64_t depth, unsigned unsure, int64_t now_ns)
{
	bool others = p->counted && depth + unsure < p->depth;

	p->counted = true;
	p->depth = depth;
	if (others)
		p->others_ns = now_ns;
	return others;
}

static int64_t doubled(int64_t ns, int64_t max_ns)
{
	return ns > max_ns / 2 ? max_ns : 2 * ns;
}

static struct patience_decision let_go(struct patience *p, int64_t visibility_ns)
{
	int64_t rest = p->rest_ns ? p->rest_ns : visibility_ns;

	p->rest_ns = doubled(rest, PATIENCE_REST_MAX * visibility_ns);
	return (struct patience_decision){PATIENCE_LET_GO, rest};
}

struct patience_decision patience_decide(
	struct patience *p, bool interested, int64_t visibility_ns, int64_t now_ns)
{
	int64_t first = PATIENCE_BAIT_FIRST * visibility_ns;

	if (interested || !p->bait_ns) {
		p->bait_every_ns = first;
		p->bait_ns = clock_add(now_ns, first);
	}
	if (interested) {
		p->rest_ns = 0;
		return (struct patience_decision){PATIENCE_HOLD, 0};
	}
	if (p->others_ns && now_ns - p->others_ns < PATIENCE_OTHERS * visibility_ns)
		return let_go(p, visibility_ns);
	p->rest_ns = 0;
	if (now_ns < p->bait_ns)
		return (struct patience_decision){PATIENCE_HOLD, 0};
	p->bait_every_ns = doubled(p->bait_every_ns, PATIENCE_BAIT_MAX * visibility_ns);
	p->bait_ns = clock_add(now_ns, p->bait_every_ns);
	return (struct patience_decision){PATIENCE_BAIT, visibility_ns};
}
