/* SPDX-License-Identifier: MIT */
/* The messages leased here that nobody has claimed; the engine's own. */
#ifndef SPOOLFS_ENGINE_WINDOW_H
#define SPOOLFS_ENGINE_WINDOW_H

#include "engine.h"

void window_init(struct engine *e);
void window_arrive(struct engine *e, struct driver_msg *msgs, unsigned n);
/* Gives back the N youngest unread messages (all: UINT_MAX). */
void window_give_back(struct engine *e, unsigned n);
/* The same, to be received by nobody before DELAY_NS have passed. */
void window_let_go(struct engine *e, unsigned n, int64_t delay_ns);
void window_add_ready(struct engine *e, struct message *m);
void window_take_ready(struct engine *e, struct message *m);
void window_check_room(struct engine *e);
void window_serve_waiters(struct engine *e);
/* Sets when M's lease is looked at next. */
void window_set_due(struct engine *e, struct message *m, int64_t at_ns);
void window_lost(struct engine *e, struct message *m, const char *why);
/* M leaves the window or the claims for good; the ledger does the rest. */
void window_detach(struct engine *e, struct message *m);
void window_fini(struct engine *e);

#endif
