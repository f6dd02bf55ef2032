/* SPDX-License-Identifier: MIT */
/*
 * pace DIR COUNT: handles COUNT messages of DIR, each listed, opened, read,
 * closed and removed by this one process; prints the microseconds it took.
 * Fails when DIR stays empty for ten seconds.
 */
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void handle(const char *name)
{
	char buf[4096];
	int fd = open(name, O_RDONLY);

	if (fd < 0)
		err(1, "open %s", name);
	if (read(fd, buf, sizeof(buf)) < 1)
		err(1, "read %s", name);
	close(fd);
	if (unlink(name) < 0)
		err(1, "unlink %s", name);
}

static int pass(int left)
{
	DIR *d = opendir(".");
	struct dirent *e;
	int done = 0;

	if (d == NULL)
		err(1, "opendir");
	while (done < left && (e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		handle(e->d_name);
		done++;
	}
	closedir(d);
	return done;
}

int main(int argc, char **argv)
{
	int64_t start = now_us(), last = start;
	int left;

	if (argc != 3)
		errx(2, "usage: pace DIR COUNT");
	if (chdir(argv[1]) < 0)
		err(1, "%s", argv[1]);
	for (left = atoi(argv[2]); left > 0;) {
		int n = pass(left);

		left -= n;
		if (n > 0)
			last = now_us();
		else if (now_us() - last > 10 * 1000000)
			errx(1, "%d messages did not come", left);
	}
	printf("%lld\n", (long long)(now_us() - start));
	return 0;
}
