/* SPDX-License-Identifier: MIT */
/*
 * The processes that matter here: who asks, whose child it is, and when it
 * ends. The edge of owner.h: reads /proc and watches pidfds.
 *
 * A record is cached under its pid as long as the process lives (its pidfd
 * guards against reuse of the number) and kept as long as somebody holds a
 * reference. Looking up a known process costs a hash look-up.
 */
#ifndef SPOOLFS_ENGINE_PROCS_H
#define SPOOLFS_ENGINE_PROCS_H

#include "owner.h"

struct loop;
struct procs;

/* How a process ended. */
struct proc_end {
	bool known;    /* the kernel told (6.15 and newer, once it was reaped) */
	int signal;    /* 0: it exited */
	int exit_code; /* when signal is 0 */
};

struct procs_events {
	/* P has exited (it may be an unreaped zombie); p->alive is false already. */
	void (*exited)(void *arg, struct proc *p);
	/* How it ended, once that is known: a bad end at once, where the zombie
	 * may be looked at, any other when it was reaped. Called at most once,
	 * after exited(), only when END is known and somebody holds a reference. */
	void (*ended)(void *arg, struct proc *p, const struct proc_end *end);
	void *arg;
};

/* NULL and errno. EVENTS is copied. */
struct procs *procs_create(struct loop *loop, const struct procs_events *events);
void procs_destroy(struct procs *ps); /* takes NULL; forgets every record */

/*
 * The process of thread TID, as FUSE gives it, with its parents looked up to
 * the top. Borrowed: valid until the next return to the loop unless referenced.
 * TID 0, or one that cannot be seen: the one record for all unseen callers
 * (pid 0, always alive). NULL only when out of memory.
 */
struct proc *procs_get(struct procs *ps, pid_t tid);
/* The record for an identity from an earlier daemon, alive or not. Referenced:
 * drop it with procs_unref(). NULL only when out of memory. */
struct proc *procs_revive(struct procs *ps, pid_t pid, uint64_t start);
struct proc *procs_ref(struct proc *p);
void procs_unref(struct procs *ps, struct proc *p); /* takes NULL */
/* Looks now, not when the loop gets to it: false when P has exited. Calls
 * exited() before it returns when that was not known. */
bool procs_check_alive(struct procs *ps, struct proc *p);
/* Whether the thread TID is being ended by a signal right now (its last
 * flushes come while it exits): the signal's number, else 0. */
int procs_exit_signal(pid_t tid);
/* The machine's boot id, for claim records. */
const char *procs_boot_id(struct procs *ps);

#endif
