/* SPDX-License-Identifier: MIT */
/*
 * What the system may do to any call: in so many of a hundred it is interrupted,
 * finds nothing where it must not wait, or does only a part.
 *
 *	BROKEN_PERCENT=N    of the calls of spoolfs and its announcer
 *	BROKEN_SAID=FILE    gets "interrupted N", "again N" and "short N" at the end
 *
 * Only what can really happen: no part of a datum that is whole or not there
 * (eventfd, timerfd, signalfd, inotify, the FUSE device), no EAGAIN from a
 * descriptor that waits, and what is written to the FUSE device is left alone.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))
#define FUSE_MAJOR 10
#define FUSE_MINOR 229

static unsigned percent;
static const char *said;
static atomic_ulong interrupted, again, shortened;
static _Thread_local uint64_t state;

__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv("BROKEN_PERCENT");

	said = getenv("BROKEN_SAID");
	if (text && said && strncmp(program_invocation_short_name, "spoolfs", 7) == 0)
		percent = (unsigned)atoi(text);
}

__attribute__((destructor)) static void end(void)
{
	FILE *f = percent ? fopen(said, "a") : NULL;

	percent = 0;
	if (!f)
		return;
	fprintf(f, "interrupted %lu\nagain %lu\nshort %lu\n", interrupted, again,
		shortened);
	fclose(f);
}

/* splitmix64 */
static unsigned pick(unsigned below)
{
	uint64_t z;

	if (!state && getrandom(&state, sizeof(state), 0) < 0)
		abort();
	z = state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (unsigned)((z ^ z >> 31) % below);
}

static bool strikes(void)
{
	return percent && pick(100) < percent;
}

static bool is_kind(int fd, mode_t one, mode_t other)
{
	struct stat st;

	return fstat(fd, &st) == 0 &&
	       ((st.st_mode & S_IFMT) == one || (st.st_mode & S_IFMT) == other);
}

/* Whether this call is to fail; errno is set then. */
static bool fails(int fd, bool writes)
{
	int flags;

	if (!strikes())
		return false;
	flags = fcntl(fd, F_GETFL);
	/* An eventfd that cannot take 1 more has been told very often. */
	if (writes && !is_kind(fd, S_IFIFO, S_IFSOCK))
		flags = 0;
	if (flags >= 0 && flags & O_NONBLOCK && pick(2)) {
		atomic_fetch_add(&again, 1);
		errno = EAGAIN;
	} else {
		atomic_fetch_add(&interrupted, 1);
		errno = EINTR;
	}
	return true;
}

static bool interrupts(void)
{
	if (!strikes())
		return false;
	atomic_fetch_add(&interrupted, 1);
	errno = EINTR;
	return true;
}

static bool is_fuse(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) &&
	       st.st_rdev == makedev(FUSE_MAJOR, FUSE_MINOR);
}

static size_t part(int fd, size_t n)
{
	if (n < 2 || !strikes())
		return n;
	if (!is_kind(fd, S_IFIFO, S_IFSOCK) && !is_kind(fd, S_IFREG, S_IFREG))
		return n;
	atomic_fetch_add(&shortened, 1);
	return 1 + pick((unsigned)(n > 65536 ? 65536 : n) - 1);
}

/* A file of a local disk is not interrupted; it may give, and take, a part. */
static bool is_file(int fd)
{
	return is_kind(fd, S_IFREG, S_IFREG);
}

ssize_t read(int fd, void *p, size_t n)
{
	return !is_file(fd) && fails(fd, false) ? -1 : REAL(read)(fd, p, part(fd, n));
}

ssize_t write(int fd, const void *p, size_t n)
{
	if (percent && is_fuse(fd))
		return REAL(write)(fd, p, n);
	return !is_file(fd) && fails(fd, true) ? -1 : REAL(write)(fd, p, part(fd, n));
}

ssize_t readv(int fd, const struct iovec *v, int n)
{
	return fails(fd, false) ? -1 : REAL(readv)(fd, v, n);
}

ssize_t writev(int fd, const struct iovec *v, int n)
{
	if (percent && is_fuse(fd))
		return REAL(writev)(fd, v, n);
	return fails(fd, true) ? -1 : REAL(writev)(fd, v, n);
}

ssize_t pread(int fd, void *p, size_t n, off_t at)
{
	return interrupts() ? -1 : REAL(pread)(fd, p, part(fd, n), at);
}

ssize_t pread64(int fd, void *p, size_t n, off64_t at)
{
	return interrupts() ? -1 : REAL(pread64)(fd, p, part(fd, n), at);
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
	return REAL(pwrite)(fd, p, part(fd, n), at);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
	return interrupts() ? -1 : REAL(pwrite64)(fd, p, part(fd, n), at);
}

ssize_t recv(int fd, void *p, size_t n, int flags)
{
	return fails(fd, false) ? -1 : REAL(recv)(fd, p, part(fd, n), flags);
}

ssize_t send(int fd, const void *p, size_t n, int flags)
{
	return fails(fd, true) ? -1 : REAL(send)(fd, p, part(fd, n), flags);
}

int accept4(int fd, struct sockaddr *a, socklen_t *len, int flags)
{
	return fails(fd, false) ? -1 : REAL(accept4)(fd, a, len, flags);
}

int epoll_wait(int fd, struct epoll_event *events, int n, int timeout)
{
	return interrupts() ? -1 : REAL(epoll_wait)(fd, events, n, timeout);
}

int poll(struct pollfd *p, nfds_t n, int timeout)
{
	return interrupts() ? -1 : REAL(poll)(p, n, timeout);
}

int ppoll(struct pollfd *p, nfds_t n, const struct timespec *t, const sigset_t *mask)
{
	return interrupts() ? -1 : REAL(ppoll)(p, n, t, mask);
}

int nanosleep(const struct timespec *t, struct timespec *left)
{
	if (!interrupts())
		return REAL(nanosleep)(t, left);
	if (left)
		*left = *t;
	return -1;
}

pid_t waitpid(pid_t pid, int *status, int options)
{
	return !(options & WNOHANG) && interrupts() ? -1
						    : REAL(waitpid)(pid, status, options);
}
