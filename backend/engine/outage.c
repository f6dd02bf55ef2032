/* SPDX-License-Identifier: MIT */
#include "outage.h"

#include "../base/clock.h"

const struct outage_config outage_defaults = {
	.suspect_after = 5,
	.floor_ns = NS_PER_S,
	.ceiling_ns = 30 * NS_PER_S,
	.excuse_ns = 3600 * NS_PER_S,
};

void outage_init(struct outage *o, const struct outage_config *cfg)
{
	*o = (struct outage){.cfg = *cfg};
}

bool outage_suspected(const struct outage *o)
{
	return o->suspected;
}

int64_t outage_next(const struct outage *o, int64_t now_ns)
{
	if (!o->suspected)
		return now_ns;
	if (o->probing)
		return CLOCK_NEVER;
	return o->next_ns > now_ns ? o->next_ns : now_ns;
}

bool outage_started(struct outage *o)
{
	o->probing = o->suspected;
	return o->probing;
}

void outage_forget(struct outage *o, bool probe)
{
	if (probe)
		o->probing = false;
}

static void succeeded(struct outage *o)
{
	o->n_failed = 0;
	o->suspected = false;
	o->probing = false;
}

static void suspect(struct outage *o, int64_t now_ns)
{
	o->suspected = true;
	o->probing = false;
	o->since_ns = now_ns;
	o->pause_ns = o->cfg.floor_ns;
	o->next_ns = clock_add(now_ns, o->pause_ns);
}

static void probe_failed(struct outage *o, int64_t now_ns)
{
	o->probing = false;
	o->pause_ns *= 2;
	if (o->pause_ns > o->cfg.ceiling_ns)
		o->pause_ns = o->cfg.ceiling_ns;
	o->next_ns = clock_add(now_ns, o->pause_ns);
}

bool outage_has_failed(const struct outage *o, uint64_t id)
{
	for (unsigned i = 0; i < o->n_failed; i++) {
		if (o->failed[i] == id)
			return true;
	}
	return false;
}

static void note(struct outage *o, uint64_t id)
{
	if (!outage_has_failed(o, id))
		o->failed[o->n_failed++] = id;
}

/* The failures of those that had started before it was suspected say nothing
 * new: only a probe makes the pause longer. */
bool outage_ended(struct outage *o, uint64_t id, bool ok, bool probe, int64_t now_ns)
{
	if (ok) {
		succeeded(o);
		return true;
	}
	if (!o->suspected) {
		note(o, id);
		if (o->n_failed < o->cfg.suspect_after)
			return true;
		suspect(o, now_ns);
	} else if (probe) {
		probe_failed(o, now_ns);
	}
	return now_ns - o->since_ns >= o->cfg.excuse_ns;
}

void outage_force(struct outage *o, bool probe, int64_t now_ns)
{
	if (!o->suspected)
		suspect(o, now_ns);
	else if (probe)
		probe_failed(o, now_ns);
}

unsigned outage_pick(const struct outage *o, unsigned n, double random)
{
	return o->suspected && n > 0 ? (unsigned)((double)n * random) : 0;
}
