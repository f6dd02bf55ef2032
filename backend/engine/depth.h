/* SPDX-License-Identifier: MIT */
/* How many messages the queue has, and what follows from it for a far one. The
 * engine's own. */
#ifndef SPOOLFS_ENGINE_DEPTH_H
#define SPOOLFS_ENGINE_DEPTH_H

struct engine;

void depth_init(struct engine *e);
void depth_count(struct engine *e);
void depth_with_poll(struct engine *e);
void engine_depth_soon(struct engine *e);
/* One message more (+1) or less (-1), by us: in the figures at once. */
void engine_count_own(struct engine *e, int change);
/* The same of one that became a dead letter. */
void engine_count_burial(struct engine *e);

/* far.c: messages to be held unread; whether to hold those that are, and the
 * same before their leases are renewed */
unsigned far_window(const struct engine *e);
void far_look(struct engine *e);
void far_renewal(struct engine *e);

#endif
