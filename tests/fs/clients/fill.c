/* SPDX-License-Identifier: MIT */
/*
 * fill DIR PREFIX COUNT [WRITERS]: creates PREFIX-000001 and so on in DIR, each
 * holding its own name and a newline, the work shared by WRITERS processes (8:
 * their closes are committed together). Fails when any of them failed.
 */
#include <err.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void put(const char *dir, const char *prefix, int n)
{
	char path[PATH_MAX], text[256];
	int fd, len = snprintf(text, sizeof(text), "%s-%06d\n", prefix, n);

	snprintf(path, sizeof(path), "%s/%.*s", dir, len - 1, text);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		err(1, "create %s", path);
	if (write(fd, text, (size_t)len) != len)
		err(1, "write %s", path);
	if (close(fd) < 0)
		err(1, "close %s", path);
}

int main(int argc, char **argv)
{
	int status, failed = 0, count, writers;

	if (argc < 4)
		errx(2, "usage: fill DIR PREFIX COUNT [WRITERS]");
	count = atoi(argv[3]);
	writers = argc > 4 ? atoi(argv[4]) : 8;
	for (int w = 0; w < writers; w++) {
		if (fork() != 0)
			continue;
		for (int n = w + 1; n <= count; n += writers)
			put(argv[1], argv[2], n);
		return 0;
	}
	while (wait(&status) > 0)
		failed |= status;
	return failed != 0;
}
