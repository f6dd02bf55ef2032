/* SPDX-License-Identifier: MIT */
/*
 * Which message is handled when, and how the run ends. Events only note what
 * happened; one task, step(), decides. So the engine is never called from inside
 * its own callbacks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "name.h"
#include "run.h"
#include "run_guard.h"

/* How long an end waits for a backend that does not answer. */
#define END_GRACE_NS (10 * NS_PER_S)

void run_step_soon(struct run *r)
{
	loop_task_queue(r->loop, &r->step);
}

/* ---- handlers ---- */

static uint64_t hash(const char *id)
{
	uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */

	for (; *id; id++)
		h = (h ^ (unsigned char)*id) * UINT64_C(1099511628211);
	return h;
}

/* M is the slot's, not started yet. */
static void take(struct run_slot *s, struct message *m)
{
	s->m = m;
	m->user = s;
	s->probe = outage_started(&s->run->outage);
	run_step_soon(s->run);
}

static void served(struct engine_waiter *w, struct message *m)
{
	struct run_slot *s = w->arg;

	if (m)
		take(s, m);
}

/* Nothing was started for what the slot has: as if it had never been claimed. */
static void give_up(struct run_slot *s)
{
	struct message *m = s->m;

	s->m = NULL;
	m->user = NULL;
	engine_unclaim(s->run->engine, m);
}

static void start(struct run_slot *s)
{
	struct run *r = s->run;
	int err;

	s->lost = false;
	s->kill_ns = CLOCK_NEVER;
	s->started_ns = clock_mono();
	s->id = hash(s->m->d.id);
	name_format(s->name, s->m->d.enqueued_ns, s->m->d.id, s->m->d.given,
		r->args.cfg.suffix);
	err = child_start(&r->kit, &s->child, s->m, s->name);
	if (!err) {
		engine_was_read(r->engine, s->m);
		r->busy++;
		return;
	}
	log_error("run", "cannot start a handler name=%s: %s", s->name, strerror(-err));
	outage_force(&r->outage, s->probe, s->started_ns);
	give_up(s);
}

static void start_taken(struct run *r)
{
	for (unsigned i = 0; i < r->args.parallel; i++) {
		struct run_slot *s = &r->slots[i];

		if (!s->m || s->child.pid)
			continue;
		if (!r->ending) {
			start(s);
			continue;
		}
		outage_forget(&r->outage, s->probe);
		give_up(s);
	}
}

/* Whether the handling counts: not when everything fails. */
static bool judge(struct run_slot *s, bool ok)
{
	struct run *r = s->run;
	bool before = outage_suspected(&r->outage), counts;

	if (s->lost || r->signalled) {
		outage_forget(&r->outage, s->probe);
		return true;
	}
	counts = outage_ended(&r->outage, s->id, ok, s->probe, clock_mono());
	if (!before && outage_suspected(&r->outage))
		log_warn("run", "all handlers fail: one at a time now, after pauses");
	else if (before && !outage_suspected(&r->outage))
		log_info("run", "handlers succeed again");
	return counts;
}

static void settle(struct run_slot *s, bool ok, bool counts)
{
	struct run *r = s->run;
	struct message *m = s->m;

	s->m = NULL;
	if (!m)
		return;
	m->user = NULL;
	if (ok)
		engine_remove(r->engine, m, engine_caller(r->engine, r->kit.self));
	else if (counts)
		engine_release(r->engine, m, -1);
	else
		engine_unclaim(r->engine, m);
}

static void ended(struct run_slot *s, const siginfo_t *status)
{
	struct run *r = s->run;
	bool ok = status->si_code == CLD_EXITED && status->si_status == 0;
	bool counts = judge(s, ok);

	r->counts.handled += ok && !s->lost;
	r->counts.failed += !ok;
	r->busy--;
	child_reap(&s->child, r->signalled || s->kill_ns != CLOCK_NEVER);
	run_show_end(r, s, status, counts);
	settle(s, ok, counts);
	r->settled = false;
	r->handled_since = true;
}

static struct run_slot *slot_of(struct run *r, pid_t pid)
{
	for (unsigned i = 0; i < r->args.parallel; i++) {
		if (r->slots[i].child.pid == pid)
			return &r->slots[i];
	}
	return NULL;
}

void run_reap(struct run *r)
{
	siginfo_t si = {0};

	while (!waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) && si.si_pid) {
		struct run_slot *s = slot_of(r, si.si_pid);

		if (s)
			ended(s, &si);
		else
			waitpid(si.si_pid, NULL, 0); /* the guard, or an adopted one */
		si.si_pid = 0;
	}
}

static void signal_all(struct run *r, int sig)
{
	for (unsigned i = 0; i < r->args.parallel; i++)
		child_signal(&r->slots[i].child, sig);
}

/* What is to happen to handlers at their time. When to look again. */
static int64_t end_overdue(struct run *r)
{
	int64_t now = clock_mono(), next = CLOCK_NEVER;

	for (unsigned i = 0; i < r->args.parallel; i++) {
		struct run_slot *s = &r->slots[i];

		if (!s->child.pid)
			continue;
		if (s->kill_ns <= now) {
			child_signal(&s->child, SIGKILL);
			s->kill_ns = CLOCK_NEVER - 1;
		}
		next = s->kill_ns < next ? s->kill_ns : next;
	}
	return next;
}

/* ---- who gets the next message ---- */

static bool is_free(const struct run_slot *s)
{
	return !s->m && !s->child.pid && !s->waiter.queued;
}

static bool claim(struct run_slot *s, struct message *m)
{
	struct engine *e = s->run->engine;

	if (engine_claim(e, m, engine_caller(e, s->run->kit.self), true, false))
		return false;
	take(s, m);
	return true;
}

static struct message *untried(const struct run *r)
{
	struct message *m;

	TAILQ_FOREACH (m, engine_ready(r->engine), link)
		if (!outage_has_failed(&r->outage, hash(m->d.id)))
			return m;
	return NULL;
}

/* What has not failed comes before what has, as long as nothing is handled. Looks
 * from the front each time: a claim may have others given back. */
static void ask_for_others(struct run *r)
{
	for (unsigned i = 0; i < r->args.parallel; i++) {
		struct run_slot *s = &r->slots[i];
		struct message *m = is_free(s) ? untried(r) : NULL;

		if (m && !claim(s, m))
			return;
	}
}

/* When to ask again: one that is free still found no memory. */
static int64_t ask_again(struct run *r)
{
	int64_t at = CLOCK_NEVER;

	ask_for_others(r);
	for (unsigned i = 0; i < r->args.parallel; i++) {
		struct run_slot *s = &r->slots[i];

		if (!is_free(s))
			continue;
		s->waiter.fn = served;
		s->waiter.arg = s;
		engine_next(r->engine, &s->waiter, engine_caller(r->engine, r->kit.self),
			false);
		if (is_free(s))
			at = clock_mono() + NS_PER_S;
	}
	return at;
}

static void ask_no_more(struct run *r)
{
	for (unsigned i = 0; i < r->args.parallel; i++)
		engine_next_cancel(r->engine, &r->slots[i].waiter);
}

static struct message *pick(struct run *r)
{
	struct message *m = TAILQ_FIRST(engine_ready(r->engine));
	struct engine_stats st;

	engine_stats(r->engine, &st);
	for (unsigned n = outage_pick(&r->outage, st.ready, erand48(r->seed)); m && n;
		n--)
		m = TAILQ_NEXT(m, link);
	return m;
}

static void probe(struct run *r)
{
	struct run_slot *s = slot_of(r, 0);
	struct message *m = s ? pick(r) : NULL;

	if (m)
		claim(s, m);
}

/* When to ask again by the clock. */
static int64_t ask(struct run *r)
{
	int64_t now = clock_mono(), at = outage_next(&r->outage, now);

	if (!engine_hands_out(r->engine))
		return CLOCK_NEVER;
	if (!outage_suspected(&r->outage))
		return ask_again(r);
	ask_no_more(r);
	if (at > now)
		return at;
	probe(r);
	return CLOCK_NEVER;
}

/* ---- the end ---- */

static void stopped(void *arg)
{
	struct run *r = arg;

	loop_stop(r->loop);
}

/* Handlers have until SIGNAL_NS, then SIG, and --grace more. */
void run_end(struct run *r, const char *reason, int sig, int64_t signal_ns)
{
	if (r->ending)
		return;
	r->ending = true;
	r->signal = sig;
	r->signal_ns = signal_ns;
	log_debug("run", "ending: %s", reason);
	ask_no_more(r);
	engine_drain(r->engine);
	run_step_soon(r);
}

static void signal_handlers(struct run *r)
{
	r->signalled = true;
	signal_all(r, r->signal);
	for (unsigned i = 0; i < r->args.parallel; i++)
		r->slots[i].kill_ns = clock_add(clock_mono(), r->args.grace_ns);
}

void run_end_now(struct run *r)
{
	if (r->stopping)
		loop_stop(r->loop);
	r->signalled = true;
	for (unsigned i = 0; i < r->args.parallel; i++)
		r->slots[i].kill_ns = clock_mono();
	run_step_soon(r);
}

static int64_t go_on_ending(struct run *r)
{
	if (!r->busy) {
		if (!r->stopping)
			engine_stop(r->engine, END_GRACE_NS, stopped, r);
		r->stopping = true;
		return CLOCK_NEVER;
	}
	if (r->signalled)
		return CLOCK_NEVER;
	if (clock_mono() < r->signal_ns)
		return r->signal_ns;
	signal_handlers(r);
	return CLOCK_NEVER;
}

/* ---- --drain ---- */

static bool is_idle(struct run *r, const struct engine_stats *st)
{
	return !r->busy && !st->ready && !st->in_flight;
}

static void settled(struct engine_sync *s, int err)
{
	struct run *r = s->arg;
	struct engine_stats st;

	engine_stats(r->engine, &st);
	r->settled = !err && !r->handled_since && is_idle(r, &st);
	r->polls_before = st.polls_total;
	if (r->settled)
		engine_poll_now(r->engine);
	run_step_soon(r);
}

/*
 * Nothing is waiting when a poll that began after the last handling was settled
 * brought nothing. What is delayed, or leased by others, is not waited for.
 */
static void look_for_end_of_queue(struct run *r)
{
	struct engine_stats st;

	if (!r->args.drain || r->busy)
		return;
	engine_stats(r->engine, &st);
	if (r->answered && st.poll_err) {
		run_end(r, "the queue does not answer", SIGTERM, CLOCK_NEVER);
		return;
	}
	if (!is_idle(r, &st) || r->sync.queued)
		return;
	if (!r->settled) {
		r->handled_since = false;
		r->sync.fn = settled;
		r->sync.arg = r;
		engine_sync(r->engine, &r->sync);
	} else if (st.polls_total > r->polls_before && st.polls_empty_in_a_row &&
		   st.state != POLLER_POLLING) {
		run_end(r, "drained", SIGTERM, CLOCK_NEVER);
	}
}

/* The message is not ours any more: nor is its handler to go on. */
void run_left(struct run *r, struct message *m)
{
	struct run_slot *s = m->user;

	if (!s || s->m != m)
		return;
	s->m = NULL;
	if (!s->child.pid) {
		outage_forget(&r->outage, s->probe);
		return;
	}
	s->lost = true;
	r->counts.lost++;
	log_warn("run", "the lease was lost, ending the handler name=%s", s->name);
	child_signal(&s->child, SIGTERM);
	s->kill_ns = clock_add(clock_mono(), r->args.grace_ns);
	run_step_soon(r);
}

/* ---- the one who decides ---- */

static void step(void *arg)
{
	struct run *r = arg;
	int64_t next = CLOCK_NEVER, at;

	if (r->finished && !r->ending)
		run_end(r, engine_end_reason(r->engine), SIGTERM, clock_mono());
	if (!r->ending)
		look_for_end_of_queue(r);
	start_taken(r);
	next = r->ending ? go_on_ending(r) : ask(r);
	at = end_overdue(r);
	loop_timer_set(r->loop, &r->timer, at < next ? at : next);
}

int run_work_init(struct run *r)
{
	r->slots = calloc(r->args.parallel, sizeof(*r->slots));
	if (!r->slots)
		return -ENOMEM;
	for (unsigned i = 0; i < r->args.parallel; i++) {
		r->slots[i].run = r;
		r->slots[i].child.published = run_guard_slot(r->guard, i);
		r->slots[i].child.place = i;
	}
	for (int i = 0; i < 3; i++)
		r->seed[i] = (unsigned short)(clock_wall() >> (16 * i));
	outage_init(&r->outage, &outage_defaults);
	loop_task_init(&r->step, step, r);
	loop_timer_init(&r->timer, step, r);
	return 0;
}

void run_work_fini(struct run *r)
{
	if (!r->slots)
		return;
	ask_no_more(r);
	engine_sync_cancel(r->engine, &r->sync);
	loop_task_cancel(r->loop, &r->step);
	loop_timer_clear(r->loop, &r->timer);
	free(r->slots);
}
