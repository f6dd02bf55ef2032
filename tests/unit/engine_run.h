/* SPDX-License-Identifier: MIT */
/* Engines that end by themselves: what their tests share. */
#ifndef SPOOLFS_TESTS_UNIT_ENGINE_RUN_H
#define SPOOLFS_TESTS_UNIT_ENGINE_RUN_H

#include "backend/engine/histogram.h"

#include "engine_people.h"

/* 60 s, of which the last 10 are a margin while nothing was handled. */
static inline void bounded(struct eb *b)
{
	eb_init(b);
	b->cfg.budget = (struct budget_config){.run_for_ns = 60 * NS_PER_S,
		.estimated_ns = 2 * NS_PER_S,
		.tolerance = 5};
	b->cfg.backoff.floor_ns = b->cfg.backoff.ceiling_ns = 5 * NS_PER_S;
}

static inline void lazy(struct eb *b, int64_t timeout_ns)
{
	eb_init(b);
	b->cfg.idle_timeout_ns = timeout_ns;
	b->cfg.backoff.ceiling_ns = NS_PER_S;
}

static inline void stopped(void *arg)
{
	(void)arg;
}

static inline struct engine_stats stats(struct eb *b)
{
	struct engine_stats s;

	engine_stats(b->e, &s);
	return s;
}

static inline bool finished(struct eb *b)
{
	return strstr(eb_told(b), "finished");
}

/* Claims ID, and deletes it NS later. */
static inline void handle(struct eb *b, const char *id, int64_t ns)
{
	struct message *m = take(b, id);

	eb_pass(b, ns);
	CHECK_INT(engine_remove(b->e, m, me(b)), 0);
	eb_run(b);
}

#endif
