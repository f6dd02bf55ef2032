/* SPDX-License-Identifier: MIT */
/*
 * An engine on a queue in memory, under a clock that stands still: what its
 * tests share. The queue is a driver that does what it is told (holds requests,
 * fails) and remembers what it was asked; prefix eb_.
 */
#ifndef SPOOLFS_TESTS_UNIT_ENGINE_BED_H
#define SPOOLFS_TESTS_UNIT_ENGINE_BED_H

#include "backend/base/clock.h"
#include "backend/base/loop.h"
#include "backend/engine/dead.h"
#include "backend/engine/handling.h"
#include "backend/engine/outbox.h"

enum eb_state {
	EB_WAITING,
	EB_LEASED,
	EB_DEAD,
	EB_GONE,
};

/* A message as the queue has it. Kept to the end of the test. */
struct eb_message {
	TAILQ_ENTRY(eb_message) link;
	enum eb_state state;
	char id[16], receipt[16], given[32], reason[16], record[1024];
	struct blob *body;
	uint64_t size;
	int64_t enqueued_ns;
	int64_t until_ns; /* WAITING: seen from then on; LEASED: its end */
	unsigned attempts, dequeues;
};

struct eb_draft {
	TAILQ_ENTRY(eb_draft) link;
	int64_t id;
	char name[32];
	struct blob *body;
	bool outbox;
};

/* One settlement that was asked for. */
struct eb_settle {
	enum settle_op op;
	unsigned batch; /* which request, from 1 */
	char id[16], receipt[16], reason[16];
	int64_t delay_ns;
	unsigned attempts;
};

/* What becomes of the next requests of one kind. */
struct eb_fault {
	bool hold;      /* not answered before eb_let() */
	unsigned times; /* so many fail */
	int err;
	int64_t retry_after_ns;
};

/* What becomes of the next settlements of one message. */
struct eb_item_fault {
	enum settle_op op;
	char id[16];
	int err;
	unsigned times;
};

struct eb {
	struct driver_base base; /* first: this is the driver */
	struct driver_ops ops;
	struct loop *loop;
	struct loop_task task;
	struct engine *e;
	struct engine_config cfg; /* may be changed between init and start */

	/* the queue */
	TAILQ_HEAD(, eb_message) messages;
	TAILQ_HEAD(eb_drafts, eb_draft) drafts;
	TAILQ_HEAD(eb_reqs, driver_req) pending, held;
	uint64_t serial;
	unsigned lapsed; /* leases that ran out */

	/* how it is to behave */
	struct eb_fault fault[DRIVER_OPS];
	struct eb_item_fault item_fault;
	bool new_receipts; /* a renewal gives another one */
	struct driver_appetite others;
	unsigned n_peers;

	/* what it was asked */
	unsigned asked[DRIVER_OPS];
	struct eb_settle *settles;
	unsigned n_settles, batches;
	unsigned receive_max;
	struct driver_appetite mine;
	struct buf sent;

	/* what the engine told: "+1 -1 ~1 " for arrived, left and unclaimed, and
	 * words for the rest */
	struct buf told;
	unsigned not_shown; /* arrivals to come for which there is no memory */
	unsigned changed, started;
	int start_err;
	uint64_t activity; /* grows with all that happens */
	char text[256];
};

/* Defaults: window 8, visibility 30 s, max_lease 1 h, inherit 15 min,
 * retry_delay 30 s, max_attempts 5, polls every 1 s to 60 s without jitter. */
void eb_init(struct eb *b);
/* Makes and starts the engine, and lets it do what is due. */
void eb_start(struct eb *b);
/* What was asked is answered, what was not is lost: a new engine starts. */
void eb_crash(struct eb *b);
void eb_close(struct eb *b);

/* Lets the loop do what is due now, until nothing moves any more. */
void eb_run(struct eb *b);
/* The same while NS go by. */
void eb_pass(struct eb *b, int64_t ns);
/* Runs, in real time but under the standing clock, until WORD was told: for what
 * the kernel tells. False when it does not come for long. */
bool eb_await_told(struct eb *b, const char *word);

/* A waiting message; later ones are younger. Its given name is NULL. */
struct eb_message *eb_put(struct eb *b, const char *id);
void eb_put_many(struct eb *b, unsigned from, unsigned to); /* "001" and so on */
struct eb_message *eb_stored(struct eb *b, const char *id); /* or NULL */
void eb_resize(struct eb_message *m, size_t size);
void eb_hold(struct eb *b, enum driver_op op);
void eb_let(struct eb *b, enum driver_op op); /* answers come with eb_run() */
void eb_fail(struct eb *b, enum driver_op op, int err, unsigned times);
void eb_fail_item(
	struct eb *b, enum settle_op op, const char *id, int err, unsigned times);

/* Forgets what was asked and told so far. */
void eb_forget(struct eb *b);
/* How many settlements of this kind; of message ID when that is not NULL. */
unsigned eb_settled(const struct eb *b, enum settle_op op, const char *id);
/* The last of them, or NULL. */
const struct eb_settle *eb_last(const struct eb *b, enum settle_op op, const char *id);
const char *eb_told(const struct eb *b);
const char *eb_sent(const struct eb *b); /* names, of messages sent: "x y " */

/* The engine's: ready or in flight, or NULL. */
struct message *eb_find(struct eb *b, const char *id);
const char *eb_ready(struct eb *b); /* ids: "1 2 " */
const char *eb_in_flight(struct eb *b);

#endif
