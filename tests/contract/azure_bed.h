/* SPDX-License-Identifier: MIT */
/* The driver for Azure Storage queues on a queue of the emulator's. */
#ifndef SPOOLFS_TESTS_AZURE_BED_H
#define SPOOLFS_TESTS_AZURE_BED_H

#include "ask.h"
#include "azurite.h"
#include "backend/drivers/azure_queue.h"

struct azure_bed {
	struct bed b; /* b.d is the driver */
	char source[160];
	struct driver_params p;
};

static inline void azure_changed(void *arg)
{
	((struct bed *)arg)->changes++;
}

/* The driver on SOURCE, opened as the parameters of A say. */
static inline struct driver *azure_open(struct azure_bed *a)
{
	struct driver *d;
	char err[256];
	int r = driver_open(&azure_queue_driver_ops, &a->p, &d, err, sizeof(err));

	if (r < 0)
		printf("# open: %s\n", err);
	CHECK_INT(r, 0);
	return d;
}

/* A loop, and the parameters for SOURCE; nothing opened. */
static inline void azure_bed_prepare(struct azure_bed *a, const char *source)
{
	CHECK(bed_init(&a->b, NULL));
	snprintf(a->source, sizeof(a->source), "%s", source);
	a->p = (struct driver_params){
		.loop = a->b.loop,
		.source = a->source,
		.identity = "bed",
		.create = true,
		.on_change = azure_changed,
		.arg = &a->b,
	};
}

/* A queue that is not there yet, opened. */
static inline void azure_bed_init(struct azure_bed *a, enum driver_encoding encoding)
{
	const struct azurite *emulator = azurite();
	char source[160];

	CHECK(emulator);
	azurite_source(emulator, source, sizeof(source));
	azure_bed_prepare(a, source);
	a->p.encoding = encoding;
	a->b.d = azure_open(a);
}

static inline void azure_bed_fini(struct azure_bed *a)
{
	bed_fini(&a->b);
}

/* Receives until a message is there. */
static inline struct driver_req azure_await(struct azure_bed *a, unsigned max)
{
	int64_t start = bed_now();

	for (;;) {
		struct driver_req req = ask_receive(&a->b, max);

		if (req.u.receive.n > 0)
			return req;
		driver_req_fini(&req);
		CHECK(bed_pause(start));
	}
}

/* Settles one; gives its err and keeps its answers. */
static inline int azure_settle_one(struct azure_bed *a, struct settle *it)
{
	struct driver_req req = {.op = DRIVER_SETTLE};

	req.u.settle.items = it;
	req.u.settle.n = 1;
	CHECK_INT(ask(&a->b, &req), 0);
	return it->err;
}

static inline int azure_settle_as(struct azure_bed *a, enum settle_op op,
	const struct driver_msg *m, int64_t delay_ns)
{
	struct settle it = {.op = op,
		.id = m->id,
		.receipt = m->receipt,
		.delay_ns = delay_ns,
		.body = m->body,
		.reason = "why"};
	int err = azure_settle_one(a, &it);

	free(it.new_receipt);
	free(it.new_id);
	return err;
}

/* Sends LEN bytes, gives the err of that. */
static inline int azure_try_send(struct azure_bed *a, const void *data, size_t len)
{
	struct driver_req req = {.op = DRIVER_SEND};
	int err;

	req.u.send.body = blob_create(data, len);
	CHECK(req.u.send.body);
	err = ask(&a->b, &req);
	CHECK((err == 0) == (req.u.send.id != NULL));
	CHECK((err == 0) == (req.detail[0] == '\0'));
	blob_unref(req.u.send.body);
	driver_req_fini(&req);
	return err;
}

static inline void azure_send_n(struct azure_bed *a, unsigned n)
{
	char text[16];

	for (unsigned i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "%u", i);
		CHECK_INT(azure_try_send(a, text, strlen(text)), 0);
	}
}

#endif
