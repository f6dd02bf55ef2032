/* SPDX-License-Identifier: MIT */
#include "relay_int.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/log.h"
#include "sqlite.h"

/* What is unread so long after its lease, nobody here has any more. */
#define LAPSED_NS (24 * 3600 * NS_PER_S)

/* A request of the engine that takes a step on either side. */
struct job {
	struct relay *r;
	struct driver_req *orig;
	struct driver_req sub;
	struct driver_msg *msgs; /* those that are recalled */
	unsigned n;
};

static struct relay *relay_of(struct driver *d)
{
	return (struct relay *)(void *)d;
}

/* ---- answers ---- */

static void hand_back(void *arg)
{
	struct relay *r = arg;
	TAILQ_HEAD(, driver_req) done = TAILQ_HEAD_INITIALIZER(done);
	struct driver_req *req;

	TAILQ_CONCAT(&done, &r->done, link);
	while ((req = TAILQ_FIRST(&done))) {
		TAILQ_REMOVE(&done, req, link);
		driver_complete(req);
	}
}

void relay_complete(struct relay *r, struct driver_req *req)
{
	TAILQ_INSERT_TAIL(&r->done, req, link);
	loop_task_queue(r->loop, &r->done_task);
}

static void answer_as(struct job *j, const struct driver_req *sub)
{
	j->orig->err = sub->err;
	j->orig->retry_after_ns = sub->retry_after_ns;
	memcpy(j->orig->detail, sub->detail, sizeof(j->orig->detail));
}

static void job_end(struct job *j)
{
	relay_complete(j->r, j->orig);
	free(j);
}

/* ---- what was handed out ---- */

struct relay_msg *relay_find(struct relay *r, const char *id)
{
	struct relay_msg *m = NULL;

	HASH_FIND_STR(r->msgs, id, m);
	return m;
}

static void free_msg(struct relay_msg *m)
{
	if (!m)
		return;
	blob_unref(m->body);
	free(m->id);
	free(m);
}

void relay_forget(struct relay *r, struct relay_msg *m)
{
	if (!m)
		return;
	HASH_DEL(r->msgs, m);
	free_msg(m);
}

static void remember(struct relay *r, const struct driver_msg *d)
{
	struct relay_msg *m;

	relay_forget(r, relay_find(r, d->id));
	m = calloc(1, sizeof(*m));
	if (m)
		m->id = strdup(d->id);
	if (m && m->id)
		HASH_ADD_KEYPTR(hh, r->msgs, m->id, strlen(m->id), m);
	if (!m || !m->id || !table_took(hh, m)) {
		log_warn("relay", "out of memory: a claim will not survive a restart");
		free_msg(m);
		return;
	}
	m->serial = ++r->serial;
	m->body = blob_ref(d->body);
	m->enqueued_ns = d->enqueued_ns;
	m->lease_until_ns = d->lease_until_ns;
	m->attempts = d->attempts;
	m->dequeue_count = d->dequeue_count;
	m->kept = d->record != NULL;
}

/* Those let go without a settlement, since their lease ran out in an outage. */
static void forget_lapsed(struct relay *r)
{
	int64_t now = clock_mono();
	struct relay_msg *m, *next;

	HASH_ITER (hh, r->msgs, m, next) {
		if (!m->kept && clock_add(m->lease_until_ns, LAPSED_NS) < now)
			relay_forget(r, m);
	}
}

static void remember_received(struct job *j)
{
	if (j->orig->op != DRIVER_RECEIVE || !j->n)
		return;
	forget_lapsed(j->r);
	for (unsigned i = 0; i < j->n; i++)
		remember(j->r, &j->msgs[i]);
}

/* ---- receive, dead letters: ask the service, then the keeper ---- */

static void take_recalled(struct job *j)
{
	struct keep *known = j->sub.u.keep.items;

	for (unsigned i = 0; !j->sub.err && i < j->n; i++) {
		j->msgs[i].attempts = known[i].known_attempts;
		if (j->orig->op != DRIVER_DEAD_LIST || !known[i].known_reason)
			continue;
		free(j->msgs[i].reason);
		j->msgs[i].reason = known[i].known_reason;
		known[i].known_reason = NULL;
	}
}

/* A keeper that does not answer costs the counts, not the messages. */
static void recalled(struct driver_req *req)
{
	struct job *j = req->arg;

	if (req->err)
		log_warn("relay", "the state could not be read: %s", req->detail);
	take_recalled(j);
	remember_received(j);
	driver_req_fini(&j->sub);
	free(j->sub.u.keep.items);
	job_end(j);
}

static void recall(struct job *j, struct driver_msg *msgs, unsigned n)
{
	struct keep *items = n ? calloc(n, sizeof(*items)) : NULL;

	if (n && !items)
		log_warn("relay", "out of memory: attempts are not known");
	j->msgs = msgs;
	j->n = n;
	j->sub = (struct driver_req){
		.op = DRIVER_RECALL, .done = recalled, .arg = j, .u.keep.items = items};
	if (!items) {
		remember_received(j);
		job_end(j);
		return;
	}
	for (unsigned i = 0; i < n; i++)
		items[i].id = msgs[i].id;
	j->sub.u.keep.n = n;
	driver_submit(j->r->local, &j->sub);
}

static void received(struct driver_req *req)
{
	struct job *j = req->arg;

	answer_as(j, req);
	j->orig->u.receive = req->u.receive;
	recall(j, j->orig->u.receive.msgs, j->orig->u.receive.n);
}

static void dead_listed(struct driver_req *req)
{
	struct job *j = req->arg;

	answer_as(j, req);
	j->orig->u.dead = req->u.dead;
	recall(j, j->orig->u.dead.msgs, j->orig->u.dead.n);
}

/* ---- load ---- */

/* The end of a lease is kept by the wall clock, which may have been set back since:
 * better renewed too early than too late. */
static void loaded(struct driver_req *req)
{
	struct job *j = req->arg;
	int64_t longest = clock_add(clock_mono(), req->u.load.lease_ns);

	answer_as(j, req);
	j->orig->u.load = req->u.load;
	for (unsigned i = 0; i < req->u.load.n_msgs; i++) {
		struct driver_msg *m = &req->u.load.msgs[i];

		if (m->lease_until_ns > longest)
			m->lease_until_ns = longest;
		remember(j->r, m);
	}
	job_end(j);
}

/* ---- sending a draft: the service has it, then the keeper forgets it ---- */

static void dropped(struct driver_req *req)
{
	struct job *j = req->arg;

	if (req->err && req->err != -ENOENT)
		log_warn("relay", "a sent message may be sent again: %s", req->detail);
	job_end(j);
}

static void sent(struct driver_req *req)
{
	struct job *j = req->arg;

	answer_as(j, req);
	if (req->err) {
		job_end(j);
		return;
	}
	j->orig->u.draft.msg_id = req->u.send.id;
	j->orig->u.draft.enqueued_ns = req->u.send.enqueued_ns;
	j->sub = (struct driver_req){.op = DRIVER_DRAFT_DROP, .done = dropped, .arg = j};
	j->sub.u.draft.id = j->orig->u.draft.id;
	driver_submit(j->r->local, &j->sub);
}

/* ---- submit ---- */

static void fill(struct job *j, struct driver_req *req)
{
	j->sub.op = req->op;
	switch (req->op) {
	case DRIVER_RECEIVE:
		j->sub.u.receive = req->u.receive;
		j->sub.done = received;
		break;
	case DRIVER_DEAD_LIST:
		j->sub.u.dead = req->u.dead;
		j->sub.done = dead_listed;
		break;
	case DRIVER_LOAD:
		j->sub.u.load = req->u.load;
		j->sub.done = loaded;
		break;
	default:
		j->sub.op = DRIVER_SEND;
		j->sub.u.send.body = req->u.draft.body;
		j->sub.u.send.given = req->u.draft.given;
		j->sub.done = sent;
		break;
	}
}

static void start_job(struct relay *r, struct driver_req *req)
{
	struct job *j = calloc(1, sizeof(*j));

	if (!j) {
		req->err = -ENOMEM;
		relay_complete(r, req);
		return;
	}
	j->r = r;
	j->orig = req;
	fill(j, req);
	j->sub.arg = j;
	driver_submit(req->op == DRIVER_LOAD ? r->local : r->far, &j->sub);
}

static void relay_submit(struct driver *d, struct driver_req *req)
{
	struct relay *r = relay_of(d);

	if (r->closing) {
		req->err = -EAGAIN;
		relay_complete(r, req);
		return;
	}
	if (req->op == DRIVER_DRAFT_PUT && req->u.draft.body->len > r->base.max_body) {
		req->err = -EMSGSIZE;
		driver_detail(req, "the draft is too large for the service");
		relay_complete(r, req);
		return;
	}
	switch (req->op) {
	case DRIVER_RECEIVE:
	case DRIVER_DEAD_LIST:
	case DRIVER_LOAD:
	case DRIVER_DRAFT_SEND:
		start_job(r, req);
		break;
	case DRIVER_SETTLE:
		relay_settle(r, req);
		break;
	case DRIVER_SEND:
	case DRIVER_DEPTH:
	case DRIVER_DEAD_READ:
		driver_submit(r->far, req);
		break;
	default:
		driver_submit(r->local, req);
		break;
	}
}

/* ---- life ---- */

/* What the service answers last is told to the keeper, so that goes second. */
static void relay_close(struct driver *d)
{
	struct relay *r = relay_of(d);
	struct relay_msg *m, *next;

	r->closing = true;
	driver_close(r->far);
	driver_close(r->local);
	while (!TAILQ_EMPTY(&r->done))
		hand_back(r);
	loop_task_cancel(r->loop, &r->done_task);
	HASH_ITER (hh, r->msgs, m, next) {
		relay_forget(r, m);
	}
	free(r);
}

static bool relay_carries(const struct driver *d, const void *body, size_t len)
{
	const struct relay *r = (const struct relay *)(const void *)d;

	return driver_carries(r->far, body, len);
}

static uint64_t relay_requests(const struct driver *d)
{
	const struct relay *r = (const struct relay *)(const void *)d;

	return driver_requests(r->far);
}

static struct relay *create(const struct driver_ops *far, const struct driver_params *p)
{
	struct relay *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->ops = *far;
	r->ops.caps |=
		DRIVER_STORE | DRIVER_ATTEMPTS | DRIVER_NOTIFIES | DRIVER_PEERS_KNOWN;
	r->ops.open = NULL;
	r->ops.close = relay_close;
	r->ops.submit = relay_submit;
	r->ops.carries = relay_carries;
	r->ops.requests = relay_requests;
	r->base.ops = &r->ops;
	r->loop = p->loop;
	TAILQ_INIT(&r->done);
	loop_task_init(&r->done_task, hand_back, r);
	return r;
}

/* The far one first: a source that makes no sense is to leave no file behind. */
static int open_both(struct relay *r, const struct driver_ops *far,
	const struct driver_params *p, char *err, size_t err_len)
{
	struct driver_params local = *p;
	char path[PATH_MAX];
	int e = driver_open(far, p, &r->far, err, err_len);

	if (!e)
		e = relay_state_path(
			p->state, p->source, path, sizeof(path), err, err_len);
	local.source = path;
	local.create = true;
	if (!e)
		e = relay_state_check(path, err, err_len);
	if (!e)
		e = driver_open(&sqlite_driver_ops, &local, &r->local, err, err_len);
	/* Somebody may have put his own there meanwhile. */
	if (!e)
		e = relay_state_check(path, err, err_len);
	if (!e)
		r->base.max_body = driver_max_body(r->far);
	return e;
}

int relay_open(const struct driver_ops *far, const struct driver_params *p,
	struct driver **out, char *err, size_t err_len)
{
	struct relay *r = create(far, p);
	int e;

	*out = NULL;
	if (!r) {
		snprintf(err, err_len, "out of memory");
		return -ENOMEM;
	}
	e = open_both(r, far, p, err, err_len);
	if (e) {
		driver_close(r->far);
		free(r);
		return e;
	}
	*out = (struct driver *)(void *)r;
	return 0;
}
