/* SPDX-License-Identifier: MIT */
/*
 * Real children for tests: each does what it is told through a pipe, and ends
 * with the test program at the latest.
 */
#ifndef SPOOLFS_TESTS_UNIT_CHILDREN_H
#define SPOOLFS_TESTS_UNIT_CHILDREN_H

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

/* A child, and the pipes to and from it. It ends when the test does. */
struct child {
	pid_t pid;
	int to, from;
};

typedef void child_fn(int in, int out);

static inline void child_main(child_fn *fn, int to[2], int from[2])
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(to[1]);
	close(from[0]);
	fn(to[0], from[1]);
	_exit(0);
}

static inline struct child spawn(child_fn *fn)
{
	struct child c;
	int to[2], from[2];

	CHECK_INT(pipe2(to, O_CLOEXEC), 0);
	CHECK_INT(pipe2(from, O_CLOEXEC), 0);
	c.pid = fork();
	CHECK(c.pid >= 0);
	if (c.pid == 0)
		child_main(fn, to, from);
	close(to[0]);
	close(from[1]);
	c.to = to[1];
	c.from = from[0];
	return c;
}

static inline pid_t hear_pid(const struct child *c)
{
	pid_t pid = 0;

	CHECK_INT(read(c->from, &pid, sizeof(pid)), sizeof(pid));
	return pid;
}

static inline void say_pid(int out, pid_t pid)
{
	if (write(out, &pid, sizeof(pid)) != sizeof(pid))
		_exit(99);
}

static inline unsigned char wait_for_word(int in)
{
	unsigned char word = 0;

	if (read(in, &word, 1) != 1)
		_exit(98);
	return word;
}

/* Tells it how to go on; most exit with it. */
static inline void tell(const struct child *c, unsigned char word)
{
	CHECK_INT(write(c->to, &word, 1), 1);
}

/* Until it is a zombie; it stays one. */
static inline void await_zombie(const struct child *c)
{
	siginfo_t info;

	CHECK_INT(waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOWAIT), 0);
}

static inline void reap(const struct child *c)
{
	CHECK_INT(waitpid(c->pid, NULL, 0), c->pid);
	close(c->to);
	close(c->from);
}

static inline void kill_and_reap(const struct child *c)
{
	CHECK_INT(kill(c->pid, SIGKILL), 0);
	reap(c);
}

static inline void exit_as_told(int in, int out)
{
	(void)out;
	_exit(wait_for_word(in));
}

#endif
