/* SPDX-License-Identifier: MIT */
#include "fault.h"

#include <errno.h>
#include <stdlib.h>

#include "backend/base/loop.h"

struct rule {
	enum fault_kind fault;
	unsigned skip;
	unsigned times;
	int err;
};

struct fault {
	struct driver_base base;
	struct driver_ops ops; /* those of the inner one, but for what is here */
	struct driver *inner;
	struct loop *loop;
	struct rule rules[DRIVER_OPS];
	unsigned seen[DRIVER_OPS];
	TAILQ_HEAD(, driver_req) failed;
	TAILQ_HEAD(, driver_req) held;
	struct loop_task task; /* answers those that failed */
};

/* A request on its way through the inner driver. */
struct call {
	struct fault *f;
	void (*done)(struct driver_req *req);
	void *arg;
	bool hold;
	bool lose;
	int err;
};

static struct fault *fault_of(struct driver *d)
{
	return (struct fault *)(void *)d;
}

static void answer_failed(void *arg)
{
	struct fault *f = arg;
	struct driver_req *req;

	while ((req = TAILQ_FIRST(&f->failed))) {
		TAILQ_REMOVE(&f->failed, req, link);
		driver_complete(req);
	}
}

static void on_done(struct driver_req *req)
{
	struct call c = *(struct call *)req->arg;

	free(req->arg);
	req->done = c.done;
	req->arg = c.arg;
	if (c.lose) {
		driver_req_fini(req);
		req->err = c.err;
		driver_detail(req, "the answer was lost on purpose");
	}
	if (c.hold)
		TAILQ_INSERT_TAIL(&c.f->held, req, link);
	else
		req->done(req);
}

/* Whether REQ meets a fault; counts it. */
static bool meets(struct fault *f, struct driver_req *req)
{
	struct rule *r = &f->rules[req->op];

	f->seen[req->op]++;
	if (r->times == 0)
		return false;
	if (r->skip > 0) {
		r->skip--;
		return false;
	}
	if (r->times != FAULT_ALWAYS)
		r->times--;
	return true;
}

static void fail(struct fault *f, struct driver_req *req, int err)
{
	req->err = err;
	driver_detail(req, "failed on purpose");
	TAILQ_INSERT_TAIL(&f->failed, req, link);
	loop_task_queue(f->loop, &f->task);
}

static void fault_submit(struct driver *d, struct driver_req *req)
{
	struct fault *f = fault_of(d);
	const struct rule *r = &f->rules[req->op];
	bool met = meets(f, req);
	struct call *c;

	if (met && r->fault == FAULT_FAIL) {
		fail(f, req, r->err);
		return;
	}
	c = malloc(sizeof(*c));
	if (!c) {
		fail(f, req, -ENOMEM);
		return;
	}
	*c = (struct call){
		.f = f,
		.done = req->done,
		.arg = req->arg,
		.hold = met && r->fault == FAULT_HOLD,
		.lose = met && r->fault == FAULT_LOSE,
		.err = r->err,
	};
	req->done = on_done;
	req->arg = c;
	driver_submit(f->inner, req);
}

static void fault_close(struct driver *d)
{
	struct fault *f = fault_of(d);

	driver_close(f->inner);
	(void)fault_release(d);
	loop_task_cancel(f->loop, &f->task);
	answer_failed(f);
	free(f);
}

struct driver *fault_create(struct driver *inner, struct loop *loop)
{
	struct fault *f = calloc(1, sizeof(*f));

	if (!f) {
		driver_close(inner);
		return NULL;
	}
	f->ops = *driver_ops_of(inner);
	f->ops.open = NULL;
	f->ops.carries = NULL;
	f->ops.requests = NULL;
	f->ops.close = fault_close;
	f->ops.submit = fault_submit;
	f->base.ops = &f->ops;
	f->base.max_body = driver_max_body(inner);
	f->inner = inner;
	f->loop = loop;
	TAILQ_INIT(&f->failed);
	TAILQ_INIT(&f->held);
	loop_task_init(&f->task, answer_failed, f);
	return (struct driver *)(void *)f;
}

void fault_rule(struct driver *d, enum driver_op op, enum fault_kind fault, unsigned nth,
	unsigned times, int err)
{
	fault_of(d)->rules[op] = (struct rule){
		.fault = fault,
		.skip = nth > 0 ? nth - 1 : 0,
		.times = times,
		.err = err,
	};
}

unsigned fault_release(struct driver *d)
{
	struct fault *f = fault_of(d);
	struct driver_req *req;
	unsigned n = 0;

	for (; (req = TAILQ_FIRST(&f->held)); n++) {
		TAILQ_REMOVE(&f->held, req, link);
		req->done(req);
	}
	return n;
}

unsigned fault_seen(const struct driver *d, enum driver_op op)
{
	return ((const struct fault *)(const void *)d)->seen[op];
}
