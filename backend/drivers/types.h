/* SPDX-License-Identifier: MIT */
/* What goes into requests and comes out of them: messages, drafts, settlements. */
#ifndef SPOOLFS_DRIVERS_TYPES_H
#define SPOOLFS_DRIVERS_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "../base/buf.h"

/* A message as received, or a dead letter as listed. */
struct driver_msg {
	char *id;          /* unique in the queue, for ever; printable ASCII */
	char *receipt;     /* the lease; NULL for a dead letter */
	char *given;       /* the name its writer gave, or NULL */
	char *reason;      /* dead letters: why, one line; else NULL */
	char *record;      /* the claim record kept with it (DRIVER_LOAD), or NULL */
	struct blob *body; /* NULL for a dead letter: DRIVER_DEAD_READ fetches it */
	uint64_t size;
	int64_t enqueued_ns;    /* wall clock, a whole number of microseconds */
	int64_t lease_until_ns; /* monotonic */
	unsigned attempts;      /* failed handlings so far */
	unsigned dequeue_count; /* how often it was leased, this time included */
};

/* A draft as stored. */
struct driver_draft {
	int64_t id; /* given by the driver at the first put, > 0 */
	char *name; /* as the writer called it */
	struct blob *body;
	int64_t begun_ns; /* wall clock */
	uint32_t mode, uid, gid;
	bool outbox; /* complete: its send had been asked for */
};

enum settle_op {
	SETTLE_DELETE,  /* handled: remove from the queue */
	SETTLE_RELEASE, /* end the lease; to be received again after delay_ns */
	SETTLE_RENEW,   /* lease for delay_ns from now */
	SETTLE_BURY,    /* make it a dead letter, with reason */
	SETTLE_CLAIM,   /* STORE: keep record with the leased message. When the
			   lease of a message that has a record runs out, the
			   driver counts one attempt more (DRIVER_ATTEMPTS) */
	SETTLE_UNCLAIM, /* STORE: forget the record, keep the lease */
	SETTLE_DISCARD, /* a dead letter: remove for good (no receipt) */
	SETTLE_REVIVE,  /* a dead letter: waiting again, attempts 0 (no receipt) */
};

/* One message to settle. Strings stay the caller's. */
struct settle {
	enum settle_op op;
	const char *id;
	const char *receipt; /* the newest */
	int64_t delay_ns;
	unsigned attempts;  /* RELEASE, BURY: the new count */
	const char *reason; /* BURY */
	const char *record; /* CLAIM: opaque text, at most DRIVER_RECORD_MAX */
	struct blob *body;  /* BURY: a FAR driver needs it: there it is sent anew */
	/* answers */
	int err;                /* of the closed set; each item on its own */
	char *new_receipt;      /* RENEW: the receipt to use from now on; the
				   caller frees it. NULL: unchanged */
	int64_t lease_until_ns; /* RENEW: monotonic */
	char *new_id;           /* BURY: of the dead letter where that is another;
				   the caller frees it. NULL: the same */
	void *arg;              /* the caller's */
};

#define DRIVER_RECORD_MAX 4096

enum keep_op {
	KEEP_CLAIM, /* leased by this mount, with a claim record: all but reason */
	KEEP_RENEW, /* of a claimed one: receipt, lease_until_ns */
	KEEP_COUNT, /* the claim ended: only attempts are remembered */
	KEEP_DEAD,  /* it is a dead letter now: reason */
	KEEP_FORGET,
};

/* One message of another queue, to be remembered here. Strings and the body stay
 * the caller's, but for RECALL's answers. */
struct keep {
	enum keep_op op; /* not for RECALL */
	const char *id;
	const char *receipt, *record;
	struct blob *body;
	int64_t enqueued_ns;    /* wall clock */
	int64_t lease_until_ns; /* monotonic */
	unsigned attempts, dequeue_count;
	const char *reason;
	/* RECALL's answers: attempts (one more than was counted when a claim was
	 * never ended), and the reason (driver_req_fini() frees it). Else 0, NULL */
	unsigned known_attempts;
	char *known_reason;
};

/* What one mount tells the others of its queue. */
struct driver_appetite {
	bool hungry;         /* it has nothing unread and would take messages */
	int64_t consumed_ns; /* wall clock of its last claim; 0 never */
};

#endif
