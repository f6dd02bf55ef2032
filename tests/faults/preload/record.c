/* SPDX-License-Identifier: MIT */
/*
 * Writes down what is done to files, so that a test can make of it what a power
 * cut might have left.
 *
 *	RECORD_PREFIX=PATH  of the files whose path begins so, and of the directory
 *	                    that they are in
 *	RECORD_LOG=FILE     appended to, by any number of processes
 *
 * A record is a struct head, then the bytes of a name or of what was written. A
 * write is noted before it is made, a sync at its beginning and at its end: so
 * nothing is noted as durable that is not.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))
#define FD_MAX     4096

struct head {
	uint32_t op; /* a letter, see cut.py */
	uint32_t tag;
	uint64_t ino, at, len; /* len: of what was written; the bytes follow unless Z */
	uint64_t follows;
};

static const char *prefix;
static size_t dir_len;
static int record_log = -1;
static uint64_t inode_of[FD_MAX]; /* 0: not one of ours */
static uint32_t tags;

__attribute__((constructor)) static void begin(void)
{
	const char *file = getenv("RECORD_LOG");

	prefix = getenv("RECORD_PREFIX");
	if (!prefix || !file)
		return;
	dir_len = (size_t)(strrchr(prefix, '/') - prefix);
	record_log = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void note(char op, uint32_t tag, uint64_t ino, uint64_t at, uint64_t len,
	const void *bytes, size_t n)
{
	struct head h = {(uint32_t)op, tag, ino, at, len, n};
	struct iovec iov[2] = {{&h, sizeof(h)}, {(void *)bytes, n}};
	int err = errno;

	if (writev(record_log, iov, 2) != (ssize_t)(sizeof(h) + n))
		abort();
	errno = err;
}

static bool is_ours(const char *path)
{
	if (record_log < 0)
		return false;
	return strncmp(path, prefix, strlen(prefix)) == 0 ||
	       (strncmp(path, prefix, dir_len) == 0 && !path[dir_len]);
}

static void opened(int fd, const char *path)
{
	struct stat st;

	if (fd < 0 || fd >= FD_MAX)
		return;
	inode_of[fd] = 0;
	if (!is_ours(path) || fstat(fd, &st) < 0)
		return;
	inode_of[fd] = st.st_ino;
	note('O', S_ISDIR(st.st_mode), st.st_ino, 0, 0, path, strlen(path));
}

#define OPEN(name)                                  \
	int name(const char *path, int flags, ...)  \
	{                                           \
		mode_t mode = 0;                    \
		va_list ap;                         \
		int fd;                             \
                                                    \
		va_start(ap, flags);                \
		if (flags & (O_CREAT | O_TMPFILE))  \
			mode = va_arg(ap, mode_t);  \
		va_end(ap);                         \
		fd = REAL(name)(path, flags, mode); \
		opened(fd, path);                   \
		return fd;                          \
	}
OPEN(open)
OPEN(open64)

static uint64_t ours(int fd)
{
	return fd >= 0 && fd < FD_MAX ? inode_of[fd] : 0;
}

int close(int fd)
{
	if (fd >= 0 && fd < FD_MAX)
		inode_of[fd] = 0;
	return REAL(close)(fd);
}

static void note_write(int fd, const char *p, size_t n, off_t at)
{
	bool zeros = n > 0 && !p[0] && memcmp(p, p + 1, n - 1) == 0;

	if (ours(fd))
		note(zeros ? 'Z' : 'W', 0, ours(fd), (uint64_t)at, n, p, zeros ? 0 : n);
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
	note_write(fd, p, n, at);
	return REAL(pwrite)(fd, p, n, at);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
	note_write(fd, p, n, at);
	return REAL(pwrite64)(fd, p, n, at);
}

ssize_t write(int fd, const void *p, size_t n)
{
	if (ours(fd))
		note_write(fd, p, n, lseek(fd, 0, SEEK_CUR));
	return REAL(write)(fd, p, n);
}

int ftruncate(int fd, off_t len)
{
	if (ours(fd))
		note('T', 0, ours(fd), 0, (uint64_t)len, NULL, 0);
	return REAL(ftruncate)(fd, len);
}

int ftruncate64(int fd, off64_t len)
{
	if (ours(fd))
		note('T', 0, ours(fd), 0, (uint64_t)len, NULL, 0);
	return REAL(ftruncate64)(fd, len);
}

static int synced(int fd, int (*real)(int))
{
	uint32_t tag = __atomic_add_fetch(&tags, 1, __ATOMIC_RELAXED) ^ (uint32_t)getpid()
										<< 16;
	int r;

	if (!ours(fd))
		return real(fd);
	note('S', tag, ours(fd), 0, 0, NULL, 0);
	r = real(fd);
	if (r == 0)
		note('E', tag, ours(fd), 0, 0, NULL, 0);
	return r;
}

int fsync(int fd)
{
	return synced(fd, REAL(fsync));
}

int fdatasync(int fd)
{
	return synced(fd, REAL(fdatasync));
}

int unlink(const char *path)
{
	if (is_ours(path))
		note('U', 0, 0, 0, 0, path, strlen(path));
	return REAL(unlink)(path);
}

/* Nothing of these is known to the reader of the record: then it must learn. */
int rename(const char *from, const char *to)
{
	if (is_ours(from) || is_ours(to))
		abort();
	return REAL(rename)(from, to);
}

int fallocate(int fd, int mode, off_t at, off_t len)
{
	if (ours(fd))
		abort();
	return REAL(fallocate)(fd, mode, at, len);
}

int posix_fallocate(int fd, off_t at, off_t len)
{
	if (ours(fd))
		abort();
	return REAL(posix_fallocate)(fd, at, len);
}
