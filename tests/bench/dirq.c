/* SPDX-License-Identifier: MIT */
/*
 * A directory queue as CERN's dirq keeps it (QueueSimple), in its calls alone:
 * what such a queue costs whatever language it is written in.
 *
 *	dirq enqueue DIR N SIZE WRITERS       as dirq does: nothing is synced
 *	dirq enqueue-sync DIR N SIZE WRITERS  file and directory are, as spoolfs does
 *	dirq consume DIR N SIZE               list, lock, read, remove
 *
 * An element is DIR/MINUTE/TIME: written as TIME.tmp, linked to its name; locked
 * by a second link TIME.lck and a touch; read through that and both are unlinked.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "crowd.h"

#define GRANULARITY_S 60
#define MINUTE_LEN    8  /* hexadecimal digits */
#define NAME_LEN      14 /* of seconds, microseconds, and one for each writer */
#define PATH_LEN      64

static char block[SIZE_MAX_B];

struct queue {
	const char *path;
	size_t size;
	bool sync;
	int dir;
};

static int open_dir(const char *path)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		die("%s", path);
	return dir;
}

/* ---- enqueue ---------------------------------------------------------------- */

static void *enter(struct person *p)
{
	struct queue *q = p->arg;

	q->dir = open_dir(q->path);
	return q;
}

/* The directory for what comes now. */
static void this_minute(char *minute)
{
	unsigned long s = (unsigned long)time(NULL);

	snprintf(minute, MINUTE_LEN + 1, "%08lx", s - s % GRANULARITY_S);
}

/* A name in that directory, which may be the one of the minute before. */
static void new_name(char *name, const char *minute, int who)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	snprintf(name, PATH_LEN, "%.*s/%08lx%05lx%x", MINUTE_LEN, minute,
		(unsigned long)ts.tv_sec, (unsigned long)ts.tv_nsec / 1000, who & 0xf);
}

/* Creates TMP, and its directory where it is missing. */
static int create(struct queue *q, const char *tmp, const char *minute)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
	int fd = openat(q->dir, tmp, flags, 0600);

	if (fd < 0 && errno == ENOENT) {
		if (mkdirat(q->dir, minute, 0700) < 0 && errno != EEXIST)
			die("mkdir %s", minute);
		fd = openat(q->dir, tmp, flags, 0600);
	}
	if (fd < 0)
		die("create %s", tmp);
	return fd;
}

static void sync_minute(struct queue *q, const char *minute)
{
	int fd = openat(q->dir, minute, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fsync(fd) < 0)
		die("fsync %s", minute);
	close(fd);
}

static void add(struct queue *q, int who)
{
	char minute[MINUTE_LEN + 1], name[PATH_LEN], tmp[PATH_LEN + 4];
	int fd;

	this_minute(minute);
	new_name(name, minute, who);
	snprintf(tmp, sizeof(tmp), "%s.tmp", name);
	fd = create(q, tmp, minute);
	if (write(fd, block, q->size) != (ssize_t)q->size)
		die("write %s", tmp);
	if ((q->sync && fdatasync(fd) < 0) || close(fd) < 0)
		die("close %s", tmp);
	new_name(name, minute, who);
	while (linkat(q->dir, tmp, q->dir, name, 0) < 0) {
		if (errno != EEXIST)
			die("link %s", name);
		new_name(name, minute, who);
	}
	if (unlinkat(q->dir, tmp, 0) < 0)
		die("unlink %s", tmp);
	if (q->sync)
		sync_minute(q, minute);
}

static void add_part(struct person *p, void *prepared)
{
	for (size_t i = 0; i < p->part; i++)
		add(prepared, p->who);
}

/* ---- consume ---------------------------------------------------------------- */

static int is_element(const struct dirent *e)
{
	return strspn(e->d_name, "0123456789abcdef") == NAME_LEN &&
	       e->d_name[NAME_LEN] == '\0';
}

static int is_minute(const struct dirent *e)
{
	return strspn(e->d_name, "0123456789abcdef") == MINUTE_LEN &&
	       e->d_name[MINUTE_LEN] == '\0';
}

static void take(int dir, const char *name, size_t size)
{
	char lock[PATH_LEN];
	int fd;

	snprintf(lock, sizeof(lock), "%.*s.lck", NAME_LEN, name);
	if (linkat(dir, name, dir, lock, 0) < 0 || utimensat(dir, name, NULL, 0) < 0)
		die("lock %s", name);
	fd = openat(dir, lock, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, block, sizeof(block)) != (ssize_t)size || close(fd) < 0)
		die("read %s", name);
	if (unlinkat(dir, name, 0) < 0 || unlinkat(dir, lock, 0) < 0)
		die("unlink %s", name);
}

/* Returns how many of at most N it took. */
static size_t consume_minute(int queue, const char *minute, size_t n, size_t size)
{
	int dir = openat(queue, minute, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent **names;
	int count = dir < 0 ? -1 : scandirat(dir, ".", &names, is_element, alphasort);
	size_t done = 0;

	if (count < 0)
		die("%s", minute);
	for (int i = 0; i < count; i++) {
		if (done < n) {
			take(dir, names[i]->d_name, size);
			done++;
		}
		free(names[i]);
	}
	free(names);
	close(dir);
	return done;
}

static void consume(const char *path, size_t n, size_t size)
{
	struct dirent **minutes;
	int dir = open_dir(path);
	int64_t start = now();
	int count = scandirat(dir, ".", &minutes, is_minute, alphasort);
	size_t done = 0;

	for (int i = 0; i < count; i++) {
		done += consume_minute(dir, minutes[i]->d_name, n - done, size);
		free(minutes[i]);
	}
	if (done != n)
		die("%zu elements, not %zu", done, n);
	print_us("consume", (double)(now() - start) / (double)n);
	free(minutes);
	close(dir);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 4 ? argv[1] : "";
	struct queue q = {.sync = strcmp(mode, "enqueue-sync") == 0};
	struct crowd crowd = {enter, add_part, &q, 0, 0};

	memset(block, 'x', sizeof(block));
	if (argc == 5 && strcmp(mode, "consume") == 0) {
		consume(argv[2], number(argv[3], COUNT_MAX), number(argv[4], SIZE_MAX_B));
		return 0;
	}
	if (argc != 6 || strncmp(mode, "enqueue", 7) != 0) {
		fputs("usage: dirq enqueue|enqueue-sync DIR N SIZE WRITERS |\n"
		      "       dirq consume DIR N SIZE\n",
			stderr);
		return 64;
	}
	q.path = argv[2];
	q.size = number(argv[4], SIZE_MAX_B);
	crowd.n = number(argv[3], COUNT_MAX);
	crowd.people = (int)number(argv[5], PEOPLE_MAX);
	print_us("enqueue", (double)crowd_run(&crowd) / (double)crowd.n);
	return 0;
}
