/* SPDX-License-Identifier: MIT */
#include "backoff.h"

static int64_t clamp(const struct backoff_config *cfg, double ns)
{
	if (ns <= (double)cfg->floor_ns)
		return cfg->floor_ns;
	if (ns >= (double)cfg->ceiling_ns)
		return cfg->ceiling_ns;
	return (int64_t)ns;
}

void backoff_init(struct backoff *b, const struct backoff_config *cfg)
{
	b->cfg = *cfg;
	b->interval_ns = cfg->floor_ns;
}

void backoff_configure(struct backoff *b, const struct backoff_config *cfg)
{
	b->cfg = *cfg;
	b->interval_ns = clamp(cfg, (double)b->interval_ns);
}

/* The ceiling is a promise ("a message is seen within a minute"); the floor is
 * a mean, so jitter may go below it. */
static int64_t jittered(const struct backoff *b, double random)
{
	double spread = b->cfg.jitter_percent / 100.0;
	double ns = (double)b->interval_ns * (1 + spread * (2 * random - 1));

	if (ns >= (double)b->cfg.ceiling_ns)
		return b->cfg.ceiling_ns;
	return ns < 1 ? 1 : (int64_t)ns;
}

int64_t backoff_empty(struct backoff *b, double random)
{
	int64_t sleep_ns = jittered(b, random);

	b->interval_ns = clamp(&b->cfg, (double)b->interval_ns * b->cfg.factor);
	return sleep_ns;
}

void backoff_hit(struct backoff *b)
{
	if (b->cfg.decrease == BACKOFF_RESET)
		b->interval_ns = b->cfg.floor_ns;
	else
		b->interval_ns = clamp(&b->cfg, (double)b->interval_ns / b->cfg.factor);
}
