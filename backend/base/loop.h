/* SPDX-License-Identifier: MIT */
/*
 * The one loop, and the only place that sleeps.
 *
 * Everything runs on the thread that calls loop_run(). The caller owns every
 * loop_fd, loop_timer and loop_task (embedded in its own struct) and must
 * delete or clear it before it frees the memory. All of them may be added,
 * changed and removed from inside any callback; an event that was already
 * fetched for a removed loop_fd is dropped.
 */
#ifndef SPOOLFS_BASE_LOOP_H
#define SPOOLFS_BASE_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "heap.h"

struct loop;

typedef void loop_fd_fn(void *arg, uint32_t events);
typedef void loop_fn(void *arg);

/* A watched file descriptor. Zero-initialise before first use. */
struct loop_fd {
	int fd;
	uint32_t events; /* EPOLLIN, EPOLLOUT, ... */
	bool active;
	loop_fd_fn *fn;
	void *arg;
};

/* A one-shot timer. Initialise with loop_timer_init(). */
struct loop_timer {
	struct heap_node node;
	loop_fn *fn;
	void *arg;
};

/* Work put off to just before the loop sleeps next. */
struct loop_task {
	TAILQ_ENTRY(loop_task) link;
	bool queued;
	loop_fn *fn;
	void *arg;
};

/* NULL and errno when the kernel gives no epoll descriptor, or no memory. */
struct loop *loop_create(void);
/* Takes NULL. Does not touch what is still registered. */
void loop_destroy(struct loop *loop);

/*
 * Runs callbacks until loop_stop(). Sleeps only when no task is queued, no
 * timer is due and no descriptor is ready. 0, or -errno when epoll fails.
 */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/*
 * One round: sleep at most MAX_SLEEP_NS (0: do not sleep; CLOCK_NEVER: until
 * something happens), then run what is due. For tests and nested shutdown.
 */
int loop_once(struct loop *loop, int64_t max_sleep_ns);

/*
 * Watches FD for EVENTS (level-triggered unless EPOLLET is given) and calls
 * FN(ARG, what happened). The descriptor stays the caller's. 0 or -errno.
 */
int loop_fd_add(struct loop *loop, struct loop_fd *w, int fd, uint32_t events,
	loop_fd_fn *fn, void *arg);
/* Changes the events watched for; 0 watches for errors only. 0 or -errno. */
int loop_fd_mod(struct loop *loop, struct loop_fd *w, uint32_t events);
/* Stops watching; call before closing the descriptor. Idempotent. */
void loop_fd_del(struct loop *loop, struct loop_fd *w);

void loop_timer_init(struct loop_timer *t, loop_fn *fn, void *arg);
/* Fires once at AT_NS (clock_mono()) or soon after; replaces an earlier
 * setting. CLOCK_NEVER clears. */
void loop_timer_set(struct loop *loop, struct loop_timer *t, int64_t at_ns);
void loop_timer_clear(struct loop *loop, struct loop_timer *t);
bool loop_timer_is_set(const struct loop_timer *t);

void loop_task_init(struct loop_task *t, loop_fn *fn, void *arg);
/* Queues T once; queueing it again before it has run changes nothing. */
void loop_task_queue(struct loop *loop, struct loop_task *t);
void loop_task_cancel(struct loop *loop, struct loop_task *t);

/* How often epoll_wait has returned: what "idle" is measured by. */
uint64_t loop_wakeups(const struct loop *loop);

#endif
