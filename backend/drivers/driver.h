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

#include "request.h"

struct loop;

/* What a driver can do beyond receive, settle, send and depth. */
enum {
	/* Keeps drafts and claim records durably (DRIVER_DRAFT_*, _CLAIM, _LOAD).
	 * A driver without it is opened behind a relay (relay.h), which has. */
	DRIVER_STORE = 1 << 0,
	/* Counts attempts itself as the engine tells it (settle.attempts). */
	DRIVER_ATTEMPTS = 1 << 1,
	/* Keeps dead letters with a reason (DRIVER_DEAD_*). */
	DRIVER_DEAD = 1 << 2,
	/* Calls on_change when another process changed the queue. */
	DRIVER_NOTIFIES = 1 << 3,
	/* Knows the other mounts of the queue (DRIVER_PEERS). */
	DRIVER_PEERS_KNOWN = 1 << 4,
	/* A service: each request takes a round trip and perhaps money, receiving
	 * a message counts against it there, and what is sent must be sealed
	 * first (DRIVER_DRAFT_SEAL): it may have to wait for days. */
	DRIVER_FAR = 1 << 5,
	/* Carries the name the writer gave. */
	DRIVER_NAMES = 1 << 6,
	/* Keeps what a relay must know of another queue's messages
	 * (DRIVER_KEEP, DRIVER_RECALL). */
	DRIVER_KEEPER = 1 << 7,
};

/* How a body travels in a service that takes text only. */
enum driver_encoding {
	DRIVER_TEXT,   /* as it is; -EILSEQ where the service cannot carry it */
	DRIVER_BASE64, /* anything, a third longer */
};

/* How a driver is opened. Strings stay the caller's, during the call only. */
struct driver_params {
	struct loop *loop;
	const char *source;   /* as registry_find() left it: without its scheme
				 where that only names the driver */
	const char *identity; /* which mount this is: host and mount point.
				 A later daemon with the same one takes over
				 the leases and drafts of the earlier */
	bool create;          /* make the queue if it is missing */
	bool no_drafts;       /* those of mounts that ended are left to others,
				 who show them */
	/* Of services; may be NULL. */
	const char *state;       /* directory for what must survive here */
	const char *credentials; /* file; else the environment */
	const char *ca_file;     /* PEM; else the system's authorities */
	enum driver_encoding encoding;
	/* Something was changed by another process. On the loop, coalesced. */
	void (*on_change)(void *arg);
	void *arg;
};

struct driver; /* begins with struct driver_base */

struct driver_ops {
	const char *name; /* "sqlite" */
	unsigned caps;
	unsigned max_receive; /* messages of one receive */
	/*
	 * Opens the queue; may block on the disk (it runs before the mount), never
	 * on a network: a service that is away is -EAGAIN to the requests. 0 and
	 * *out, with base.ops and base.max_body set, or an error of the closed set
	 * with a line in ERR (ERR_LEN bytes).
	 */
	int (*open)(const struct driver_params *p, struct driver **out, char *err,
		size_t err_len);
	/* Finishes what is submitted (each done() is called), then frees. */
	void (*close)(struct driver *d);
	void (*submit)(struct driver *d, struct driver_req *req);
	/* Whether a message can have this body at all; NULL: any. Pure. */
	bool (*carries)(const struct driver *d, const void *body, size_t len);
	/* Requests made to the service so far; NULL: one for each submitted. */
	uint64_t (*requests)(const struct driver *d);
	/* What is to be said of this source in SOURCE_HELP: one line. */
	const char *help;
};

struct driver_base {
	const struct driver_ops *ops;
	uint64_t max_body;  /* bytes of one message */
	uint64_t submitted; /* driver.c's */
};

/* Checked, traced wrappers (debug module "driver"). */
int driver_open(const struct driver_ops *ops, const struct driver_params *p,
	struct driver **out, char *err, size_t err_len);
void driver_close(struct driver *d); /* takes NULL */
void driver_submit(struct driver *d, struct driver_req *req);
const struct driver_ops *driver_ops_of(const struct driver *d);
uint64_t driver_max_body(const struct driver *d);
bool driver_carries(const struct driver *d, const void *body, size_t len);
uint64_t driver_requests(const struct driver *d);
static inline bool driver_can(const struct driver *d, unsigned caps)
{
	return (driver_ops_of(d)->caps & caps) == caps;
}

#endif
