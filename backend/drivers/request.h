/* SPDX-License-Identifier: MIT */
/* One asynchronous request to a driver; driver.h says how it travels. */
#ifndef SPOOLFS_DRIVERS_REQUEST_H
#define SPOOLFS_DRIVERS_REQUEST_H

#include <sys/queue.h>

#include "types.h"

enum driver_op {
	DRIVER_RECEIVE,    /* lease messages, oldest first */
	DRIVER_SETTLE,     /* a batch; err is 0 when each item was answered */
	DRIVER_SEND,       /* enqueue one new message */
	DRIVER_DEPTH,      /* count */
	DRIVER_SYNC,       /* done when all before it is durable */
	DRIVER_DRAFT_PUT,  /* STORE: store a draft durably, whole */
	DRIVER_DRAFT_NAME, /* STORE: change its name */
	DRIVER_DRAFT_SEND, /* STORE: make it a waiting message */
	DRIVER_DRAFT_SEAL, /* STORE: it is complete: LOAD shall say `outbox` */
	DRIVER_DRAFT_DROP, /* STORE: forget it */
	DRIVER_LOAD,       /* STORE: drafts and leased messages of an earlier life */
	DRIVER_DEAD_LIST,  /* DEAD: the oldest dead letters, without bodies */
	DRIVER_DEAD_READ,  /* DEAD: the body of one */
	DRIVER_PEERS,      /* PEERS_KNOWN: tell the own appetite, get the others' */
	DRIVER_KEEP,       /* KEEPER: remember, or forget, messages of another queue */
	DRIVER_RECALL,     /* KEEPER: what is known of those just received */
	DRIVER_OPS,        /* how many there are */
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
			unsigned max;            /* in: at most so many (>= 1) */
			size_t max_bytes;        /* in: stop before exceeding; at least
						    one message is given all the same */
			int64_t lease_ns;        /* in */
			struct driver_msg *msgs; /* out: array of n, in queue order */
			unsigned n;
			int64_t next_due_ns; /* out, monotonic: when the next one
						delayed, or leased by another
						mount, becomes visible as far as
						is known; CLOCK_NEVER: none */
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
			int64_t id;              /* in: 0 for a new one; out: its id */
			const char *name;        /* in */
			struct blob *body;       /* PUT in, and SEND in where the driver
						    is far; the caller keeps its reference */
			int64_t begun_ns;        /* PUT in */
			uint32_t mode, uid, gid; /* PUT in */
			const char *given;   /* SEND in: name of the message, or NULL */
			char *msg_id;        /* SEND out */
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
			struct keep *items; /* the caller's array */
			size_t n;
		} keep; /* KEEP, RECALL */
		struct {
			const char *id;    /* in */
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

#endif
