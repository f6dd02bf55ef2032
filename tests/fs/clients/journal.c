/* SPDX-License-Identifier: MIT */
/*
 * Clients that write down what they were told, for a test that kills the daemon
 * under them and looks afterwards whether it was true.
 *
 *	journal write DIR BOOK NAME [FIRST]   messages NAME-FIRST, NAME-FIRST+1, ...
 *	journal rename DIR BOOK NAME [FIRST]  the same by NAME-N.tmp and rename
 *	journal read DIR BOOK                 handles what it finds
 *	journal check DIR BOOK                the audit, below
 *	journal kill DIR BOOK LINES PID       SIGKILL to PID once BOOK has so many
 *
 * BOOK gets a line for each call that succeeded: "C NAME-N" for a close, "R"
 * for a rename, "D" for an unlink. A client ends with status 0 when the mount
 * is gone (ENOTCONN, ECONNABORTED); any other surprise is status 1 with a line.
 * Losing a message to somebody else (EBUSY, ENOENT, EAGAIN) is none.
 *
 * A message is "NAME-N LENGTH\n" and then LENGTH bytes made from N.
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BODY_MAX 70000

static int book;

static void end_if_gone(void)
{
	if (errno == ENOTCONN || errno == ECONNABORTED)
		exit(0);
}

static void fail(const char *what, const char *name)
{
	end_if_gone();
	err(1, "%s %s", what, name);
}

static void note(char what, const char *name)
{
	char line[300];
	int n = snprintf(line, sizeof(line), "%c %s\n", what, name);

	if (write(book, line, (size_t)n) != n)
		err(1, "the book");
}

/* Few bytes, pages, and more than one WRITE takes, in turn. */
static int length_of(int n)
{
	static const int lengths[] = {0, 17, 4000, 4096, 9000, 65000};

	return lengths[n % 6];
}

static int make(char *buf, const char *name, int n)
{
	int len = length_of(n);
	int head = sprintf(buf, "%s %d\n", name, len);

	for (int i = 0; i < len; i++)
		buf[head + i] = (char)('a' + (n + i) % 26);
	return head + len;
}

/* In pieces: a cut-off one would show. */
static void put_all(int fd, const char *buf, int len, const char *name)
{
	while (len > 0) {
		ssize_t n = write(fd, buf, (size_t)(len + 1) / 2);

		if (n < 0)
			fail("write", name);
		buf += n;
		len -= (int)n;
	}
}

static void put(const char *name, int n, bool renames)
{
	static char buf[BODY_MAX];
	char path[300];
	int fd, len = make(buf, name, n);

	snprintf(path, sizeof(path), "%s%s", name, renames ? ".tmp" : "");
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		fail("create", path);
	put_all(fd, buf, len, path);
	if (close(fd) < 0)
		fail("close", path);
	note('C', name);
	if (!renames)
		return;
	if (rename(path, name) < 0)
		fail("rename", path);
	note('R', name);
}

static void write_on(const char *prefix, int n, bool renames)
{
	char name[200];

	for (;; n++) {
		snprintf(name, sizeof(name), "%s-%d", prefix, n);
		put(name, n, renames);
	}
}

/* Reads the whole of PATH; -1 when it cannot be opened. */
static int slurp(const char *path, char *buf)
{
	int fd = open(path, O_RDONLY), len = 0;
	ssize_t n;

	if (fd < 0)
		return -1;
	while ((n = read(fd, buf + len, (size_t)(BODY_MAX - len))) > 0)
		len += (int)n;
	if (n < 0)
		fail("read", path);
	close(fd);
	return len;
}

/* The name inside when BUF is one whole message, else NULL. */
static const char *verify(char *buf, int len)
{
	static char want[BODY_MAX];
	char *newline = memchr(buf, '\n', (size_t)len), *blank, *dash;

	if (newline == NULL)
		return NULL;
	*newline = '\0';
	blank = strrchr(buf, ' ');
	if (blank == NULL)
		return NULL;
	*blank = '\0';
	dash = strrchr(buf, '-');
	if (dash == NULL || make(want, buf, atoi(dash + 1)) != len)
		return NULL;
	if (memcmp(want + (newline - buf) + 1, newline + 1,
		    (size_t)(len - (newline - buf) - 1)) != 0)
		return NULL;
	return buf;
}

static void handle(const char *path)
{
	static char buf[BODY_MAX];
	const char *name;
	int len = slurp(path, buf);

	if (len < 0) {
		if (errno == EBUSY || errno == ENOENT || errno == EAGAIN)
			return;
		fail("open", path);
	}
	name = verify(buf, len);
	if (name == NULL)
		errx(1, "%s is not whole: %d bytes", path, len);
	if (unlink(path) == 0)
		note('D', name);
	else if (errno != EBUSY && errno != ENOENT)
		fail("unlink", path);
}

static void read_on(void)
{
	for (;;) {
		DIR *d = opendir(".");
		struct dirent *e;

		if (d == NULL)
			fail("opendir", ".");
		while (errno = 0, (e = readdir(d)) != NULL) {
			if (e->d_name[0] != '.')
				handle(e->d_name);
		}
		if (errno != 0)
			fail("readdir", ".");
		closedir(d);
	}
}

/*
 * The audit: prints "M NAME" for each message in DIR, in its .inflight/, .dead/
 * and .outbox/, "d NAME" for each whole one in .drafts/, and fails when a
 * message is not whole. A draft may be anything.
 */
static void look(const char *dir, bool drafts)
{
	static char buf[BODY_MAX];
	char path[PATH_MAX];
	/* What is claimed is this process's to read by its own name. */
	const char *from = strcmp(dir, ".inflight") == 0 ? "." : dir;
	struct dirent *e;
	DIR *d = opendir(dir);

	if (d == NULL)
		err(1, "opendir %s", dir);
	while ((e = readdir(d)) != NULL) {
		const char *name;
		int len;

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", from, e->d_name);
		len = slurp(path, buf);
		if (len < 0 && errno == ENOENT)
			continue; /* it moved on; the caller looks again */
		if (len < 0)
			err(1, "open %s", path);
		name = verify(buf, len);
		if (name != NULL)
			printf("%c %s\n", drafts ? 'd' : 'M', name);
		else if (!drafts)
			errx(1, "%s is not whole: %d bytes", path, len);
	}
	closedir(d);
}

static void check(void)
{
	static const char *const dirs[] = {".peek", ".inflight", ".dead", ".outbox"};

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		look(dirs[i], false);
	look(".drafts", true);
}

/* A state, not a duration, says when: but at any moment of any call. */
static void kill_after(const char *path, int lines, pid_t pid)
{
	int fd = open(path, O_RDONLY), seen = 0;
	char buf[4096];

	if (fd < 0)
		err(1, "%s", path);
	while (seen < lines) {
		ssize_t n = read(fd, buf, sizeof(buf));

		if (n < 0)
			err(1, "%s", path);
		if (n == 0)
			usleep(100);
		for (ssize_t i = 0; i < n; i++)
			seen += buf[i] == '\n';
	}
	if (kill(pid, SIGKILL) < 0)
		err(1, "kill %d", (int)pid);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	int first = argc > 5 ? atoi(argv[5]) : 0;

	if (argc < 4)
		errx(2, "usage: journal write|rename|read|check|kill DIR BOOK ...");
	book = open(argv[3], O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (book < 0)
		err(1, "%s", argv[3]);
	if (strcmp(how, "kill") == 0 && argc > 5) {
		kill_after(argv[3], atoi(argv[4]), atoi(argv[5]));
		return 0;
	}
	if (chdir(argv[2]) < 0)
		fail("chdir", argv[2]);
	if (strcmp(how, "write") == 0 && argc > 4)
		write_on(argv[4], first, false);
	else if (strcmp(how, "rename") == 0 && argc > 4)
		write_on(argv[4], first, true);
	else if (strcmp(how, "read") == 0)
		read_on();
	else if (strcmp(how, "check") == 0)
		check();
	else
		errx(2, "what is '%s'?", how);
}
