/* SPDX-License-Identifier: MIT */
/*
 * blocked PATH ROUNDS: in each round a child opens PATH for reading and reads;
 * once it sleeps in there it is killed, by SIGTERM and SIGKILL in turn. Prints
 * the median of how long it took to be gone, in microseconds.
 */
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void read_path(const char *path, int ready)
{
	char byte;
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		err(1, "open %s", path);
	if (write(ready, "", 1) != 1)
		err(1, "write");
	_exit(read(fd, &byte, 1) < 0 ? 4 : 5);
}

/* Whether PID sleeps. */
static int is_blocked(pid_t pid)
{
	char path[64], text[256] = "";
	FILE *f;
	char *state;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (f == NULL)
		return 0;
	state = fgets(text, sizeof(text), f);
	fclose(f);
	state = state != NULL ? strrchr(text, ')') : NULL;
	return state != NULL && (state[2] == 'S' || state[2] == 'D');
}

/* Asleep in a row of looks: it did not only wait for its turn. */
static void wait_blocked(pid_t pid)
{
	int64_t end = now_us() + 10 * 1000000;

	for (int row = 0; row < 20; row = is_blocked(pid) ? row + 1 : 0) {
		if (now_us() > end)
			errx(1, "the reader never blocked");
		usleep(500);
	}
}

static int64_t play(const char *path, int sig)
{
	int ready[2], status;
	int64_t start;
	char byte;
	pid_t child;

	if (pipe(ready) < 0 || (child = fork()) < 0)
		err(1, "pipe or fork");
	if (child == 0)
		read_path(path, ready[1]);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		errx(1, "the reader did not open %s", path);
	close(ready[0]);
	wait_blocked(child);
	start = now_us();
	kill(child, sig);
	if (waitpid(child, &status, 0) < 0)
		err(1, "waitpid");
	start = now_us() - start;
	if (!WIFSIGNALED(status))
		errx(1, "the reader ended with %#x, not by the signal", status);
	return start;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	int64_t took[101];
	int n;

	if (argc != 3 || (n = atoi(argv[2])) < 1 || n > 101)
		errx(2, "usage: blocked PATH ROUNDS");
	for (int i = 0; i < n; i++)
		took[i] = play(argv[1], i % 2 == 0 ? SIGTERM : SIGKILL);
	qsort(took, (size_t)n, sizeof(took[0]), compare);
	printf("%lld\n", (long long)took[n / 2]);
	return 0;
}
