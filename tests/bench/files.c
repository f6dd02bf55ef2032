/* SPDX-License-Identifier: MIT */
/*
 * The calls that ls, cat, rm and echo make on a directory of messages, without a
 * shell. DIR is a mount of spoolfs, of nullfs, or an ordinary directory.
 *
 *	files consume DIR N               list, then open, read, close, unlink
 *	files consume-sync DIR N          and have each deletion confirmed
 *	files enqueue DIR N SIZE WRITERS  create, write, close; WRITERS processes
 *	files take DIR N CONSUMERS        names from DIR/.next, then as consume
 *	files compete DIR N CONSUMERS     all list, and pass over what is taken
 *	files fdatasync DIR N SIZE        append and fdatasync, on that disk
 *
 * Consuming ends when every deletion is confirmed: where DIR has a .control, its
 * fsync is part of the time.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "crowd.h"

#define READ_SIZE (128 << 10) /* as cat does */

static char block[SIZE_MAX_B];

static int open_dir(const char *path)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		die("%s", path);
	return dir;
}

/* ---- names ------------------------------------------------------------------ */

struct names {
	char **v;
	size_t n, cap;
};

static void names_add(struct names *names, const char *name)
{
	if (names->n == names->cap) {
		names->cap = names->cap > 0 ? 2 * names->cap : 1024;
		names->v = realloc(names->v, names->cap * sizeof(*names->v));
	}
	if (names->v == NULL || (names->v[names->n] = strdup(name)) == NULL)
		die("names");
	names->n++;
}

static void names_clear(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->v[i]);
	names->n = 0;
}

static void list(const char *path, struct names *names)
{
	DIR *d = opendir(path);
	struct dirent *e;

	if (d == NULL)
		die("%s", path);
	while ((e = readdir(d)) != NULL) {
		if (e->d_name[0] != '.')
			names_add(names, e->d_name);
	}
	closedir(d);
}

/* Lists until something is there, for a bounded time. */
static void list_some(const char *path, struct names *names)
{
	int64_t limit = now() + PATIENCE_S * NS_PER_S;

	names_clear(names);
	for (list(path, names); names->n == 0; list(path, names)) {
		if (now() > limit) {
			errno = ETIMEDOUT;
			die("%s: nothing there", path);
		}
		poll(NULL, 0, 1);
	}
}

/* ---- consume ---------------------------------------------------------------- */

/* False when another one has it, where that MAY_BE. */
static bool consume_one(int dir, const char *name, bool may_be)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0 && may_be && (errno == EBUSY || errno == ENOENT))
		return false;
	if (fd < 0)
		die("open %s", name);
	while ((n = read(fd, block, READ_SIZE)) > 0)
		continue;
	if (n < 0)
		die("read %s", name);
	if (close(fd) < 0 || unlinkat(dir, name, 0) < 0)
		die("unlink %s", name);
	return true;
}

/* What is asked for confirmations, or -1. */
static int open_control(int dir)
{
	return openat(dir, ".control", O_RDONLY | O_CLOEXEC);
}

static void confirm(int control)
{
	if (control >= 0 && fsync(control) < 0)
		die("fsync of .control");
}

static void consume(const char *path, size_t n, bool each)
{
	struct names names = {0};
	int dir = open_dir(path), control = open_control(dir);
	size_t done = 0;
	int64_t start;

	list_some(path, &names);
	start = now();
	while (done < n) {
		list_some(path, &names);
		for (size_t i = 0; i < names.n && done < n; i++, done++) {
			consume_one(dir, names.v[i], false);
			if (each)
				confirm(control);
		}
	}
	confirm(control);
	print_us("consume", (double)(now() - start) / (double)n);
	names_clear(&names);
	free(names.v);
	close(control);
	close(dir);
}

/* ---- several consumers ------------------------------------------------------ */

struct place {
	const char *path;
	size_t size;
	atomic_long *left; /* messages, shared by all; below 0 at the end */
	int dir;           /* each one's own */
};

static void *enter(struct person *p)
{
	struct place *place = p->arg;

	place->dir = open_dir(place->path);
	return place;
}

static void take(struct person *p, void *prepared)
{
	struct place *place = prepared;
	char name[NAME_MAX + 2];

	for (size_t i = 0; i < p->part; i++) {
		int fd = openat(place->dir, ".next", O_RDONLY | O_CLOEXEC);
		ssize_t len = fd < 0 ? -1 : read(fd, name, sizeof(name) - 1);

		if (len < 2 || name[len - 1] != '\n')
			die("read .next");
		close(fd);
		name[len - 1] = '\0';
		consume_one(place->dir, name, false);
	}
}

static void compete(struct person *p, void *prepared)
{
	struct place *place = prepared;
	struct names names = {0};
	int64_t limit = now() + PATIENCE_S * NS_PER_S;

	(void)p;
	while (atomic_load(place->left) > 0 && now() < limit) {
		names_clear(&names);
		list(place->path, &names);
		for (size_t i = 0; i < names.n && atomic_load(place->left) > 0; i++) {
			if (!consume_one(place->dir, names.v[i], true))
				continue;
			atomic_fetch_sub(place->left, 1);
			limit = now() + PATIENCE_S * NS_PER_S;
		}
	}
	if (atomic_load(place->left) > 0)
		die("no progress");
}

/* Who competes may take one more: DIR must have N + CONSUMERS. */
static void consume_crowd(
	const char *path, size_t n, int consumers, void (*work)(struct person *, void *))
{
	struct place place = {.path = path};
	struct crowd crowd = {enter, work, &place, n, consumers};
	int dir = open_dir(path), control = open_control(dir);
	int64_t took, start;

	place.left = mmap(NULL, sizeof(*place.left), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (place.left == MAP_FAILED)
		die("mmap");
	atomic_init(place.left, (long)n);
	took = crowd_run(&crowd);
	start = now();
	confirm(control);
	took += now() - start;
	print_us(work == take ? "take" : "compete", (double)took / (double)n);
	close(control);
	close(dir);
}

/* ---- enqueue ---------------------------------------------------------------- */

static void enqueue_one(int dir, const char *name, size_t size)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		die("create %s", name);
	if (write(fd, block, size) != (ssize_t)size)
		die("write %s", name);
	if (close(fd) < 0)
		die("close %s", name);
}

static void write_part(struct person *p, void *prepared)
{
	struct place *place = prepared;
	char name[32];

	for (size_t i = 0; i < p->part; i++) {
		snprintf(name, sizeof(name), "w%d-%zu", (int)getpid(), i);
		enqueue_one(place->dir, name, place->size);
	}
}

static void enqueue(const char *path, size_t n, size_t size, int writers)
{
	struct place place = {.path = path, .size = size};
	struct crowd crowd = {enter, write_part, &place, n, writers};

	print_us("enqueue", (double)crowd_run(&crowd) / (double)n);
}

/* ---- fdatasync -------------------------------------------------------------- */

static void sync_disk(const char *path, size_t n, size_t size)
{
	int dir = open_dir(path);
	int fd = openat(dir, "bench.fdatasync",
		O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	int64_t start = now();

	if (fd < 0)
		die("%s/bench.fdatasync", path);
	for (size_t i = 0; i < n; i++) {
		if (write(fd, block, size) != (ssize_t)size || fdatasync(fd) < 0)
			die("fdatasync");
	}
	print_us("fdatasync", (double)(now() - start) / (double)n);
	close(fd);
	unlinkat(dir, "bench.fdatasync", 0);
	close(dir);
}

/* ---- which ------------------------------------------------------------------ */

static int usage(void)
{
	fputs("usage: files consume|consume-sync DIR N | take|compete DIR N CONSUMERS |\n"
	      "       enqueue DIR N SIZE WRITERS | fdatasync DIR N SIZE\n",
		stderr);
	return 64;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	size_t n = argc > 3 ? number(argv[3], COUNT_MAX) : 0;

	memset(block, 'x', sizeof(block));
	if (strcmp(mode, "consume") == 0 && argc == 4)
		consume(argv[2], n, false);
	else if (strcmp(mode, "consume-sync") == 0 && argc == 4)
		consume(argv[2], n, true);
	else if (strcmp(mode, "take") == 0 && argc == 5)
		consume_crowd(argv[2], n, (int)number(argv[4], PEOPLE_MAX), take);
	else if (strcmp(mode, "compete") == 0 && argc == 5)
		consume_crowd(argv[2], n, (int)number(argv[4], PEOPLE_MAX), compete);
	else if (strcmp(mode, "enqueue") == 0 && argc == 6)
		enqueue(argv[2], n, number(argv[4], SIZE_MAX_B),
			(int)number(argv[5], PEOPLE_MAX));
	else if (strcmp(mode, "fdatasync") == 0 && argc == 5)
		sync_disk(argv[2], n, number(argv[4], SIZE_MAX_B));
	else
		return usage();
	return 0;
}
