/* SPDX-License-Identifier: MIT */
/* The driver for Azure Storage queues: open, close, submit, answers. */
#include "azure_queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "azure_int.h"

/* The service takes 64 KiB of text; base64 makes four bytes of three. */
#define MAX_TEXT   ((uint64_t)65536)
#define MAX_BASE64 ((uint64_t)49152)

static struct azure *azure_of(struct driver *d)
{
	return (struct azure *)(void *)d;
}

/* ---- answers ---- */

static void hand_back(struct azure *az, struct driver_req *req)
{
	TAILQ_INSERT_TAIL(&az->ready, req, link);
	loop_task_queue(az->loop, &az->task);
}

static void op_free(struct azure_op *op)
{
	TAILQ_REMOVE(&op->az->ops, op, link);
	hand_back(op->az, op->req);
	azure_call_fini(&op->call);
	free(op->items);
	free(op);
}

void azure_op_end(struct azure_op *op)
{
	struct azure *az = op->az;

	op_free(op);
	/* A sync is done when all before it is. */
	while ((op = TAILQ_FIRST(&az->ops)) && op->req->op == DRIVER_SYNC)
		op_free(op);
}

void azure_op_fail(struct azure_op *op, int err, const char *detail)
{
	op->req->err = err;
	driver_detail(op->req, "%s", detail);
	azure_op_end(op);
}

void azure_op_failed(struct azure_op *op, const struct azure_call *c)
{
	op->req->retry_after_ns = c->retry_after_ns;
	azure_op_fail(op, c->err, c->detail);
}

/* Those there now: what they lead to is for the next turn. */
static void on_task(void *arg)
{
	TAILQ_HEAD(, driver_req) ready = TAILQ_HEAD_INITIALIZER(ready);
	struct azure_calls failed = TAILQ_HEAD_INITIALIZER(failed);
	struct azure *az = arg;
	struct driver_req *req;
	struct azure_call *c;

	TAILQ_CONCAT(&failed, &az->failed, link);
	while ((c = TAILQ_FIRST(&failed))) {
		TAILQ_REMOVE(&failed, c, link);
		c->done(c);
	}
	TAILQ_CONCAT(&ready, &az->ready, link);
	while ((req = TAILQ_FIRST(&ready))) {
		TAILQ_REMOVE(&ready, req, link);
		driver_complete(req);
	}
}

/* ---- submit ---- */

static void begin(struct azure_op *op)
{
	switch (op->req->op) {
	case DRIVER_RECEIVE:
		azure_receive(op);
		break;
	case DRIVER_SETTLE:
		azure_settle(op);
		break;
	case DRIVER_SEND:
		azure_send(op);
		break;
	case DRIVER_DEPTH:
		azure_depth(op);
		break;
	case DRIVER_DEAD_LIST:
		azure_dead_list(op);
		break;
	case DRIVER_DEAD_READ:
		azure_dead_read(op);
		break;
	case DRIVER_SYNC:
		if (TAILQ_FIRST(&op->az->ops) == op)
			azure_op_end(op);
		break;
	default:
		azure_op_fail(op, -EINVAL, "not for a queue of this kind");
		break;
	}
}

static void az_submit(struct driver *d, struct driver_req *req)
{
	struct azure *az = azure_of(d);
	struct azure_op *op = calloc(1, sizeof(*op));

	if (!op) {
		req->err = -ENOMEM;
		driver_detail(req, "out of memory");
		hand_back(az, req);
		return;
	}
	op->az = az;
	op->req = req;
	TAILQ_INSERT_TAIL(&az->ops, op, link);
	begin(op);
}

static uint64_t az_requests(const struct driver *d)
{
	return http_requests(((const struct azure *)(const void *)d)->http);
}

/* ---- open, close ---- */

/* Takes a half-built one. */
static void destroy(struct azure *az)
{
	struct azure_copy *copy;

	loop_task_cancel(az->loop, &az->task);
	azure_hunt_fini(az);
	while ((copy = TAILQ_FIRST(&az->copies))) {
		TAILQ_REMOVE(&az->copies, copy, link);
		azure_copy_free(copy);
	}
	azure_page_fini(&az->seen);
	account_close(az->account);
	http_destroy(az->http);
	azure_source_fini(&az->source);
	free(az);
}

/* From now on every call fails at once, so this ends. */
static void az_close(struct driver *d)
{
	struct azure *az = azure_of(d);

	az->closing = true;
	az->on_change = NULL;
	azure_calls_cancel(az);
	while (!TAILQ_EMPTY(&az->failed) || !TAILQ_EMPTY(&az->ready))
		on_task(az);
	destroy(az);
}

static void on_account(void *arg)
{
	struct azure *az = arg;

	if (az->on_change)
		az->on_change(az->arg);
}

static struct azure *create(const struct driver_params *p)
{
	struct azure *az = calloc(1, sizeof(*az));

	if (!az)
		return NULL;
	az->base.ops = &azure_queue_driver_ops;
	az->base.max_body = p->encoding == DRIVER_BASE64 ? MAX_BASE64 : MAX_TEXT;
	az->loop = p->loop;
	az->encoding = p->encoding;
	az->on_change = p->on_change;
	az->arg = p->arg;
	TAILQ_INIT(&az->queue.waiting);
	TAILQ_INIT(&az->poison.waiting);
	TAILQ_INIT(&az->ops);
	TAILQ_INIT(&az->calls);
	TAILQ_INIT(&az->failed);
	TAILQ_INIT(&az->ready);
	TAILQ_INIT(&az->items);
	TAILQ_INIT(&az->copies);
	TAILQ_INIT(&az->hunt.wanted);
	TAILQ_INIT(&az->hunt.held);
	loop_task_init(&az->task, on_task, az);
	return az;
}

static int start(
	struct azure *az, const struct driver_params *p, char *err, size_t err_len)
{
	struct http_config cfg = http_config_default();
	struct account_params account = {
		.loop = p->loop,
		.name = az->source.account,
		.credentials = p->credentials,
		.changed = on_account,
		.arg = az,
	};

	cfg.ca_file = p->ca_file;
	az->http = http_create(p->loop, &cfg);
	if (!az->http) {
		snprintf(err, err_len, "http: %s", strerrordesc_np(errno));
		return -ENOMEM;
	}
	account.http = az->http;
	return account_open(&account, &az->account, err, err_len);
}

static int az_open(
	const struct driver_params *p, struct driver **out, char *err, size_t err_len)
{
	struct azure *az = create(p);
	int r;

	if (!az) {
		snprintf(err, err_len, "out of memory");
		return -ENOMEM;
	}
	r = azure_source_parse(p->source, &az->source, err, err_len);
	if (r == 0)
		r = start(az, p, err, err_len);
	if (r < 0) {
		destroy(az);
		return r;
	}
	az->queue.name = az->source.queue;
	az->queue.create = p->create;
	az->poison.name = az->source.poison;
	az->poison.create = true;
	*out = (struct driver *)(void *)az;
	return 0;
}

const struct driver_ops azure_queue_driver_ops = {
	.name = "azure-queue",
	.caps = DRIVER_FAR | DRIVER_DEAD,
	.max_receive = AZURE_PAGE_MAX,
	.open = az_open,
	.close = az_close,
	.submit = az_submit,
	.carries = azure_carries,
	.requests = az_requests,
	.help = "https://ACCOUNT.queue.core.windows.net/QUEUE   an Azure Storage queue",
};
