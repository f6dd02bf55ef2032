/* SPDX-License-Identifier: MIT */
/*
 * Questions to the driver of a bed, checked: a call that does not end fails the
 * test. For test programs, which include it instead of tests/test.h.
 *
 *	CONTRACT(gives_the_oldest_first, 0)
 *	{
 *		free(ask_send(b, "one"));
 *		...
 *	}
 *
 * is a test that runs once for each driver that has the capabilities named.
 */
#ifndef SPOOLFS_TESTS_ASK_H
#define SPOOLFS_TESTS_ASK_H

#include <errno.h>
#include <stdlib.h>

#include "bed.h"
#include "tests/test.h"

#define CONTRACT(id, need)                                   \
	static void contract_##id(struct bed *b);            \
	TEST(id)                                             \
	{                                                    \
		const struct bed_factory *f = bed_factories; \
		struct bed bed;                              \
                                                             \
		for (; f->name; f++) {                       \
			if ((f->caps & (need)) != (need))    \
				continue;                    \
			printf("# driver %s\n", f->name);    \
			CHECK(bed_init(&bed, f));            \
			contract_##id(&bed);                 \
			bed_fini(&bed);                      \
		}                                            \
	}                                                    \
	static void contract_##id(struct bed *b)

/* Submits REQ to D, waits, gives its err. */
static inline int ask_of(struct bed *b, struct driver *d, struct driver_req *req)
{
	CHECK(bed_try(b, d, req));
	return req->err;
}

static inline int ask(struct bed *b, struct driver_req *req)
{
	return ask_of(b, b->d, req);
}

/* Another mount of the same queue. */
static inline struct driver *ask_open(struct bed *b, const char *identity)
{
	struct driver *d = b->factory->open(b, identity);

	CHECK(d);
	return d;
}

static inline struct blob *ask_blob(const char *text)
{
	struct blob *body = blob_create(text, strlen(text));

	CHECK(body);
	return body;
}

/* Enqueues TEXT; its id is the caller's to free. */
static inline char *ask_send(struct bed *b, const char *text)
{
	struct driver_req req = {.op = DRIVER_SEND, .u.send.body = ask_blob(text)};

	CHECK_INT(ask(b, &req), 0);
	blob_unref(req.u.send.body);
	CHECK(req.u.send.id);
	return req.u.send.id;
}

/* Leases up to MAX messages; driver_req_fini() the answer. */
static inline struct driver_req ask_receive_of(
	struct bed *b, struct driver *d, unsigned max)
{
	struct driver_req req = {.op = DRIVER_RECEIVE};

	req.u.receive.max = max;
	req.u.receive.max_bytes = 64 << 20;
	req.u.receive.lease_ns = b->lease_ns;
	CHECK_INT(ask_of(b, d, &req), 0);
	return req;
}

static inline struct driver_req ask_receive(struct bed *b, unsigned max)
{
	return ask_receive_of(b, b->d, max);
}

/* Checks that the queue counts so many, as far as it tells them apart. */
static inline void ask_depth(
	struct bed *b, uint64_t waiting, uint64_t leased, uint64_t dead)
{
	struct driver_req req = {.op = DRIVER_DEPTH};

	if (!bed_can(b, BED_COUNTS_LEASED)) {
		waiting += leased;
		leased = 0;
	}
	CHECK_INT(ask(b, &req), 0);
	CHECK_INT(req.u.depth.waiting, waiting);
	CHECK_INT(req.u.depth.leased, leased);
	CHECK_INT(req.u.depth.dead, dead);
}

/* Checks the bytes of a body. */
static inline void ask_body(const struct blob *body, const char *text)
{
	CHECK(body);
	CHECK_INT(body->len, strlen(text));
	CHECK(memcmp(body->data, text, body->len) == 0);
}

/* What an earlier life left; driver_req_fini() the answer. */
static inline struct driver_req ask_load_of(struct bed *b, struct driver *d)
{
	struct driver_req req = {.op = DRIVER_LOAD};

	req.u.load.lease_ns = b->lease_ns;
	CHECK_INT(ask_of(b, d, &req), 0);
	return req;
}

/* The end of a life: the driver closed, and opened again as IDENTITY. */
static inline void ask_restart(struct bed *b, const char *identity)
{
	driver_close(b->d);
	b->d = NULL;
	b->d = ask_open(b, identity);
}

#endif
