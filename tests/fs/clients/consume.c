/* SPDX-License-Identifier: MIT */
/*
 * consume [-f] DIR OUT: a worker that is one program. Lists DIR, opens and reads
 * each message, appends its bytes to OUT, removes it; ends when a listing showed
 * nothing. -f: a child of its own reads each message, the parent removes it.
 * Losing a message to another worker (EBUSY, ENOENT) is no error; all else is.
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool lost(void)
{
	return errno == EBUSY || errno == ENOENT;
}

/* One whole write: other workers append to the same file. */
static void copy(int in, int out)
{
	char buf[8192];
	ssize_t n = read(in, buf, sizeof(buf));

	if (n < 0)
		err(1, "read");
	if (write(out, buf, (size_t)n) != n)
		err(1, "write");
}

static bool read_one(const char *name, int out)
{
	int in = open(name, O_RDONLY);

	if (in < 0) {
		if (!lost())
			err(1, "open %s", name);
		return false;
	}
	copy(in, out);
	close(in);
	return true;
}

static bool read_forked(const char *name, int out)
{
	int status;
	pid_t child = fork();

	if (child < 0)
		err(1, "fork");
	if (child == 0)
		_exit(read_one(name, out) ? 0 : 3);
	if (waitpid(child, &status, 0) < 0)
		err(1, "waitpid");
	if (status != 0 && WEXITSTATUS(status) != 3)
		errx(1, "a reader ended with %#x", status);
	return status == 0;
}

static int pass(const char *dir, int out, bool forked)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int seen = 0;

	if (d == NULL)
		err(1, "opendir %s", dir);
	while ((e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		seen++;
		if (forked ? read_forked(e->d_name, out) : read_one(e->d_name, out)) {
			if (unlink(e->d_name) < 0)
				err(1, "unlink %s", e->d_name);
		}
	}
	closedir(d);
	return seen;
}

int main(int argc, char **argv)
{
	bool forked = argc > 1 && strcmp(argv[1], "-f") == 0;
	int out;

	argc -= forked;
	argv += forked;
	if (argc != 3)
		errx(2, "usage: consume [-f] DIR OUT");
	out = open(argv[2], O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (out < 0 || chdir(argv[1]) < 0)
		err(1, "%s or %s", argv[2], argv[1]);
	while (pass(".", out, forked) > 0)
		;
	return 0;
}
