/* SPDX-License-Identifier: MIT */
/*
 * The guard: a small process that outlives a run only to end what the run has
 * left. A handler asks the kernel to die with the run, but its own children
 * know nothing of that; and nobody else removes the files of a run that was
 * killed. The guard waits on a pipe until the run is gone, however that came
 * about, then kills the process groups of the handlers that were not reaped.
 */
#ifndef SPOOLFS_FS_RUN_GUARD_H
#define SPOOLFS_FS_RUN_GUARD_H

#include <sys/types.h>

struct run_guard;

/* For N handlers, whose files are in DIR ("": none). To be called while there is
 * one thread and before anything is opened that is to be closed at the end. NULL
 * and errno. */
struct run_guard *run_guard_create(unsigned n, const char *dir);
/* The place of handler I: its pid from its start until it is reaped, else 0. */
pid_t *run_guard_slot(struct run_guard *g, unsigned i);
/* Takes NULL. Ends the guard, and waits for it. */
void run_guard_destroy(struct run_guard *g);

/* Removes DIR and what is in it. */
void run_guard_remove(const char *dir);

#endif
