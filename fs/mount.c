/* SPDX-License-Identifier: MIT */
/* The mount point before it is mounted: what is wrong with it, what lies in it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs.h"

/* The type of what is mounted at PATH last, "" when nothing is. */
static void mounted_type(const char *path, char *type, size_t len)
{
	FILE *f = setmntent("/proc/self/mounts", "r");
	struct mntent *m;

	type[0] = '\0';
	while (f && (m = getmntent(f)))
		if (!strcmp(m->mnt_dir, path))
			snprintf(type, len, "%s", m->mnt_type);
	if (f)
		endmntent(f);
}

static int run(char *const argv[])
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		execvp(argv[0], argv);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, &status, 0);
	return status;
}

/* A daemon that was killed leaves a mount that answers ENOTCONN. */
static int free_stale(const char *path)
{
	char *const argv[] = {(char *)"fusermount3", (char *)"-u", (char *)"-z",
		(char *)"-q", (char *)"--", (char *)path, NULL};

	log_info("mount", "freeing the stale mount of a daemon that was killed path=%s",
		path);
	if (!umount2(path, MNT_DETACH))
		return 0;
	return run(argv) ? -ENOTCONN : 0;
}

/* The absolute path of a mount point whose last part may not answer. */
static char *absolute(const char *path)
{
	char *real = realpath(path, NULL), *copy, *slash, *dir, *out = NULL;

	if (real || (errno != ENOTCONN && errno != EIO))
		return real;
	copy = strdup(path);
	if (!copy)
		return NULL;
	while (strlen(copy) > 1 && copy[strlen(copy) - 1] == '/')
		copy[strlen(copy) - 1] = '\0';
	slash = strrchr(copy, '/');
	if (slash)
		*slash = '\0';
	dir = realpath(!slash ? "." : *copy ? copy : "/", NULL);
	if (dir && asprintf(&out, "%s/%s", dir, slash ? slash + 1 : copy) < 0)
		out = NULL;
	free(dir);
	free(copy);
	return out;
}

static bool is_plain(int dir, const char *name)
{
	struct stat st;

	return !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode);
}

static int is_name(const struct dirent *de)
{
	return strcmp(de->d_name, ".") && strcmp(de->d_name, "..");
}

/* The number of entries, and whether all of them are plain files. */
static int count_entries(const char *path, bool *plain)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent **names = NULL;
	int n = dir < 0 ? -1 : scandirat(dir, ".", &names, is_name, NULL);
	int err = errno;

	*plain = true;
	for (int i = 0; i < n; i++) {
		*plain &= is_plain(dir, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	if (dir >= 0)
		close(dir);
	return n < 0 ? -err : n;
}

static int check_empty(const struct fs *fs, char *err, size_t err_len)
{
	bool plain;
	int n = count_entries(fs->mountpoint, &plain);

	if (n < 0) {
		snprintf(err, err_len, "%s: %s", fs->mountpoint, strerror(-n));
		return n;
	}
	if (!n || (fs->cfg.adopt && plain))
		return 0;
	snprintf(err, err_len,
		fs->cfg.adopt ? "%s: holds more than plain files; adopt takes these only"
			      : "%s: not empty (-o adopt enqueues the files in it)",
		fs->mountpoint);
	return -ENOTEMPTY;
}

int mount_prepare(struct fs *fs, char *err, size_t err_len)
{
	char type[64];
	struct statvfs vfs;
	struct stat st;

	fs->mountpoint = absolute(fs->cfg.mountpoint);
	if (!fs->mountpoint) {
		snprintf(err, err_len, "%s: %s", fs->cfg.mountpoint, strerror(errno));
		return -errno;
	}
	/* Attributes may be cached still: statfs(2) always asks. */
	if (statvfs(fs->mountpoint, &vfs) && errno == ENOTCONN &&
		free_stale(fs->mountpoint)) {
		snprintf(err, err_len, "%s: a dead mount is in the way", fs->mountpoint);
		return -ENOTCONN;
	}
	if (stat(fs->mountpoint, &st) || !S_ISDIR(st.st_mode)) {
		snprintf(err, err_len, "%s: not a directory", fs->mountpoint);
		return -ENOTDIR;
	}
	mounted_type(fs->mountpoint, type, sizeof(type));
	if (!strcmp(type, "fuse.spoolfs")) {
		snprintf(err, err_len, "%s: spoolfs is mounted there already",
			fs->mountpoint);
		return -EBUSY;
	}
	return check_empty(fs, err, err_len);
}

/* ---- adopt ---- */

static struct blob *read_file(int dir, const char *name, uint64_t max, int *err)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct blob *b = NULL;
	struct stat st;
	size_t at = 0;
	ssize_t n = 1;

	*err = 0;
	if (fd < 0 || fstat(fd, &st))
		*err = -errno;
	else if ((uint64_t)st.st_size > max)
		*err = -EFBIG;
	else if (!(b = blob_create(NULL, (size_t)st.st_size)))
		*err = -ENOMEM;
	while (b && at < b->len && (n = read(fd, b->data + at, b->len - at)) > 0)
		at += (size_t)n;
	if (b && at < b->len) {
		*err = n < 0 ? -errno : -EIO;
		blob_unref(b);
		b = NULL;
	}
	if (fd >= 0)
		close(fd);
	return b;
}

/* A request that is waited for: nothing else runs before the mount. */
struct asked {
	struct driver_req req;
	bool done;
};

static void answered(struct driver_req *req)
{
	((struct asked *)req->arg)->done = true;
}

static int ask(struct fs *fs, struct asked *a)
{
	a->done = false;
	a->req.done = answered;
	a->req.arg = a;
	driver_submit(fs->driver, &a->req);
	while (!a->done)
		loop_once(fs->loop, CLOCK_NEVER);
	return a->req.err;
}

/* To a far queue by way of the outbox: its network may be away. */
static int send_later(struct fs *fs, const char *name, struct blob *body)
{
	struct asked put = {.req.op = DRIVER_DRAFT_PUT};
	struct asked seal = {.req.op = DRIVER_DRAFT_SEAL};
	int err;

	put.req.u.draft.name = name;
	put.req.u.draft.body = body;
	put.req.u.draft.begun_ns = clock_wall();
	put.req.u.draft.mode = 0600;
	put.req.u.draft.uid = fs->cfg.uid;
	put.req.u.draft.gid = fs->cfg.gid;
	err = driver_carries(fs->driver, body->data, body->len) ? ask(fs, &put) : -EILSEQ;
	if (err)
		return err;
	seal.req.u.draft.id = put.req.u.draft.id;
	return ask(fs, &seal);
}

static int send_file(struct fs *fs, const char *name, struct blob *body)
{
	struct asked send = {.req.op = DRIVER_SEND};
	int err;

	if (driver_can(fs->driver, DRIVER_FAR))
		return send_later(fs, name, body);
	send.req.u.send.given = name;
	send.req.u.send.body = body;
	err = ask(fs, &send);
	driver_req_fini(&send.req);
	return err;
}

static int adopt_one(struct fs *fs, int dir, const char *name)
{
	int err;
	struct blob *body = read_file(dir, name, driver_max_body(fs->driver), &err);

	if (!err)
		err = send_file(fs, name, body);
	blob_unref(body);
	if (!err && unlinkat(dir, name, 0))
		err = -errno;
	if (!err)
		log_info("mount", "adopted name=%s", name);
	return err;
}

int mount_adopt(struct fs *fs, char *err, size_t err_len)
{
	int dir = open(fs->mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent **names = NULL;
	int n = dir < 0 ? -1 : scandirat(dir, ".", &names, is_name, alphasort);
	int e = n < 0 ? -errno : 0;

	for (int i = 0; i < n; i++) {
		if (!e)
			e = adopt_one(fs, dir, names[i]->d_name);
		if (e && !err[0])
			snprintf(err, err_len, "adopting %s: %s", names[i]->d_name,
				strerror(-e));
		free(names[i]);
	}
	if (e && !err[0])
		snprintf(err, err_len, "%s: %s", fs->mountpoint, strerror(-e));
	free(names);
	if (dir >= 0)
		close(dir);
	return e;
}
