/* SPDX-License-Identifier: MIT */
/*
 * One round: sleep until a descriptor, the timer descriptor or nothing more is
 * due, then run descriptors, timers and tasks, in this order.
 *
 * Deadlines count on during suspend, epoll's own timeout does not: after a
 * laptop's night it would sleep on for what was left in the evening. So the
 * sleep is ended by a timerfd on the same clock, armed again only when the
 * earliest deadline is another one than before.
 */
#include "loop.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"

#define BATCH_MAX 64

/* What one epoll_wait brought. A callback may run a round of its own, so they
 * form a stack, and a removed descriptor is dropped from all of them. */
struct batch {
	struct epoll_event events[BATCH_MAX];
	int n;
	int next;
	struct batch *outer;
};

struct loop {
	int epoll_fd;
	int timer_fd;
	int64_t armed_ns; /* what timer_fd waits for; CLOCK_NEVER: nothing */
	bool stopping;
	uint64_t wakeups;
	struct heap timers;
	TAILQ_HEAD(, loop_task) tasks;
	struct batch *batch; /* innermost */
};

static int open_descriptors(struct loop *loop)
{
	/* The timer is known by its NULL, which no loop_fd has. */
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = NULL};

	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	loop->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (loop->epoll_fd < 0 || loop->timer_fd < 0)
		return -1;
	return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->timer_fd, &ev);
}

struct loop *loop_create(void)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return NULL;
	loop->epoll_fd = -1;
	loop->timer_fd = -1;
	loop->armed_ns = CLOCK_NEVER;
	TAILQ_INIT(&loop->tasks);
	/* Room for all timers of a daemon: none of them can be refused later. */
	if (open_descriptors(loop) < 0 || heap_reserve(&loop->timers)) {
		int err = errno;

		loop_destroy(loop);
		errno = err;
		return NULL;
	}
	return loop;
}

void loop_destroy(struct loop *loop)
{
	if (!loop)
		return;
	if (loop->timer_fd >= 0)
		close(loop->timer_fd);
	if (loop->epoll_fd >= 0)
		close(loop->epoll_fd);
	heap_fini(&loop->timers);
	free(loop);
}

int loop_run(struct loop *loop)
{
	int err = 0;

	while (!loop->stopping && !err)
		err = loop_once(loop, CLOCK_NEVER);
	loop->stopping = false;
	return err;
}

void loop_stop(struct loop *loop)
{
	loop->stopping = true;
}

/* The marks of run_tasks() are no tasks. */
static bool has_task(const struct loop *loop)
{
	const struct loop_task *t = TAILQ_FIRST(&loop->tasks);

	while (t && !t->fn)
		t = TAILQ_NEXT(t, link);
	return t != NULL;
}

/* Now, when something waits already; else the earliest of deadline and limit. */
static int64_t wake_at(const struct loop *loop, int64_t now_ns, int64_t max_sleep_ns)
{
	int64_t limit = clock_add(now_ns, max_sleep_ns);
	const struct heap_node *first = heap_min(&loop->timers);

	if (has_task(loop))
		return now_ns;
	return first && first->key < limit ? first->key : limit;
}

/* Relative, because the clock may be a faked one. */
static int arm(struct loop *loop, int64_t at_ns, int64_t now_ns)
{
	struct itimerspec its = {0};
	int64_t left = at_ns - now_ns;

	if (at_ns == loop->armed_ns)
		return 0;
	if (at_ns != CLOCK_NEVER) {
		its.it_value.tv_sec = left / NS_PER_S;
		its.it_value.tv_nsec = left % NS_PER_S;
	}
	if (timerfd_settime(loop->timer_fd, 0, &its, NULL) < 0)
		return -errno;
	loop->armed_ns = at_ns;
	return 0;
}

/* Sleeps and fills B. 0 or -errno. */
static int wait_events(struct loop *loop, struct batch *b, int64_t max_sleep_ns)
{
	int64_t now = clock_mono();
	int64_t at = wake_at(loop, now, max_sleep_ns);
	int timeout = at <= now ? 0 : -1;
	int err = timeout ? arm(loop, at, now) : 0;

	if (err)
		return err;
	b->n = epoll_wait(loop->epoll_fd, b->events, BATCH_MAX, timeout);
	loop->wakeups++;
	if (b->n >= 0)
		return 0;
	b->n = 0;
	return errno == EINTR ? 0 : -errno;
}

static void timer_expired(struct loop *loop)
{
	uint64_t times;

	/* Nobody else reads it, so it cannot fail but by having been armed anew. */
	(void)!read(loop->timer_fd, &times, sizeof(times));
	loop->armed_ns = CLOCK_NEVER;
}

static void run_events(struct loop *loop, struct batch *b)
{
	while (b->next < b->n) {
		const struct epoll_event *ev = &b->events[b->next++];
		struct loop_fd *w = ev->data.ptr;

		if (!w)
			timer_expired(loop);
		else if (ev->events)
			w->fn(w->arg, ev->events);
	}
}

static void forget_events(struct batch *b, const struct loop_fd *w)
{
	for (; b; b = b->outer) {
		for (int i = b->next; i < b->n; i++) {
			if (b->events[i].data.ptr == w)
				b->events[i].events = 0;
		}
	}
}

/* At most as many as there were: one that sets itself again for now must not
 * keep the descriptors from their turn. */
static void run_timers(struct loop *loop)
{
	int64_t now = clock_mono();

	for (size_t left = loop->timers.len; left > 0; left--) {
		struct heap_node *n = heap_min(&loop->timers);
		struct loop_timer *t;

		if (!n || n->key > now)
			break;
		t = (struct loop_timer *)((char *)n - offsetof(struct loop_timer, node));
		heap_remove(&loop->timers, n);
		t->fn(t->arg);
	}
}

/* Only those queued by now, for the same reason: a mark in the queue ends the
 * walk, whatever the tasks do to the queue. An inner round may pass the mark. */
static void run_tasks(struct loop *loop)
{
	struct loop_task mark = {.queued = true};

	TAILQ_INSERT_TAIL(&loop->tasks, &mark, link);
	while (mark.queued) {
		struct loop_task *t = TAILQ_FIRST(&loop->tasks);

		loop_task_cancel(loop, t);
		if (t->fn)
			t->fn(t->arg);
	}
}

int loop_once(struct loop *loop, int64_t max_sleep_ns)
{
	struct batch b = {.n = 0};
	int err = wait_events(loop, &b, max_sleep_ns);

	if (err)
		return err;
	b.outer = loop->batch;
	loop->batch = &b;
	run_events(loop, &b);
	loop->batch = b.outer;
	run_timers(loop);
	run_tasks(loop);
	return 0;
}

static int control(struct loop *loop, int op, struct loop_fd *w, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = w};

	if (epoll_ctl(loop->epoll_fd, op, w->fd, &ev) < 0)
		return -errno;
	w->events = events;
	return 0;
}

int loop_fd_add(struct loop *loop, struct loop_fd *w, int fd, uint32_t events,
	loop_fd_fn *fn, void *arg)
{
	int err;

	assert(!w->active);
	*w = (struct loop_fd){.fd = fd, .fn = fn, .arg = arg};
	err = control(loop, EPOLL_CTL_ADD, w, events);
	w->active = !err;
	return err;
}

int loop_fd_mod(struct loop *loop, struct loop_fd *w, uint32_t events)
{
	assert(w->active);
	if (events == w->events)
		return 0;
	return control(loop, EPOLL_CTL_MOD, w, events);
}

void loop_fd_del(struct loop *loop, struct loop_fd *w)
{
	if (!w->active)
		return;
	w->active = false;
	/* Fails only when the caller has closed it first: then it is gone too. */
	(void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
	forget_events(loop->batch, w);
}

void loop_timer_init(struct loop_timer *t, loop_fn *fn, void *arg)
{
	*t = (struct loop_timer){.fn = fn, .arg = arg};
}

void loop_timer_set(struct loop *loop, struct loop_timer *t, int64_t at_ns)
{
	if (at_ns == CLOCK_NEVER) {
		loop_timer_clear(loop, t);
		return;
	}
	if (heap_set(&loop->timers, &t->node, at_ns) == 0)
		return;
	/*
	 * A deadline that is silently never met would hold a lease for ever or
	 * lose it unseen. A crash is what everything durable is made for.
	 */
	log_error("loop", "out of memory for a timer");
	abort();
}

void loop_timer_clear(struct loop *loop, struct loop_timer *t)
{
	heap_remove(&loop->timers, &t->node);
}

bool loop_timer_is_set(const struct loop_timer *t)
{
	return heap_has(&t->node);
}

void loop_task_init(struct loop_task *t, loop_fn *fn, void *arg)
{
	*t = (struct loop_task){.fn = fn, .arg = arg};
}

void loop_task_queue(struct loop *loop, struct loop_task *t)
{
	if (t->queued)
		return;
	t->queued = true;
	TAILQ_INSERT_TAIL(&loop->tasks, t, link);
}

void loop_task_cancel(struct loop *loop, struct loop_task *t)
{
	if (!t->queued)
		return;
	t->queued = false;
	TAILQ_REMOVE(&loop->tasks, t, link);
}

uint64_t loop_wakeups(const struct loop *loop)
{
	return loop->wakeups;
}
