/* SPDX-License-Identifier: MIT */
/* Real processes that claim messages of an engine bed. */
#ifndef SPOOLFS_TESTS_UNIT_ENGINE_PEOPLE_H
#define SPOOLFS_TESTS_UNIT_ENGINE_PEOPLE_H

#include <errno.h>
#include <stdlib.h>

#include "backend/engine/procfs.h"
#include "children.h"
#include "engine_bed.h"

static inline struct proc *who(struct eb *b, pid_t pid)
{
	return engine_caller(b->e, pid);
}

static inline struct proc *me(struct eb *b)
{
	return who(b, getpid());
}

/* PID opens the message for reading, and has not read yet. */
static inline struct message *open_as(struct eb *b, const char *id, pid_t pid)
{
	struct message *m = eb_find(b, id);

	CHECK(m);
	CHECK_INT(engine_claim(b->e, m, who(b, pid), false, true), 0);
	return m;
}

/* As `cat` does. */
static inline struct message *cat_as(struct eb *b, const char *id, pid_t pid)
{
	struct message *m = open_as(b, id, pid);

	engine_was_read(b->e, m);
	engine_close(b->e, m);
	return m;
}

static inline struct message *take(struct eb *b, const char *id)
{
	return cat_as(b, id, getpid());
}

/* ---- a shell and its commands ---- */

static inline void exit_one(int sig)
{
	(void)sig;
	_exit(1);
}

static inline pid_t shell_run(void)
{
	pid_t shell = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == shell) /* it may have been killed before that */
		pause();
	_exit(0);
}

/* 'r' runs a command, which does nothing until 'k', 'p' or 'e' ends it: killed,
 * by SIGPIPE, with exit code 1. Each is answered. Another word: exits with it. */
static inline void obey(int in, int out)
{
	pid_t pid = 0;

	signal(SIGUSR1, exit_one);
	for (;;) {
		unsigned char word = wait_for_word(in);

		if (word == 'r')
			pid = shell_run();
		else if (word == 'k' || word == 'p' || word == 'e')
			kill(pid, word == 'k'   ? SIGKILL
				  : word == 'p' ? SIGPIPE
						: SIGUSR1);
		else
			_exit(word);
		if (word != 'r')
			waitpid(pid, NULL, 0);
		say_pid(out, pid);
	}
}

static inline void obey_as_leader(int in, int out)
{
	setsid();
	obey(in, out);
}

static inline pid_t run(const struct child *shell)
{
	tell(shell, 'r');
	return hear_pid(shell);
}

/* The command is ended and reaped, and the engine knows. */
static inline void end_command(struct eb *b, const struct child *shell, unsigned char how)
{
	tell(shell, how);
	(void)hear_pid(shell);
	eb_run(b);
}

/* The shell exits, and the engine knows that, but not yet how. */
static inline void end_shell(struct eb *b, const struct child *shell, unsigned char code)
{
	tell(shell, code);
	await_zombie(shell);
	eb_run(b);
}

/* Whether this kernel tells by pidfd how a process ended. */
static inline bool kernel_tells(void)
{
	struct child c = spawn(exit_as_told);
	int fd = procfs_pidfd_open(c.pid), status, known;

	CHECK(fd >= 0);
	kill_and_reap(&c);
	known = procfs_pidfd_status(fd, &status);
	close(fd);
	return known == 1;
}

#endif
