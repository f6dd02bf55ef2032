/* SPDX-License-Identifier: MIT */
/*
 * odd_writer HOW PATH TEXT: writes TEXT and a newline to PATH in a way that no
 * shell does.
 *	mmap    through a mapping; the pages reach the file after its close()
 *	fork    half of it from a child, with the descriptor it inherited
 *	late    the child goes on writing after the parent closed
 *	exec    starts programs while it writes: their execve() closes its file
 *	bytes   one write for each byte
 *	exit    ends with status 3, without a close()
 *	never   creates, unlinks, and then writes: nobody is to get that
 */
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void put(int fd, const char *text, size_t len)
{
	if (write(fd, text, len) != (ssize_t)len)
		err(1, "write");
}

static void by_mmap(int fd, const char *text, size_t len)
{
	char *map;

	if (ftruncate(fd, (off_t)len) < 0)
		err(1, "ftruncate");
	map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		err(1, "mmap");
	close(fd);
	memcpy(map, text, len);
	munmap(map, len);
}

static void by_fork(int fd, const char *text, size_t len)
{
	size_t half = len / 2;

	put(fd, text, half);
	if (fork() == 0) {
		put(fd, text + half, len - half);
		_exit(0);
	}
	if (wait(NULL) < 0)
		err(1, "wait");
	close(fd);
}

static void by_late_child(int fd, const char *text, size_t len)
{
	size_t half = len / 2;
	pid_t child;
	int status;

	put(fd, text, half);
	child = fork();
	if (child == 0) {
		raise(SIGSTOP);
		put(fd, text + half, len - half);
		_exit(0);
	}
	if (waitpid(child, &status, WUNTRACED) < 0)
		err(1, "waitpid");
	close(fd);
	kill(child, SIGCONT);
	if (waitpid(child, &status, 0) < 0)
		err(1, "waitpid");
}

/* O_CLOEXEC: the FLUSH of the child comes in the midst of its execve(). */
static void by_exec(int fd, const char *text, size_t len)
{
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	for (size_t i = 0; i < len; i++) {
		put(fd, text + i, 1);
		if (fork() == 0) {
			execlp("true", "true", NULL);
			_exit(1);
		}
		if (wait(NULL) < 0)
			err(1, "wait");
	}
	close(fd);
}

static void by_bytes(int fd, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		put(fd, text + i, 1);
	close(fd);
}

int main(int argc, char **argv)
{
	char text[4096];
	size_t len;
	int fd;

	if (argc != 4)
		errx(2, "usage: odd_writer HOW PATH TEXT");
	len = (size_t)snprintf(text, sizeof(text), "%s\n", argv[3]);
	fd = open(argv[2], O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		err(1, "create %s", argv[2]);
	if (strcmp(argv[1], "mmap") == 0) {
		by_mmap(fd, text, len);
	} else if (strcmp(argv[1], "fork") == 0) {
		by_fork(fd, text, len);
	} else if (strcmp(argv[1], "late") == 0) {
		by_late_child(fd, text, len);
	} else if (strcmp(argv[1], "exec") == 0) {
		by_exec(fd, text, len);
	} else if (strcmp(argv[1], "bytes") == 0) {
		by_bytes(fd, text, len);
	} else {
		if (strcmp(argv[1], "never") == 0 && unlink(argv[2]) < 0)
			err(1, "unlink %s", argv[2]);
		put(fd, text, len);
		return 3;
	}
	return 0;
}
