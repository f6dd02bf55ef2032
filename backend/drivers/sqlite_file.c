/* SPDX-License-Identifier: MIT */
/*
 * The file of a queue, and the one beside it.
 *
 * PATH-lock has one byte for each mount, locked for as long as that mount
 * lives: the kernel drops the lock of a killed one, and two containers with
 * pid namespaces of their own see the same truth. Byte 0 is held while a
 * queue is being opened. A mount that has something for the others writes to
 * the file, so that their inotify tells them (sqlite_watch.c).
 *
 * The database is never opened here once it exists: closing any descriptor of
 * it would drop the POSIX locks that SQLite holds in this process.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "sqlite_int.h"

/* Where locks or shared memory do not work between machines. From statfs(2),
 * linux/magic.h, and the headers of the file systems outside the kernel. */
static const struct {
	uint32_t type;
	const char *name;
} networks[] = {
	{0x6969, "NFS"},
	{0x517b, "SMB"},
	{0xff534d42, "SMB"},
	{0xfe534d42, "SMB"},
	{0x01021997, "9P"},
	{0x00c36400, "Ceph"},
	{0x5346414f, "AFS"},
	{0x6b414653, "AFS"},
	{0x73757245, "Coda"},
	{0x65735546, "FUSE"},
	{0x0bd00bd0, "Lustre"},
	{0x01161970, "GFS2"},
	{0x7461636f, "OCFS2"},
	{0x47504653, "GPFS"},
	{0x786f4256, "VirtualBox shared folder"},
	{0xbacbacbc, "VMware shared folder"},
};

static int system_error(struct sq *s, const char *path)
{
	int err = errno;
	int out = -EIO;

	if (err == ENOENT || err == ENOTDIR)
		out = -ENOENT;
	else if (err == EACCES || err == EPERM || err == EROFS)
		out = -EACCES;
	else if (err == ENOSPC || err == EDQUOT)
		out = -ENOSPC;
	else if (err == ENAMETOOLONG || err == ELOOP)
		out = -EINVAL;
	return sq_say(s, out, "%s: %s", path, strerrordesc_np(err));
}

static int refuse_network(struct sq *s, const char *path)
{
	struct statfs fs;

	if (statfs(path, &fs) < 0)
		return system_error(s, path);
	for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++)
		if ((uint32_t)fs.f_type == networks[i].type)
			return sq_say(s, -EINVAL,
				"%s is on a network file system (%s), where"
				" an embedded queue is not safe",
				path, networks[i].name);
	return 0;
}

/* The name of a new file must survive a power cut as its content does. */
static int sync_dir(struct sq *s, const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = 0;

	if (fd < 0)
		return system_error(s, dir);
	if (fsync(fd) < 0)
		r = system_error(s, dir);
	close(fd);
	return r;
}

static int create_file(struct sq *s, const char *path, const char *dir)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno == EEXIST ? 0 : system_error(s, path);
	close(fd);
	return sync_dir(s, dir);
}

static int check_file(struct sq *s)
{
	struct stat st;

	if (stat(s->path, &st) < 0)
		return system_error(s, s->path);
	if (!S_ISREG(st.st_mode))
		return sq_say(s, -EINVAL, "%s is not a regular file", s->path);
	if (access(s->path, R_OK | W_OK) < 0)
		return system_error(s, s->path);
	return refuse_network(s, s->path); /* it may be a symlink's target */
}

int sq_file_find(struct sq *s, const char *source, bool create)
{
	char copy[PATH_MAX];
	const char *dir;
	int r;

	if (!*source || strlen(source) >= sizeof(copy))
		return sq_say(s, -EINVAL, "the path is empty or too long");
	dir = dirname(strcpy(copy, source));
	if (access(dir, F_OK) < 0)
		return sq_say(s, -ENOENT, "the directory %s does not exist", dir);
	r = refuse_network(s, dir);
	if (r == 0 && create)
		r = create_file(s, source, dir);
	if (r < 0)
		return r;
	s->path = realpath(source, NULL);
	return s->path ? check_file(s) : system_error(s, source);
}

char *sq_file_lock_path(const struct sq *s)
{
	char *p;

	return asprintf(&p, "%s-lock", s->path) < 0 ? NULL : p;
}

/* As accessible as the database itself, as SQLite does it for its files. */
static void adopt_mode(struct sq *s)
{
	struct stat db, lock;

	if (stat(s->path, &db) < 0 || fstat(s->lock_fd, &lock) < 0)
		return;
	if (geteuid() == 0 && (lock.st_uid != db.st_uid || lock.st_gid != db.st_gid))
		(void)fchown(s->lock_fd, db.st_uid, db.st_gid);
	if ((lock.st_mode & 0777) != (db.st_mode & 0777))
		(void)fchmod(s->lock_fd, db.st_mode & 0777);
}

int sq_file_lock_open(struct sq *s)
{
	char *path = sq_file_lock_path(s);
	int r = 0;

	if (!path)
		return sq_oom(s);
	s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock_fd < 0)
		r = system_error(s, path);
	else
		adopt_mode(s);
	free(path);
	return r;
}

static struct flock byte_of(int64_t n, short type)
{
	return (struct flock){
		.l_type = type, .l_whence = SEEK_SET, .l_start = n, .l_len = 1};
}

int sq_file_lock(struct sq *s, int64_t n)
{
	struct flock fl = byte_of(n, F_WRLCK);

	if (fcntl(s->lock_fd, F_OFD_SETLK, &fl) == 0)
		return 1;
	if (errno == EAGAIN || errno == EACCES)
		return 0;
	return system_error(s, "the lock file");
}

int sq_file_lock_wait(struct sq *s, int64_t n, int ms)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int r = sq_file_lock(s, n);

	for (; r == 0 && ms > 0; ms--) {
		(void)nanosleep(&pause, NULL);
		r = sq_file_lock(s, n);
	}
	if (r == 0)
		return sq_say(s, -EAGAIN, "another process is opening the queue");
	return r < 0 ? r : 0;
}

void sq_file_unlock(struct sq *s, int64_t n)
{
	struct flock fl = byte_of(n, F_UNLCK);

	(void)fcntl(s->lock_fd, F_OFD_SETLK, &fl);
}

bool sq_file_locked(struct sq *s, int64_t n)
{
	struct flock fl = byte_of(n, F_WRLCK);

	return fcntl(s->lock_fd, F_OFD_GETLK, &fl) == 0 && fl.l_type != F_UNLCK;
}

void sq_file_ring(struct sq *s)
{
	/* A bell that is not heard costs the others a poll later, no more. */
	if (pwrite(s->lock_fd, "\n", 1, 0) < 0)
		return;
}
