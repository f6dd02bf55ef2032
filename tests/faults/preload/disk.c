/* SPDX-License-Identifier: MIT */
/*
 * A disk that is full from the n-th growth of a file on.
 *
 *	DISK_PREFIX=PATH    files whose path begins so
 *	DISK_FAIL_AT=N      the N-th call that may need room, from 1; 0 none
 *	DISK_ROOM=FILE      while it exists there is room again
 *	DISK_SAID=FILE      gets "failed N CALL NAME", and "counted N" at the end
 *
 * The first call that fails was given half of what it asked for, where it can.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))
#define FD_MAX     4096

static const char *prefix, *room;
static char *name_of[FD_MAX]; /* NULL: not one of ours */
static atomic_ulong counted;
static unsigned long fail_at;
static int said = -1;

__attribute__((constructor)) static void begin(void)
{
	const char *file = getenv("DISK_SAID"), *at = getenv("DISK_FAIL_AT");

	prefix = getenv("DISK_PREFIX");
	room = getenv("DISK_ROOM");
	if (!prefix || !room || !file || !at ||
		strcmp(program_invocation_short_name, "spoolfs") != 0)
		return;
	fail_at = strtoul(at, NULL, 10);
	said = REAL(open)(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

__attribute__((destructor)) static void end(void)
{
	if (said >= 0)
		dprintf(said, "counted %lu\n", atomic_load(&counted));
}

/* 0 there is room, 1 there is none, 2 there is some. */
static int is_full(const char *call, const char *name)
{
	unsigned long n = atomic_fetch_add(&counted, 1) + 1;

	if (!fail_at || n < fail_at || access(room, F_OK) == 0)
		return 0;
	dprintf(said, "failed %lu %s %s\n", n, call, name);
	errno = ENOSPC;
	return n == fail_at ? 2 : 1;
}

static const char *ours(int fd)
{
	return fd >= 0 && fd < FD_MAX ? name_of[fd] : NULL;
}

static void forget(int fd)
{
	if (fd < 0 || fd >= FD_MAX)
		return;
	free(name_of[fd]);
	name_of[fd] = NULL;
}

static bool is_ours(const char *path)
{
	return said >= 0 && strncmp(path, prefix, strlen(prefix)) == 0;
}

#define OPEN(name)                                                                 \
	int name(const char *path, int flags, ...)                                 \
	{                                                                          \
		mode_t mode = 0;                                                   \
		va_list ap;                                                        \
		int fd;                                                            \
                                                                                   \
		va_start(ap, flags);                                               \
		if (flags & (O_CREAT | O_TMPFILE))                                 \
			mode = va_arg(ap, mode_t);                                 \
		va_end(ap);                                                        \
		if (is_ours(path) && flags & O_CREAT && access(path, F_OK) != 0 && \
			is_full("open", path))                                     \
			return -1;                                                 \
		fd = REAL(name)(path, flags, mode);                                \
		forget(fd);                                                        \
		if (fd >= 0 && fd < FD_MAX && is_ours(path))                       \
			name_of[fd] = strdup(path);                                \
		return fd;                                                         \
	}
OPEN(open)
OPEN(open64)

int close(int fd)
{
	forget(fd);
	return REAL(close)(fd);
}

/* How much of N may be written: all, half, or -1. */
static ssize_t room_for(int fd, const char *call, size_t n)
{
	int full = ours(fd) ? is_full(call, ours(fd)) : 0;

	if (!full)
		return (ssize_t)n;
	return full == 2 && n > 1 ? (ssize_t)n / 2 : -1;
}

ssize_t write(int fd, const void *p, size_t n)
{
	ssize_t may = room_for(fd, "write", n);

	return may < 0 ? -1 : REAL(write)(fd, p, (size_t)may);
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
	ssize_t may = room_for(fd, "pwrite", n);

	return may < 0 ? -1 : REAL(pwrite)(fd, p, (size_t)may, at);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
	ssize_t may = room_for(fd, "pwrite", n);

	return may < 0 ? -1 : REAL(pwrite64)(fd, p, (size_t)may, at);
}

static bool grows(int fd, off_t len)
{
	struct stat st;

	return ours(fd) && fstat(fd, &st) == 0 && len > st.st_size;
}

int ftruncate(int fd, off_t len)
{
	return grows(fd, len) && is_full("ftruncate", ours(fd))
		       ? -1
		       : REAL(ftruncate)(fd, len);
}

int ftruncate64(int fd, off64_t len)
{
	return grows(fd, len) && is_full("ftruncate", ours(fd))
		       ? -1
		       : REAL(ftruncate64)(fd, len);
}

int fallocate(int fd, int mode, off_t at, off_t len)
{
	return ours(fd) && is_full("fallocate", ours(fd))
		       ? -1
		       : REAL(fallocate)(fd, mode, at, len);
}

int posix_fallocate(int fd, off_t at, off_t len)
{
	return ours(fd) && is_full("fallocate", ours(fd))
		       ? ENOSPC
		       : REAL(posix_fallocate)(fd, at, len);
}
