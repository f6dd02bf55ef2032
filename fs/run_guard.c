/* SPDX-License-Identifier: MIT */
#include "run_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct run_guard {
	pid_t pid;
	int alive_fd; /* its other end says end of file when we are gone */
	pid_t *table; /* shared with the guard */
	unsigned n;
};

static int remove_one(
	const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	(void)remove(path);
	return 0;
}

/* Of 10 ms each. */
#define REMOVE_TRIES 100

/* What was killed a moment ago may be about to make another file. */
void run_guard_remove(const char *dir)
{
	static const struct timespec step = {0, 10000000};

	for (int i = 0; *dir && i < REMOVE_TRIES; i++) {
		nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
		if (access(dir, F_OK))
			return;
		nanosleep(&step, NULL);
	}
}

/* In a session of its own: whoever kills our process group does not mean it. It
 * keeps nothing open that somebody may wait for. */
__attribute__((noreturn)) static void guard(
	const struct run_guard *g, int fd, const char *dir)
{
	sigset_t all;
	char byte;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	prctl(PR_SET_NAME, "spoolfs-guard");
	if (dup2(fd, 0) == 0)
		close_range(1, UINT_MAX, 0);
	while (read(0, &byte, 1) < 0 && errno == EINTR)
		;
	for (unsigned i = 0; i < g->n; i++) {
		if (g->table[i] > 0)
			kill(-g->table[i], SIGKILL);
	}
	run_guard_remove(dir);
	_exit(0);
}

static int start(struct run_guard *g, const char *dir)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	g->pid = fork();
	if (g->pid == 0) {
		close(ends[1]);
		guard(g, ends[0], dir);
	}
	close(ends[0]);
	g->alive_fd = ends[1];
	return g->pid < 0 ? -errno : 0;
}

struct run_guard *run_guard_create(unsigned n, const char *dir)
{
	int kind = MAP_SHARED | MAP_ANONYMOUS;
	struct run_guard *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->n = n;
	g->alive_fd = -1;
	/* cppcheck-suppress invalidFunctionArg */
	g->table = mmap(NULL, n * sizeof(pid_t), PROT_READ | PROT_WRITE, kind, -1, 0);
	if (g->table != MAP_FAILED && !start(g, dir))
		return g;
	run_guard_destroy(g);
	return NULL;
}

pid_t *run_guard_slot(struct run_guard *g, unsigned i)
{
	return &g->table[i];
}

void run_guard_destroy(struct run_guard *g)
{
	if (!g)
		return;
	if (g->alive_fd >= 0)
		close(g->alive_fd);
	if (g->pid > 0)
		waitpid(g->pid, NULL, 0);
	if (g->table != MAP_FAILED)
		munmap(g->table, g->n * sizeof(pid_t));
	free(g);
}
