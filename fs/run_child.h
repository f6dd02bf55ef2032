/* SPDX-License-Identifier: MIT */
/*
 * A handler: the process that is started for one message.
 *
 * It leads a process group of its own, reads the body on standard input (a file
 * in memory, so that nobody ever waits for a pipe), and dies with this process.
 */
#ifndef SPOOLFS_FS_RUN_CHILD_H
#define SPOOLFS_FS_RUN_CHILD_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct message;

/* What all handlers of a run have in common. */
struct child_kit {
	const char *path; /* of the program */
	char **command;   /* its argv; "{}" in all but the first is replaced */
	const char *source;
	char dir[PATH_MAX];  /* private, for the files of "{}"; "": none needed */
	char **environ_base; /* ours without SPOOLFS_ID and its like */
	size_t n_environ;
	sigset_t mask; /* the signal mask to give them */
	pid_t self;
};

struct child {
	pid_t pid;        /* 0: none */
	pid_t *published; /* where its pid is kept as long as it lives (run_guard.h) */
	unsigned place;   /* which of those that run at a time */
	char *file;       /* of "{}", or NULL */
};

/* PATH, COMMAND and SOURCE stay the caller's. Makes DIR when WANTS_FILE. Call it
 * before signals are blocked. 0 or -errno. */
int child_kit_init(struct child_kit *k, const char *path, char **command,
	const char *source, bool wants_file);
/* Removes DIR with all that was left in it. */
void child_kit_fini(struct child_kit *k);

/* Starts one for M, called NAME. 0 or -errno; then there is nothing to end. */
int child_start(const struct child_kit *k, struct child *c, const struct message *m,
	const char *name);
/* SIG to its whole process group. */
void child_signal(const struct child *c, int sig);
/* Waits for the one that has exited (WNOWAIT was used before) and forgets it.
 * ALL: what is left of its group is killed. */
void child_reap(struct child *c, bool all);

#endif
