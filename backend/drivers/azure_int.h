/* SPDX-License-Identifier: MIT */
/*
 * The inside of the driver for Azure Storage queues.
 *
 *   azure_queue.c    open, close, submit; answers
 *   azure_call.c     one request to the service, and what it may take
 *   azure_receive.c  receive, send, depth
 *   azure_settle.c   batches of settlements
 *   azure_move.c     a message from one queue to the other
 *   azure_dead.c     dead letters: list, read
 *   azure_hunt.c     dead letters: leasing certain ones
 *   azure_body.c     bodies as text
 *   azure_error.c    what an answer means     (pure)
 *   azure_source.c   what a source means      (pure)
 *   azure_xml.c      what a document means    (pure)
 *
 * A driver request is an operation, which makes calls, one after the other or
 * one for each item. Nothing is answered but from the task.
 */
#ifndef SPOOLFS_DRIVERS_AZURE_INT_H
#define SPOOLFS_DRIVERS_AZURE_INT_H

#include "../base/clock.h"
#include "../base/loop.h"
#include "../wire/account.h"
#include "azure_call.h"
#include "azure_source.h"
#include "driver.h"

struct azure_op;

/* A copy of a message in the other queue, while the message itself still stands
 * where it was. */
struct azure_copy {
	char *of, *id, *receipt;
	bool in_doubt; /* the message may be gone: its deletion was not answered */
	TAILQ_ENTRY(azure_copy) link;
};

/* One settlement. */
struct azure_item {
	struct azure_op *op;
	struct settle *it;
	struct azure_call call;
	TAILQ_ENTRY(azure_item) link;   /* of all under way */
	TAILQ_ENTRY(azure_item) wanted; /* of the hunt */
	struct azure_message letter;    /* a dead letter, leased */
	/* azure_move.c's */
	struct azure_copy *copy;
	struct azure_queue *from, *to;
	const char *id, *receipt; /* in `from` */
	int err;
};

/* One driver request under way. */
struct azure_op {
	struct azure *az;
	struct driver_req *req;
	struct azure_call call;
	struct azure_item *items; /* of a SETTLE */
	size_t left;              /* of them, not answered */
	TAILQ_ENTRY(azure_op) link;
};

TAILQ_HEAD(azure_items, azure_item);

struct azure {
	struct driver_base base;
	struct loop *loop;
	struct http *http;
	struct account *account;
	struct azure_source source;
	enum driver_encoding encoding;
	bool said_no_base64;
	void (*on_change)(void *arg);
	void *arg;
	struct azure_queue queue, poison;
	TAILQ_HEAD(, azure_op) ops; /* in the order of submission */
	struct azure_calls calls;   /* http has them */
	struct azure_calls failed;  /* before they were sent */
	TAILQ_HEAD(, driver_req) ready;
	struct loop_task task;
	bool closing;
	struct azure_items items; /* in the order of submission */
	TAILQ_HEAD(, azure_copy) copies;
	/* dead letters */
	struct azure_page seen; /* when last listed */
	uint64_t dead;          /* as counted */
	int64_t dead_look_ns;   /* count again then */
	struct {
		bool running;
		unsigned pages;
		unsigned releasing;
		struct azure_call call;
		struct azure_items wanted;
		TAILQ_HEAD(, azure_held) held; /* leased, not wanted */
	} hunt;
};

/* azure_queue.c: hands the request of OP back, soon, and frees OP. */
void azure_op_end(struct azure_op *op);
void azure_op_fail(struct azure_op *op, int err, const char *detail);
/* As the call failed. */
void azure_op_failed(struct azure_op *op, const struct azure_call *c);

/* azure_body.c; 0 and a new blob, or -ENOMEM. What is no base64 is taken as it is. */
int azure_decode(struct azure *az, const struct azure_message *m, struct blob **out);
/* The document that puts BODY; 0, -EILSEQ or -ENOMEM. */
int azure_encode(const struct azure *az, const void *body, size_t len, struct buf *out);
bool azure_carries(const struct driver *d, const void *body, size_t len);
/* NS in whole seconds, not less, within MIN_S and what the service allows. */
int64_t azure_seconds(int64_t ns, int64_t min_s);

/* azure_receive.c, azure_settle.c, azure_dead.c: begin an operation. */
void azure_receive(struct azure_op *op);
void azure_send(struct azure_op *op);
void azure_depth(struct azure_op *op);
void azure_settle(struct azure_op *op);
void azure_dead_list(struct azure_op *op);
void azure_dead_read(struct azure_op *op);

/* The end of an item, as ERR says; C is the call it ended with, or NULL. */
void azure_item_end(struct azure_item *item, int err, const struct azure_call *c);
/* A dead letter came or went; ID went, or NULL. */
void azure_dead_changed(struct azure *az, const char *id);

/* Puts DOCUMENT (taken over) into TO, then deletes ID from FROM, ends ITEM. */
void azure_move(struct azure_item *item, struct azure_queue *from, struct azure_queue *to,
	const char *id, const char *receipt, struct buf *document);
void azure_copy_free(struct azure_copy *c);

/* Leases the dead letter that ITEM is about, discards or revives it, ends ITEM. */
void azure_hunt(struct azure_item *item);
/* After azure_calls_cancel(). */
void azure_hunt_fini(struct azure *az);

#endif
