/* SPDX-License-Identifier: MIT */
/*
 * try CALL PATH...: makes one system call and prints "ok" or the name of its
 * errno. Tools hide which call failed, and how; this does not.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int opened(int fd)
{
	return fd < 0 ? -1 : close(fd);
}

/* Opens A and reads once from it. */
static int try_read(const char *a, int flags)
{
	char byte;
	int fd = open(a, O_RDONLY | flags);

	return fd < 0 || read(fd, &byte, 1) < 0 ? -1 : close(fd);
}

static int try_write(const char *a, int flags)
{
	int fd = open(a, flags, 0600);

	return fd < 0 || write(fd, "!", 1) < 0 ? -1 : close(fd);
}

static int try_open(const char *call, const char *a)
{
	if (strcmp(call, "open") == 0)
		return opened(open(a, O_RDONLY));
	if (strcmp(call, "read") == 0)
		return try_read(a, 0);
	if (strcmp(call, "read-nonblock") == 0)
		return try_read(a, O_NONBLOCK);
	if (strcmp(call, "open-write") == 0)
		return opened(open(a, O_WRONLY));
	if (strcmp(call, "open-append") == 0)
		return opened(open(a, O_WRONLY | O_APPEND));
	if (strcmp(call, "open-trunc") == 0)
		return opened(open(a, O_RDWR | O_TRUNC));
	if (strcmp(call, "write-rdwr") == 0)
		return try_write(a, O_RDWR);
	if (strcmp(call, "create") == 0)
		return try_write(a, O_WRONLY | O_CREAT);
	if (strcmp(call, "create-excl") == 0)
		return try_write(a, O_WRONLY | O_CREAT | O_EXCL);
	return -2;
}

static int try_path(const char *call, const char *a, const char *b)
{
	if (strcmp(call, "unlink") == 0)
		return unlink(a);
	if (strcmp(call, "rmdir") == 0)
		return rmdir(a);
	if (strcmp(call, "mkdir") == 0)
		return mkdir(a, 0700);
	if (strcmp(call, "mknod") == 0)
		return mkfifo(a, 0600);
	if (strcmp(call, "stat") == 0)
		return access(a, F_OK);
	if (strcmp(call, "truncate") == 0)
		return truncate(a, 0);
	if (strcmp(call, "chmod") == 0)
		return chmod(a, 0600);
	if (strcmp(call, "utimens") == 0)
		return utimensat(AT_FDCWD, a, NULL, 0);
	if (strcmp(call, "rename") == 0)
		return rename(a, b);
	if (strcmp(call, "rename-noreplace") == 0)
		return renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_NOREPLACE);
	if (strcmp(call, "link") == 0)
		return link(a, b);
	if (strcmp(call, "symlink") == 0)
		return symlink(a, b);
	return -2;
}

int main(int argc, char **argv)
{
	int rc = -2;

	if (argc >= 3)
		rc = try_open(argv[1], argv[2]);
	if (rc == -2 && argc >= 3)
		rc = try_path(argv[1], argv[2], argc > 3 ? argv[3] : "");
	if (rc == -2) {
		fprintf(stderr, "usage: try CALL PATH [PATH]\n");
		return 2;
	}
	puts(rc < 0 ? strerrorname_np(errno) : "ok");
	return rc < 0;
}
