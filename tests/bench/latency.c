/* SPDX-License-Identifier: MIT */
/*
 *	latency DIRA DIRB N
 *
 * How long from a close() in DIRA till another mount of the same queue, DIRB,
 * raises the message's IN_CREATE and its IN_CLOSE_WRITE, and till a read of
 * DIRB/.next that was waiting returns. One message at a time.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crowd.h"

static char block[100];

static int open_dir(const char *path)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		die("%s", path);
	return dir;
}

static void consume_one(int dir, const char *name)
{
	char body[sizeof(block)];
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, body, sizeof(body)) != sizeof(body))
		die("read %s", name);
	if (close(fd) < 0 || unlinkat(dir, name, 0) < 0)
		die("unlink %s", name);
}

/* Creates and writes a message, and returns when its close() was called. */
static int64_t send_one(int dir, size_t number)
{
	char name[32];
	int64_t at;
	int fd;

	snprintf(name, sizeof(name), "l%zu", number);
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, block, sizeof(block)) != sizeof(block))
		die("write %s", name);
	at = now();
	if (close(fd) < 0)
		die("close %s", name);
	return at;
}

struct arrival {
	char name[NAME_MAX + 1];
	int64_t created, written; /* when IN_CREATE and IN_CLOSE_WRITE were read */
};

static void note_event(struct arrival *a, const struct inotify_event *e, int64_t at)
{
	if (e->len == 0 || e->name[0] == '.')
		return;
	if ((e->mask & IN_CREATE) != 0 && a->created == 0) {
		a->created = at;
		snprintf(a->name, sizeof(a->name), "%s", e->name);
	}
	if ((e->mask & IN_CLOSE_WRITE) != 0 && a->created != 0)
		a->written = at;
}

/* Reads events until the message is announced, whole. */
static void await_arrival(int inotify, struct arrival *a)
{
	_Alignas(struct inotify_event) char buf[4096];

	while (a->written == 0) {
		struct pollfd p = {.fd = inotify, .events = POLLIN};
		const struct inotify_event *e;
		ssize_t n;
		int64_t at;

		if (poll(&p, 1, PATIENCE_S * 1000) <= 0)
			die("no event");
		at = now();
		n = read(inotify, buf, sizeof(buf));
		for (ssize_t i = 0; i < n; i += (ssize_t)(sizeof(*e) + e->len)) {
			e = (const void *)(buf + i);
			note_event(a, e, at);
		}
	}
}

static void events_latency(int a, const char *path_b, size_t n, int64_t *ns)
{
	int64_t *written = calloc(n, sizeof(*written));
	int b = open_dir(path_b), inotify = inotify_init1(IN_CLOEXEC);

	if (written == NULL || inotify < 0 ||
		inotify_add_watch(inotify, path_b, IN_CREATE | IN_CLOSE_WRITE) < 0)
		die("watching %s", path_b);
	for (size_t i = 0; i < n; i++) {
		struct arrival arrival = {.created = 0};
		int64_t at = send_one(a, i);

		await_arrival(inotify, &arrival);
		ns[i] = arrival.created - at;
		written[i] = arrival.written - at;
		consume_one(b, arrival.name);
	}
	print_spread("in_create", ns, n);
	print_spread("in_close_write", written, n);
	free(written);
	close(inotify);
	close(b);
}

/* Takes N messages from .next; tells before and after each read. */
__attribute__((noreturn)) static void taker(const char *path, size_t n, int out)
{
	int dir = open_dir(path);

	for (size_t i = 0; i < n; i++) {
		int fd = openat(dir, ".next", O_RDONLY | O_CLOEXEC);
		char name[NAME_MAX + 2];
		int64_t at = 0;
		ssize_t len;

		if (fd < 0 || write(out, &at, sizeof(at)) != sizeof(at))
			die(".next");
		len = read(fd, name, sizeof(name) - 1);
		at = now();
		if (len < 2 || name[len - 1] != '\n')
			die("read .next");
		name[len - 1] = '\0';
		consume_one(dir, name);
		close(fd);
		if (write(out, &at, sizeof(at)) != sizeof(at))
			die("pipe");
	}
	_exit(0);
}

/* Until PID sleeps, which it does in its read of .next. */
static void await_sleep(pid_t pid)
{
	int64_t limit = now() + PATIENCE_S * NS_PER_S;
	char path[40], line[256];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	while (now() < limit) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
		const char *state;

		if (fd >= 0)
			close(fd);
		line[n > 0 ? n : 0] = '\0';
		state = strrchr(line, ')');
		if (state != NULL && (state[2] == 'S' || state[2] == 'D'))
			return;
	}
	die("the reader of .next does not sleep");
}

static int64_t read_time(int fd)
{
	int64_t at;

	if (read(fd, &at, sizeof(at)) != sizeof(at))
		die("the reader of .next ended");
	return at;
}

static void next_latency(int a, const char *path_b, size_t n, int64_t *ns)
{
	int out[2];
	pid_t pid;

	if (pipe(out) < 0 || (pid = fork()) < 0)
		die("fork");
	if (pid == 0) {
		close(out[0]);
		taker(path_b, n, out[1]);
	}
	close(out[1]);
	for (size_t i = 0; i < n; i++) {
		int64_t at;

		read_time(out[0]);
		await_sleep(pid);
		at = send_one(a, n + i);
		ns[i] = read_time(out[0]) - at;
	}
	waitpid(pid, NULL, 0);
	close(out[0]);
	print_spread("next", ns, n);
}

static void latency(const char *path_a, const char *path_b, size_t n)
{
	int64_t *ns = calloc(n, sizeof(*ns));
	int a = open_dir(path_a);

	if (ns == NULL)
		die("latency");
	events_latency(a, path_b, n, ns);
	next_latency(a, path_b, n, ns);
	free(ns);
	close(a);
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fputs("usage: latency DIRA DIRB N\n", stderr);
		return 64;
	}
	memset(block, 'x', sizeof(block));
	latency(argv[1], argv[2], number(argv[3], COUNT_MAX));
	return 0;
}
