/* SPDX-License-Identifier: MIT */
/* The engine's own life: start, polls, figures, the end. */
#include "engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claim.h"

/* Who was refused does not knock all the time: access has to be given first, and
 * where that can be seen the driver tells. */
#define REFUSED_NS (300 * NS_PER_S)
/* No request is under way for longer. */
#define GIVEN_NS (30 * NS_PER_S)

double engine_random(struct engine *e)
{
	return erand48(e->seed);
}

void engine_changed(struct engine *e)
{
	e->ev.changed(e->ev.arg);
}

void engine_error(struct engine *e, const char *what, const struct driver_req *req)
{
	char text[sizeof(e->last_error)];
	const char *detail = req->detail[0] ? req->detail : strerror(-req->err);

	e->stats.errors_total++;
	e->stats.errors[error_kind(req->err)]++;
	snprintf(text, sizeof(text), "%s: %s", what, detail);
	if (strcmp(text, e->last_error) != 0)
		log_warn("engine", "%s", text);
	memcpy(e->last_error, text, sizeof(text));
	engine_changed(e);
}

void engine_submit(struct engine *e, struct driver_req *req)
{
	e->requests++;
	driver_submit(e->driver, req);
}

int64_t engine_retry_after(struct engine *e, const struct driver_req *req)
{
	if (req->err != -EACCES)
		return req->retry_after_ns;
	e->refused = true;
	/* The answer may be to a question of before access was given again. */
	return clock_mono() - e->given_ns < GIVEN_NS ? 0 : REFUSED_NS;
}

void engine_answered(struct engine *e)
{
	e->requests--;
}

const struct driver_ops *engine_driver(const struct engine *e)
{
	return driver_ops_of(e->driver);
}

struct proc *engine_caller(struct engine *e, pid_t tid)
{
	struct proc *p = procs_get(e->procs, tid);

	return p ? p : procs_get(e->procs, 0);
}

/* ---- polling ---- */

int64_t engine_next_poll_ns(const struct engine *e)
{
	int64_t at = poller_next(&e->poller, clock_mono());

	if (at != CLOCK_NEVER && e->poll_due_ns < at)
		at = e->poll_due_ns;
	if (at < e->hold_off_ns)
		at = e->hold_off_ns;
	return e->loaded ? at : CLOCK_NEVER;
}

static void arm_poll(struct engine *e)
{
	int64_t at = engine_next_poll_ns(e);
	bool useful = budget_next_poll_allowed(&e->budget, at);

	loop_timer_set(e->loop, &e->poll_timer, useful ? at : CLOCK_NEVER);
	run_end_check(e);
}

static void first_answer(struct engine *e, int err)
{
	void (*fn)(void *, int) = e->started;

	e->started = NULL;
	if (fn)
		fn(e->started_arg, err);
}

static void received(struct driver_req *req)
{
	struct engine *e = req->arg;
	int64_t now = clock_mono();
	int err = req->err;
	unsigned n = err ? 0 : req->u.receive.n;

	engine_answered(e);
	e->poll_err = err;
	if (err) {
		poller_failed(
			&e->poller, engine_retry_after(e, req), now, engine_random(e));
		engine_error(e, "receive", req);
	} else {
		poller_result(&e->poller, req->u.receive.n, req->u.receive.n > 0,
			req->u.receive.next_due_ns, now, engine_random(e));
		if (req->u.receive.next_due_ns < e->poll_due_ns)
			e->poll_due_ns = req->u.receive.next_due_ns;
		window_arrive(e, req->u.receive.msgs, req->u.receive.n);
	}
	driver_req_fini(req);
	free(req);
	first_answer(e, err);
	arm_poll(e);
	if (n)
		engine_depth_soon(e);
	engine_changed(e);
	engine_check_end(e);
}

static void receive(struct engine *e)
{
	struct driver_req *req = calloc(1, sizeof(*req));
	unsigned most = engine_driver(e)->max_receive;
	unsigned window = far_window(e);
	unsigned room = window > e->n_ready ? window - e->n_ready : 1;

	poller_begin(&e->poller);
	if (!req) {
		poller_failed(&e->poller, 0, clock_mono(), engine_random(e));
		return;
	}
	req->op = DRIVER_RECEIVE;
	req->done = received;
	req->arg = e;
	req->u.receive.max = room < most ? room : most;
	req->u.receive.max_bytes = e->cfg.window_bytes > e->ready_bytes
					   ? e->cfg.window_bytes - e->ready_bytes
					   : 1;
	req->u.receive.lease_ns = e->cfg.lease.visibility_ns;
	engine_submit(e, req);
	depth_with_poll(e);
}

static void poll_due(void *arg)
{
	struct engine *e = arg;
	int64_t now = clock_mono(), at;

	if (e->poll_due_ns <= now) {
		e->poll_due_ns = CLOCK_NEVER;
		poller_wake(&e->poller, now);
	}
	/* What is due is due at the moment at which it was asked: not before NOW. */
	at = engine_next_poll_ns(e);
	if (at <= clock_mono() && engine_hands_out(e))
		receive(e);
	arm_poll(e);
}

void engine_poll_soon(struct engine *e)
{
	poller_wake(&e->poller, clock_mono());
	arm_poll(e);
}

void engine_poll_at(struct engine *e, int64_t at_ns)
{
	if (at_ns < e->poll_due_ns)
		e->poll_due_ns = at_ns;
	arm_poll(e);
}

void engine_driver_changed(struct engine *e)
{
	if (e->stopping || !e->loaded)
		return;
	e->given_ns = clock_mono();
	if (e->refused) { /* access may have been given again */
		e->refused = false;
		e->poller.not_before_ns = clock_mono();
		outbox_retry_now(e);
		ledger_retry_now(e);
	}
	engine_poll_soon(e);
	engine_depth_soon(e);
	peers_changed(e);
}

static int64_t next_poll_in_ns(const struct engine *e, int64_t now)
{
	int64_t next = poller_next(&e->poller, now);

	return next == CLOCK_NEVER || !budget_next_poll_allowed(&e->budget, next)
		       ? -1
		       : next - now;
}

void engine_stats(struct engine *e, struct engine_stats *out)
{
	int64_t now = clock_mono();
	const struct message *ready = TAILQ_FIRST(&e->ready);
	const struct message *claimed = TAILQ_FIRST(&e->in_flight);

	*out = e->stats;
	out->state = poller_state(&e->poller, now);
	out->poll_err = e->poll_err;
	out->backoff_interval_ns = e->poller.slept_ns;
	out->next_poll_in_ns = next_poll_in_ns(e, now);
	out->polls_total = e->poller.polls_total;
	out->polls_empty = e->poller.polls_empty;
	out->polls_empty_in_a_row = e->poller.empty_in_a_row;
	out->requests_total = driver_requests(e->driver);
	out->depth = e->depth;
	out->depth_known = e->depth_known;
	out->ready = e->n_ready;
	out->in_flight = e->n_in_flight;
	out->outbox = e->n_outbox;
	out->drafts = e->n_drafts;
	out->drafts_stale = e->n_stale;
	out->dead = e->dead_total;
	out->oldest_ready_ns = ready ? clock_wall() - ready->d.enqueued_ns : -1;
	out->oldest_claim_ns = claimed ? now - claimed->claim->t.claimed_ns : -1;
	out->last_error = e->last_error;
	run_end_stats(e, out, now);
}

/* ---- commands ---- */

void engine_poll_now(struct engine *e)
{
	e->hold_off_ns = 0;
	engine_poll_soon(e);
}

void engine_pause(struct engine *e, bool paused)
{
	poller_pause(&e->poller, paused);
	if (paused)
		window_give_back(e, UINT32_MAX);
	else
		engine_poll_soon(e);
	window_check_room(e);
	arm_poll(e);
	engine_changed(e);
}

void engine_drain(struct engine *e)
{
	if (e->draining)
		return;
	e->draining = true;
	poller_drain(&e->poller);
	e->ev.ready_changed(e->ev.arg, true); /* .next has its end of file */
	window_serve_waiters(e);
	window_give_back(e, UINT32_MAX);
	arm_poll(e);
	engine_changed(e);
	engine_check_end(e);
}

void engine_configure(struct engine *e, const struct engine_config *cfg)
{
	bool receives = e->cfg.receives;

	e->cfg = *cfg;
	e->cfg.receives = receives;
	backoff_configure(&e->poller.backoff, &cfg->backoff);
	e->poller.slept_ns = e->poller.backoff.interval_ns;
	run_end_configure(e);
	window_check_room(e);
	engine_poll_soon(e);
	engine_changed(e);
}

/* ---- life ---- */

static void load(void *arg);

struct engine *engine_create(struct loop *loop, struct driver *driver,
	const struct engine_config *cfg, const struct engine_events *ev)
{
	struct engine *e = calloc(1, sizeof(*e));
	struct procs_events pe = {claim_exited, claim_ended, e};

	if (!e)
		return NULL;
	e->loop = loop;
	e->driver = driver;
	e->cfg = *cfg;
	e->ev = *ev;
	e->poll_due_ns = CLOCK_NEVER;
	e->poll_err = -EAGAIN;
	loop_timer_init(&e->poll_timer, poll_due, e);
	depth_init(e);
	loop_timer_init(&e->load_timer, load, e);
	run_end_init(e);
	engine_end_init(e);
	window_init(e);
	ledger_init(e);
	barrier_init(e);
	outbox_init(e);
	peers_init(e);
	poller_init(&e->poller, &cfg->backoff, cfg->receives, clock_mono());
	for (int i = 0; i < 3; i++)
		e->seed[i] = (unsigned short)(clock_wall() >> (16 * i));
	e->procs = procs_create(loop, &pe);
	if (!e->procs) {
		engine_destroy(e);
		return NULL;
	}
	return e;
}

void engine_destroy(struct engine *e)
{
	if (!e)
		return;
	loop_timer_clear(e->loop, &e->poll_timer);
	loop_timer_clear(e->loop, &e->depth_timer);
	loop_timer_clear(e->loop, &e->load_timer);
	run_end_stop(e);
	engine_end_fini(e);
	if (e->procs) {
		ledger_fini(e);
		window_fini(e);
		outbox_fini(e);
		dead_fini(e);
	}
	procs_destroy(e->procs);
	free(e);
}

static void load_later(struct engine *e)
{
	e->poller.offline = true;
	loop_timer_set(e->loop, &e->load_timer,
		clock_mono() + backoff_empty(&e->poller.backoff, engine_random(e)));
}

static void loaded(struct driver_req *req)
{
	struct engine *e = req->arg;
	int err = req->err;

	engine_answered(e);
	if (err || !e->cfg.receives)
		e->poll_err = err;
	if (err) {
		engine_error(e, "reading the store", req);
		load_later(e);
	} else {
		e->loaded = true;
		e->poller.offline = false;
		outbox_load(e, req->u.load.drafts, req->u.load.n_drafts);
		window_arrive(e, req->u.load.msgs, req->u.load.n_msgs);
		dead_refresh(e);
		depth_count(e);
	}
	driver_req_fini(req);
	free(req);
	if (err || !e->cfg.receives)
		window_give_back(e, UINT32_MAX);
	if (err || poller_next(&e->poller, clock_mono()) == CLOCK_NEVER)
		first_answer(e, err);
	arm_poll(e);
	engine_check_end(e);
}

static void load(void *arg)
{
	struct engine *e = arg;
	struct driver_req *req = calloc(1, sizeof(*req));

	if (!req) {
		load_later(e);
		return;
	}
	req->op = DRIVER_LOAD;
	req->done = loaded;
	req->arg = e;
	req->u.load.lease_ns = e->cfg.lease.visibility_ns;
	engine_submit(e, req);
}

void engine_start(struct engine *e, void (*fn)(void *arg, int err), void *arg)
{
	e->started = fn;
	e->started_arg = arg;
	load(e);
	peers_tell(e);
}
