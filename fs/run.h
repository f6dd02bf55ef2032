/* SPDX-License-Identifier: MIT */
/*
 * spoolfs run: a command for each message, without a mount. The engine alone;
 * nothing here knows of FUSE.
 *
 *   run.c        its life: create, run, destroy
 *   run_work.c   which message is handled when, and how the run ends
 *   run_args.c   the command line
 *   run_child.c  one handler: what it is given, how it is started and ended
 *   run_guard.c  ends the handlers of a run that was killed
 *   run_show.c   the lines for people
 */
#ifndef SPOOLFS_FS_RUN_H
#define SPOOLFS_FS_RUN_H

#include <limits.h>
#include <sys/types.h>

#include "../backend/base/clock.h"
#include "../backend/base/log.h"
#include "../backend/base/loop.h"
#include "../backend/engine/handling.h"
#include "../backend/engine/outage.h"
#include "run_args.h"
#include "run_child.h"

struct run;
struct run_guard;

/* One of the P places in which a handler runs. */
struct run_slot {
	struct run *run;
	struct engine_waiter waiter;
	struct message *m; /* what is handled; NULL: nothing, or no longer ours */
	struct child child;
	uint64_t id; /* a hash of the message's */
	bool probe;  /* of a suspected outage */
	bool lost;   /* the message left while it was handled */
	int64_t started_ns;
	int64_t kill_ns; /* SIGKILL then; CLOCK_NEVER */
	char name[NAME_MAX + 1];
};

struct run_counts {
	uint64_t handled, failed, lost;
};

struct run {
	struct run_args args;
	struct loop *loop;
	struct driver *driver;
	struct engine *engine;
	struct child_kit kit;
	struct run_guard *guard;
	struct run_slot *slots;
	unsigned busy; /* slots with a child */
	struct outage outage;
	unsigned short seed[3];
	struct loop_fd signal_fd;
	struct loop_task step;
	struct loop_timer timer, progress;
	struct run_counts counts;
	int64_t started_ns;

	/* --drain: once all is settled, a poll that brings nothing is the end */
	struct engine_sync sync;
	bool settled, handled_since;
	uint64_t polls_before;

	bool answered, denied, finished;
	bool ending, signalled, stopping;
	int signal;        /* what is passed on to the handlers */
	int64_t signal_ns; /* when */
};

/* ARGV[0] is "run". The exit code. */
int run_main(int argc, char **argv);

/* run_work.c; init wants the engine, and is to be undone before it is gone */
int run_work_init(struct run *r);
void run_work_fini(struct run *r);
/* Something happened: decide what is to be done, at the end of this round. */
void run_step_soon(struct run *r);
/* SIGCHLD came. */
void run_reap(struct run *r);
/* M is not this process's any more. */
void run_left(struct run *r, struct message *m);
/* Hands out nothing more. Handlers have until SIGNAL_NS (CLOCK_NEVER: as long as
 * they take), then get SIG, and have --grace more. REASON is for the log. */
void run_end(struct run *r, const char *reason, int sig, int64_t signal_ns);
/* Once it is ending: kills them. */
void run_end_now(struct run *r);

/* run_show.c */
/* A handling ended as STATUS, of waitid(2), says. */
void run_show_end(
	struct run *r, const struct run_slot *s, const siginfo_t *status, bool counts);
void run_show_begin(struct run *r); /* the progress line, on a terminal */
void run_show_summary(struct run *r);

#endif
