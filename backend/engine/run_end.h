/* SPDX-License-Identifier: MIT */
/* How a run ends by itself; the engine's own (see run_end.c). */
#ifndef SPOOLFS_ENGINE_RUN_END_H
#define SPOOLFS_ENGINE_RUN_END_H

#include "engine.h"

void run_end_init(struct engine *e);
/* The engine's config has changed. */
void run_end_configure(struct engine *e);
/* A stop: neither the budget nor the idle timer ends it any more. */
void run_end_stop(struct engine *e);
/* The next poll, or what is here, has changed. */
void run_end_check(struct engine *e);
/* A claim begins, and ends. */
void run_end_began(struct engine *e);
void run_end_ended(struct engine *e);
/* M's claim, which ends now, was a handling until UNTIL_NS. */
void run_end_observe(struct engine *e, const struct message *m, int64_t until_ns);
void run_end_stats(const struct engine *e, struct engine_stats *out, int64_t now);

#endif
