/* SPDX-License-Identifier: MIT */
/* How the engine ends: a drain, or a stop that finishes what it owes. */
#include <stdlib.h>

#include "claim.h"

static void stopped(void *arg)
{
	struct engine *e = arg;
	void (*fn)(void *) = e->stop_fn;

	if (e->stopped)
		return;
	e->stopped = true;
	loop_timer_clear(e->loop, &e->stop_timer);
	if (fn)
		fn(e->stop_arg);
}

static void grace_over(void *arg)
{
	struct engine *e = arg;

	if (!ledger_idle(e) || !outbox_idle(e))
		log_warn("engine", "ending with work undone outbox=%u settling=%u",
			e->n_outbox, e->n_settling);
	stopped(e);
}

void engine_end_init(struct engine *e)
{
	loop_timer_init(&e->stop_timer, grace_over, e);
	loop_task_init(&e->stop_task, stopped, e);
}

void engine_end_fini(struct engine *e)
{
	loop_timer_clear(e->loop, &e->stop_timer);
	loop_task_cancel(e->loop, &e->stop_task);
}

bool engine_stopping(const struct engine *e)
{
	return e->stopping;
}

void engine_check_end(struct engine *e)
{
	if (e->stopping) {
		if (!e->requests && ledger_idle(e) && outbox_idle(e) && !e->stopped)
			loop_task_queue(e->loop, &e->stop_task);
		return;
	}
	if (e->draining && !e->n_in_flight && !e->n_ready)
		engine_finish(
			e, e->budget.closed ? "the time of the run is used" : "drained");
}

void engine_finish(struct engine *e, const char *reason)
{
	if (e->end_reason)
		return;
	e->end_reason = reason;
	e->ev.finished(e->ev.arg);
}

const char *engine_end_reason(const struct engine *e)
{
	return e->end_reason ? e->end_reason : "";
}

void engine_stop(struct engine *e, int64_t grace_ns, void (*fn)(void *arg), void *arg)
{
	e->stopping = true;
	e->stop_fn = fn;
	e->stop_arg = arg;
	poller_stop(&e->poller);
	run_end_stop(e);
	loop_timer_clear(e->loop, &e->load_timer);
	e->ev.ready_changed(e->ev.arg, true); /* .next has its end of file */
	loop_timer_clear(e->loop, &e->poll_timer);
	loop_timer_clear(e->loop, &e->depth_timer);
	loop_timer_clear(e->loop, &e->hungry_timer);
	window_serve_waiters(e);
	window_give_back(e, UINT32_MAX);
	ledger_flush(e);
	outbox_flush(e);
	loop_timer_set(e->loop, &e->stop_timer, clock_add(clock_mono(), grace_ns));
	engine_changed(e);
	engine_check_end(e);
}
