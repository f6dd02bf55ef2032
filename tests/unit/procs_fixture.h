/* SPDX-License-Identifier: MIT */
/* A process table on a loop, and what it told. */
#ifndef SPOOLFS_TESTS_UNIT_PROCS_FIXTURE_H
#define SPOOLFS_TESTS_UNIT_PROCS_FIXTURE_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "backend/base/clock.h"
#include "backend/base/loop.h"
#include "backend/engine/procfs.h"
#include "backend/engine/procs.h"
#include "tests/test.h"

#define BOUND_NS (10 * NS_PER_S)

struct fixture {
	struct loop *loop;
	struct procs *ps;
	int exited, ended;
	struct proc *last;
	struct proc_end end;
	bool unref_at_exit;
};

static inline void on_exited(void *arg, struct proc *p)
{
	struct fixture *f = arg;

	f->exited++;
	f->last = p;
	if (f->unref_at_exit)
		procs_unref(f->ps, p);
}

static inline void on_ended(void *arg, struct proc *p, const struct proc_end *end)
{
	struct fixture *f = arg;

	f->ended++;
	f->last = p;
	f->end = *end;
}

static inline void setup(struct fixture *f)
{
	struct procs_events events = {.exited = on_exited, .ended = on_ended, .arg = f};

	*f = (struct fixture){.loop = loop_create()};
	CHECK(f->loop);
	f->ps = procs_create(f->loop, &events);
	CHECK(f->ps);
}

/* As where no pidfd is to be had: half of the descriptors is none. */
static inline void setup_without_pidfds(struct fixture *f)
{
	struct procs_events events = {.exited = on_exited, .ended = on_ended, .arg = f};
	struct rlimit old, low;

	*f = (struct fixture){.loop = loop_create()};
	CHECK(f->loop);
	CHECK_INT(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = old;
	low.rlim_cur = 1;
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &low), 0);
	f->ps = procs_create(f->loop, &events);
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &old), 0);
	CHECK(f->ps);
}

static inline void teardown(struct fixture *f)
{
	procs_destroy(f->ps);
	loop_destroy(f->loop);
}

static inline void run_until(struct fixture *f, const int *count)
{
	int64_t end = clock_mono() + BOUND_NS;

	while (*count == 0 && clock_mono() < end)
		CHECK_INT(loop_once(f->loop, BOUND_NS), 0);
	CHECK_INT(*count, 1);
}

/* Lets the loop do what is due now. */
static inline void run_now(struct fixture *f)
{
	for (int i = 0; i < 3; i++)
		CHECK_INT(loop_once(f->loop, 0), 0);
}

static inline int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	CHECK(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

#endif
