/* SPDX-License-Identifier: MIT */
/*
 * cutoff DIR ROUNDS: in each round a child creates a file in DIR, writes half of
 * its message and is killed, by SIGTERM and SIGKILL in turn. In every third
 * round it is killed while it writes on and on, at no chosen moment.
 */
#include <err.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void write_half(const char *path, int ready, int on_and_on)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	if (fd < 0)
		err(1, "create %s", path);
	if (write(fd, "half of it", 10) != 10 || write(ready, "", 1) != 1)
		err(1, "write");
	while (on_and_on && write(fd, " and more", 9) == 9)
		;
	for (;;)
		pause();
}

static void play(const char *dir, int round)
{
	char path[PATH_MAX], byte;
	int ready[2], status, sig = round % 2 == 0 ? SIGTERM : SIGKILL;
	pid_t child;

	snprintf(path, sizeof(path), "%s/cut-%04d", dir, round);
	if (pipe(ready) < 0 || (child = fork()) < 0)
		err(1, "pipe or fork");
	if (child == 0)
		write_half(path, ready[1], round % 3 == 0);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		errx(1, "the writer of %s did not get that far", path);
	close(ready[0]);
	kill(child, sig);
	if (waitpid(child, &status, 0) < 0)
		err(1, "waitpid");
	if (!WIFSIGNALED(status) || WTERMSIG(status) != sig)
		errx(1, "the writer of %s ended with %#x", path, status);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		errx(2, "usage: cutoff DIR ROUNDS");
	for (int i = 0; i < atoi(argv[2]); i++)
		play(argv[1], i);
	return 0;
}
