/* SPDX-License-Identifier: MIT */
/* What the driver has still to be told about messages. The engine's own. */
#ifndef SPOOLFS_ENGINE_LEDGER_H
#define SPOOLFS_ENGINE_LEDGER_H

#include "../base/loop.h"
#include "backoff.h"
#include "message.h"

struct engine;

struct ledger {
	TAILQ_HEAD(ledger_list, message) urgent; /* finals, renewals */
	struct ledger_list lazy;                 /* claim records, oldest first */
	unsigned n_urgent;
	unsigned in_flight; /* requests */
	struct loop_timer timer;
	struct backoff retry;
	int64_t retry_at_ns; /* 0: no failure */
};

void ledger_init(struct engine *e);
void ledger_fini(struct engine *e);
/* M is to be told to the driver as WANT says; a WANT_FINAL takes m->final. */
void ledger_want(struct engine *e, struct message *m, unsigned want);
/* Drops a wish that was not sent yet. */
void ledger_drop(struct engine *e, struct message *m, unsigned want);
/* Sends everything now. */
void ledger_flush(struct engine *e);
/* What failed is tried again at once. */
void ledger_retry_now(struct engine *e);
bool ledger_idle(const struct engine *e);

#endif
