/* SPDX-License-Identifier: MIT */
/*
 * What a backend is: one struct of functions, driven by typed requests.
 *
 * A driver is mechanism. It never retries, never sleeps, decides nothing: the
 * engine does. Requests go in through driver_submit() on the loop's thread and
 * come back, each exactly once, through req->done() on the loop, never before
 * driver_submit() has returned. A driver carries requests out in the order of
 * their submission where they touch the same message, and may run everything
 * that is queued as one batch (the SQLite driver: one transaction, one fsync).
 *
 * The caller owns every request and everything in it until it submits it, and
 * again once done() is called; in between it must leave it alone. What a driver
 * hands out in a request (messages, drafts, lists) belongs to the caller from
 * done() on, and is freed by driver_req_fini().
 *
 * The closed set of errors in req->err (0 or negative):
 *   -EAGAIN     unreachable, locked or throttled; retry_after_ns may hint
 *   -ENOENT     the message, draft or queue is gone
 *   -ESTALE     the receipt is not the newest: the lease was lost
 *   -EACCES     credentials or permissions
 *   -EMSGSIZE   larger than the backend takes
 *   -EILSEQ     bytes that the backend cannot carry
 *   -EINVAL     the request makes no sense to the backend
 *   -EPROTO     the backend answered what it should not
 *   -ENOSPC     no room where it stores
 *   -EIO        everything else
 *   -ENOMEM     out of memory here
 * req->detail then has one line for people, free of secrets.
 */
#ifndef SPOOLFS_DRIVERS_DRIVER_H
#define SPOOLFS_DRIVERS_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "../base/buf.h"

struct loop;

/* What a driver can do beyond receive, settle, send and depth. */
enum {
	/* Keeps drafts and claim records durably (DRIVER_DRAFT_*, _CLAIM, _LOAD).
	 * A driver without it is given a local store by the engine. */
	DRIVER_STORE = 1 << 0,
	/* Counts attempts itself as the engine tells it (settle.attempts). */
	DRIVER_ATTEMPTS = 1 << 1,
	/* Keeps dead letters with a reason (DRIVER_DEAD_*). */
	DRIVER_DEAD = 1 << 2,
	/* Calls on_change when another process changed the queue. */
	DRIVER_NOTIFIES = 1 << 3,
	/* Knows the other mounts of the queue (DRIVER_PEERS). */
	DRIVER_PEERS_KNOWN = 1 << 4,
	/* Receiving a message counts against it in the service. */
	DRIVER_COUNTS_DEQUEUES = 1 << 5,
	/* Carries the name the writer gave. */
	DRIVER_NAMES = 1 << 6,
};

/* A message as received, or a dead letter as listed. */
struct driver_msg {
	char *id;      /* unique in the queue, for ever; printable ASCII */
	char *receipt; /* the lease; NULL for a dead letter */
	char *given;   /* the name its writer gave, or NULL */
	char *reason;  /* dead letters: why, one line; else NULL */
	char *record;  /* the claim record kept with it (DRIVER_LOAD), or NULL */
	struct blob *body; /* NULL for a dead letter: DRIVER_DEAD_READ fetches it */
	uint64_t size;
	int64_t enqueued_ns; /* wall clock, a whole number of microseconds */
	int64_t lease_until_ns; /* monotonic */
	unsigned attempts;      /* failed handlings so far */
	unsigned dequeue_count; /* how often it was leased, this time included */
};

/* A draft as stored. */
struct driver_draft {
	int64_t id;  /* given by the driver at the first put, > 0 */
	char *name;  /* as the writer called it */
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
	/* answers */
	int err;             /* of the closed set; each item on its own */
	char *new_receipt;   /* RENEW: the receipt to use from now on; the
	                        caller frees it. NULL: unchanged */
	int64_t lease_until_ns; /* RENEW: monotonic */
	void *arg;           /* the caller's */
};

#define DRIVER_RECORD_MAX 4096

/* What one mount tells the others of its queue. */
struct driver_appetite {
	bool hungry;         /* it has nothing unread and would take messages */
	int64_t consumed_ns; /* wall clock of its last claim; 0 never */
};

enum driver_op {
	DRIVER_RECEIVE,    /* lease messages, oldest first */
	DRIVER_SETTLE,     /* a batch; err is 0 when each item was answered */
	DRIVER_SEND,       /* enqueue one new message */
	DRIVER_DEPTH,      /* count */
	DRIVER_SYNC,       /* done when all before it is durable */
	DRIVER_DRAFT_PUT,  /* STORE: store a draft durably, whole */
	DRIVER_DRAFT_NAME, /* STORE: change its name */
	DRIVER_DRAFT_SEND, /* STORE: make it a waiting message */
	DRIVER_DRAFT_DROP, /* STORE: forget it */
	DRIVER_LOAD,       /* STORE: drafts and leased messages of an earlier life */
	DRIVER_DEAD_LIST,  /* DEAD: the oldest dead letters, without bodies */
	DRIVER_DEAD_READ,  /* DEAD: the body of one */
	DRIVER_PEERS,      /* PEERS_KNOWN: tell the own appetite, get the others' */
};

/* One asynchronous request. Zero-initialise; set op, done, arg and the inputs. */
struct driver_req {
	enum driver_op op;
	void (*done)(struct driver_req *req);
	void *arg;

	int err;
	char detail[160];
	int64_t retry_after_ns; /* with -EAGAIN: wait at least; 0 no hint */

	union {
		struct {
			unsigned max;      /* in: at most so many (>= 1) */
			size_t max_bytes;  /* in: stop before exceeding; at least
			                      one message is given all the same */
			int64_t lease_ns;  /* in */
			struct driver_msg *msgs; /* out: array of n, in queue order */
			unsigned n;
			int64_t next_due_ns; /* out, monotonic: when a message now
			                        leased or delayed becomes visible
			                        at the latest known; CLOCK_NEVER
			                        when none or unknown */
		} receive;
		struct {
			struct settle *items; /* in/out; the caller's array */
			size_t n;
		} settle;
		struct {
			const char *given; /* in, may be NULL; the caller's */
			struct blob *body; /* in; the caller keeps its reference */
			char *id;          /* out */
			int64_t enqueued_ns;
		} send;
		struct {
			uint64_t waiting; /* visible or delayed, not leased */
			uint64_t leased;
			uint64_t dead;
		} depth;
		struct {
			int64_t id;        /* in: 0 for a new one; out: its id */
			const char *name;  /* in */
			struct blob *body; /* PUT in; the caller keeps its reference */
			int64_t begun_ns;  /* PUT in */
			uint32_t mode, uid, gid; /* PUT in */
			const char *given; /* SEND in: name of the message, or NULL */
			char *msg_id;      /* SEND out */
			int64_t enqueued_ns; /* SEND out */
		} draft;
		struct {
			struct driver_draft *drafts; /* out: array */
			unsigned n_drafts;
			struct driver_msg *msgs; /* out: leased by this mount before,
			                            the lease renewed for lease_ns;
			                            those with a record were claimed */
			unsigned n_msgs;
			int64_t lease_ns; /* in */
		} load;
		struct {
			unsigned max; /* in */
			struct driver_msg *msgs;
			unsigned n;
		} dead;
		struct {
			const char *id; /* in */
			struct blob *body; /* out */
		} dead_read;
		struct {
			struct driver_appetite mine; /* in */
			struct driver_appetite any;  /* out: hungry when any live
			                                other mount is; the latest
			                                consumed_ns of those hungry */
			unsigned n_peers;            /* out: other live mounts */
		} peers;
	} u;

	TAILQ_ENTRY(driver_req) link; /* the driver's while submitted */
};

/* Frees what the driver handed out in REQ, not REQ itself. */
void driver_req_fini(struct driver_req *req);
void driver_msg_fini(struct driver_msg *m);
void driver_draft_fini(struct driver_draft *d);
/* Formats req->detail; for drivers. */
void driver_detail(struct driver_req *req, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Hands REQ back to its caller: traces it and calls done(). For drivers, which
 * must have forgotten REQ by then. */
void driver_complete(struct driver_req *req);

/* How a driver is opened. Strings stay the caller's, during the call only. */
struct driver_params {
	struct loop *loop;
	const char *source;   /* as registry_find() left it: without its scheme
	                         where that only names the driver */
	const char *identity; /* which mount this is: host and mount point.
	                         A later daemon with the same one takes over
	                         the leases and drafts of the earlier */
	bool create;          /* make the queue if it is missing */
	/* Something was changed by another process. On the loop, coalesced. */
	void (*on_change)(void *arg);
	void *arg;
};

struct driver; /* begins with struct driver_base */

struct driver_ops {
	const char *name; /* "sqlite" */
	unsigned caps;
	uint64_t max_body;    /* bytes of one message */
	unsigned max_receive; /* messages of one receive */
	/*
	 * Opens the queue; may block (it runs before the mount). 0 and *out, or
	 * an error of the closed set with a line in ERR (ERR_LEN bytes).
	 */
	int (*open)(const struct driver_params *p, struct driver **out, char *err,
		size_t err_len);
	/* Finishes what is submitted (each done() is called), then frees. */
	void (*close)(struct driver *d);
	void (*submit)(struct driver *d, struct driver_req *req);
	/* What is to be said of this source in SOURCE_HELP: one line. */
	const char *help;
};

struct driver_base {
	const struct driver_ops *ops;
};

/* Checked, traced wrappers (debug module "driver"). */
int driver_open(const struct driver_ops *ops, const struct driver_params *p,
	struct driver **out, char *err, size_t err_len);
void driver_close(struct driver *d); /* takes NULL */
void driver_submit(struct driver *d, struct driver_req *req);
const struct driver_ops *driver_ops_of(const struct driver *d);
static inline bool driver_can(const struct driver *d, unsigned caps)
{
	return (driver_ops_of(d)->caps & caps) == caps;
}

#endif
