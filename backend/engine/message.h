/* SPDX-License-Identifier: MIT */
/* One message while this process holds a lease on it. */
#ifndef SPOOLFS_ENGINE_MESSAGE_H
#define SPOOLFS_ENGINE_MESSAGE_H

#include "../base/heap.h"
#include "../base/table.h"
#include "../drivers/driver.h"

struct claim;

enum message_state {
	MESSAGE_READY,    /* in the window, nobody's */
	MESSAGE_CLAIMED,  /* somebody's */
	MESSAGE_SETTLING, /* deleted, released or buried here; the driver is
			     being told, then the object is freed */
};

/* A place in the line of what must be confirmed (barrier.c). Zero-initialise. */
struct ticket {
	uint64_t number;
	bool open;
	TAILQ_ENTRY(ticket) link;
};

/* What the driver has still to be told about a message (ledger.h). */
enum {
	WANT_FINAL = 1 << 0, /* DELETE, RELEASE or BURY, as `final` says */
	WANT_RENEW = 1 << 1,
	WANT_CLAIM = 1 << 2,   /* keep the claim record */
	WANT_UNCLAIM = 1 << 3, /* forget it */
};

/*
 * The engine owns every message. Others may read id, given, body, size,
 * enqueued_ns, attempts, dequeue_count, lease_until_ns, state, claim and alias,
 * and use `user` as they like, until left() was called for it or they removed
 * it themselves.
 */
struct message {
	struct driver_msg d;
	enum message_state state;
	struct claim *claim; /* CLAIMED */
	char *alias;         /* CLAIMED: the name a rename gave it; else NULL */
	void *user;

	/* the engine's own */
	uint64_t serial;           /* of its arrival */
	UT_hash_handle hh;         /* by id, while READY or CLAIMED */
	TAILQ_ENTRY(message) link; /* of the window, or of those in flight */
	struct heap_node due;      /* when its lease is to be looked at */
	bool superseded;           /* received again; only its answer is awaited */
	bool given_back;           /* SETTLING: unread, for another mount */
	bool recorded;             /* the driver keeps a claim record of it */
	bool busy;                 /* a settle of it is under way */
	unsigned wants;
	unsigned sent_want; /* which of them is under way */
	int64_t renew_ns;   /* WANT_RENEW: for how long */
	int64_t want_since_ns;
	struct settle final;  /* WANT_FINAL: op, delay_ns, attempts, reason */
	struct ticket ticket; /* WANT_FINAL: of the barrier */
	TAILQ_ENTRY(message) want_link;
	bool want_queued, want_urgent;
};

TAILQ_HEAD(message_list, message);

/* Takes over what D holds. NULL and errno. */
struct message *message_create(struct driver_msg *d);
/* Takes NULL. Must be in no list and no heap. */
void message_destroy(struct message *m);
/* Queue order: by time of enqueueing, then as they came: a service may tell the
 * time in whole seconds. <0, 0, >0. */
int message_compare(const struct message *a, const struct message *b);
/* Inserts M into LIST in queue order; quick at the end. */
void message_insert(struct message_list *list, struct message *m);

#endif
