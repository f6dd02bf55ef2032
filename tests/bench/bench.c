/* SPDX-License-Identifier: MIT */
/*
 * The clients of the benchmark: they make the calls that cat, rm, echo and an
 * inotify watcher make, without a shell, and print what one message took.
 *
 *	bench consume DIR N               list, then open, read, close, unlink
 *	bench enqueue DIR N SIZE WRITERS  create, write, close; WRITERS processes
 *	bench fdatasync DIR N SIZE        append and fdatasync, on that disk
 *	bench latency DIRA DIRB N         close() in DIRA till its event in DIRB,
 *	                                  and till a read of DIRB/.next returns
 *
 * One line for each figure: a name, microseconds. scripts/bench reads them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIZE_MAX_B  (1 << 20)
#define READ_SIZE   (128 << 10) /* as cat does */
#define WRITERS_MAX 16
#define PATIENCE_S  30 /* without any progress */
#define NS_PER_S    INT64_C(1000000000)

static char block[SIZE_MAX_B];

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	va_start(ap, fmt);
	fputs("bench: ", stderr);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, ": %s\n", strerror(saved));
	exit(1);
}

static int64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static void print_us(const char *name, double ns)
{
	printf("%s %.2f\n", name, ns / 1000);
}

static int open_dir(const char *path)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		die("%s", path);
	return dir;
}

/* ---- consume ---------------------------------------------------------------- */

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

static void consume_one(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		die("open %s", name);
	while ((n = read(fd, block, READ_SIZE)) > 0)
		continue;
	if (n < 0)
		die("read %s", name);
	if (close(fd) < 0 || unlinkat(dir, name, 0) < 0)
		die("unlink %s", name);
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

static void consume(const char *path, size_t n)
{
	struct names names = {0};
	int dir = open_dir(path);
	size_t done = 0;
	int64_t start;

	list_some(path, &names);
	start = now();
	while (done < n) {
		list_some(path, &names);
		for (size_t i = 0; i < names.n && done < n; i++, done++)
			consume_one(dir, names.v[i]);
	}
	print_us("consume", (double)(now() - start) / (double)n);
	names_clear(&names);
	free(names.v);
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

/* Writes its part once the other end of GATE is closed. */
__attribute__((noreturn)) static void writer(
	const char *path, size_t n, size_t size, int gate)
{
	int dir = open_dir(path);
	char name[32], byte;

	if (read(gate, &byte, 1) != 0)
		die("gate");
	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "w%d-%zu", (int)getpid(), i);
		enqueue_one(dir, name, size);
	}
	_exit(0);
}

static void fork_writers(
	const char *path, size_t n, size_t size, int writers, int gate[2])
{
	for (int i = 0; i < writers; i++) {
		size_t part = n / (size_t)writers + ((size_t)i < n % (size_t)writers);
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (pid == 0) {
			close(gate[1]);
			writer(path, part, size, gate[0]);
		}
	}
}

static void enqueue(const char *path, size_t n, size_t size, int writers)
{
	int gate[2], status, failed = 0;
	int64_t start;

	if (pipe(gate) < 0)
		die("pipe");
	fork_writers(path, n, size, writers, gate);
	start = now();
	close(gate[1]);
	for (int i = 0; i < writers; i++) {
		if (wait(&status) < 0 || status != 0)
			failed++;
	}
	if (failed > 0) {
		fprintf(stderr, "bench: %d writers failed\n", failed);
		exit(1);
	}
	print_us("enqueue", (double)(now() - start) / (double)n);
	close(gate[0]);
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

/* ---- latency ---------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static void print_spread(const char *name, int64_t *ns, size_t n)
{
	char line[64];

	qsort(ns, n, sizeof(*ns), by_value);
	snprintf(line, sizeof(line), "%s_median", name);
	print_us(line, (double)ns[n / 2]);
	snprintf(line, sizeof(line), "%s_p99", name);
	print_us(line, (double)ns[n * 99 / 100]);
}

/* Creates and writes a message, and returns when its close() was called. */
static int64_t send_one(int dir, size_t number)
{
	char name[32];
	int64_t at;
	int fd;

	snprintf(name, sizeof(name), "l%zu", number);
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, block, 100) != 100)
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

/* ---- which ------------------------------------------------------------------ */

static size_t number(const char *text, size_t max)
{
	char *end;
	size_t n = strtoul(text, &end, 10);

	if (*end != '\0' || n < 1 || n > max) {
		errno = EINVAL;
		die("%s", text);
	}
	return n;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	memset(block, 'x', sizeof(block));
	setvbuf(stdout, NULL, _IOLBF, 0); /* or children would print it again */
	if (strcmp(mode, "consume") == 0 && argc == 4)
		consume(argv[2], number(argv[3], 10000000));
	else if (strcmp(mode, "enqueue") == 0 && argc == 6)
		enqueue(argv[2], number(argv[3], 10000000), number(argv[4], SIZE_MAX_B),
			(int)number(argv[5], WRITERS_MAX));
	else if (strcmp(mode, "fdatasync") == 0 && argc == 5)
		sync_disk(
			argv[2], number(argv[3], 10000000), number(argv[4], SIZE_MAX_B));
	else if (strcmp(mode, "latency") == 0 && argc == 5)
		latency(argv[2], argv[3], number(argv[4], 1000000));
	else {
		fputs("usage: bench consume DIR N | enqueue DIR N SIZE WRITERS |\n"
		      "       fdatasync DIR N SIZE | latency DIRA DIRB N\n",
			stderr);
		return 64;
	}
	return 0;
}
