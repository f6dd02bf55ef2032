/* SPDX-License-Identifier: MIT */
/*
 * A secret that everybody can read is none, and the time to say so is when it
 * is used. What an orchestrator mounts is the exception: its files are links
 * and often readable to all, in a mount that only this container has. Such a
 * mount is known by that nobody here could have made the file: it is read-only,
 * or in memory with a directory we may not write to. /tmp and /dev/shm are in
 * memory too, and open to all.
 */
#include "account_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

const char *account_file_wrong(const struct account_file_facts *f)
{
	if (f->read_only || f->in_memory)
		return NULL;
	if (f->link)
		return "is a symbolic link";
	if (f->mode & (S_IRGRP | S_IROTH))
		return "can be read by group or others; chmod 600 it";
	if (f->mode & (S_IWGRP | S_IWOTH))
		return "can be written by group or others; chmod 600 it";
	return NULL;
}

void account_buf_wipe(struct buf *b)
{
	if (b->p)
		OPENSSL_cleanse(b->p, b->cap);
	buf_fini(b);
}

static int say(char *err, size_t err_len, int code, const char *path, const char *what)
{
	snprintf(err, err_len, "%s: %s", path, what);
	return code;
}

/* Never waits, as the open of a FIFO would. */
static int open_file(const char *path, bool *link)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	*link = false;
	if (fd >= 0 || errno != ELOOP)
		return fd;
	*link = true;
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* "." for a path that is a name only. NULL when out of memory. */
static char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return strdup(".");
	return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* Beside the file itself, wherever links led to it. */
static bool can_write_beside(const char *path)
{
	char *real = realpath(path, NULL);
	char *dir = real ? directory_of(real) : NULL;
	bool can = !dir || faccessat(AT_FDCWD, dir, W_OK, AT_EACCESS) == 0;

	free(dir);
	free(real);
	return can;
}

static void look_at_mount(int fd, const char *path, struct account_file_facts *f)
{
	struct statvfs mount;
	struct statfs fs;

	f->read_only = fstatvfs(fd, &mount) == 0 && (mount.f_flag & ST_RDONLY);
	f->in_memory = fstatfs(fd, &fs) == 0 &&
		       (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC) &&
		       !can_write_beside(path);
}

static int may_read(int fd, const char *path, bool link, enum account_file kind,
	char *err, size_t err_len)
{
	struct account_file_facts f = {.link = link};
	struct stat st;
	const char *wrong;

	if (fstat(fd, &st) < 0)
		return say(err, err_len, -EACCES, path, strerrordesc_np(errno));
	if (!S_ISREG(st.st_mode))
		return say(err, err_len, -EINVAL, path, "is no regular file");
	if (kind == ACCOUNT_FILE_TOKEN)
		return 0;
	f.mode = st.st_mode;
	look_at_mount(fd, path, &f);
	wrong = account_file_wrong(&f);
	return wrong ? say(err, err_len, -EACCES, path, wrong) : 0;
}

/* All room is taken at once: a buffer that grows would leave copies behind. */
static int read_all(int fd, const char *path, struct buf *out, char *err, size_t err_len)
{
	ssize_t n = 1;

	out->max = ACCOUNT_FILE_MAX + 1;
	if (buf_reserve(out, ACCOUNT_FILE_MAX + 1) < 0)
		return say(err, err_len, -ENOMEM, path, "out of memory");
	while (n > 0 && out->len <= ACCOUNT_FILE_MAX) {
		n = read(fd, out->p + out->len, ACCOUNT_FILE_MAX + 1 - out->len);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n > 0)
			out->len += (size_t)n;
	}
	out->p[out->len] = '\0';
	if (n < 0)
		return say(err, err_len, -EACCES, path, strerrordesc_np(errno));
	if (out->len > ACCOUNT_FILE_MAX)
		return say(err, err_len, -EINVAL, path, "is longer than 64 KiB");
	return 0;
}

int account_file_read(const char *path, enum account_file kind, struct buf *out,
	char *err, size_t err_len)
{
	bool link;
	int fd = open_file(path, &link);
	int r;

	buf_clear(out);
	if (fd < 0)
		return say(err, err_len, -EACCES, path, strerrordesc_np(errno));
	r = may_read(fd, path, link, kind, err, err_len);
	if (r == 0)
		r = read_all(fd, path, out, err, err_len);
	close(fd);
	if (r < 0)
		account_buf_wipe(out);
	return r;
}

/* ..data is the link that a kubelet replaces when it has written all files. */
static bool concerns(const struct account_watch *w, const struct inotify_event *ev)
{
	if (ev->mask & (IN_Q_OVERFLOW | IN_IGNORED))
		return true;
	return ev->len > 0 &&
	       (strcmp(ev->name, w->name) == 0 || strncmp(ev->name, "..", 2) == 0);
}

static void on_event(void *arg, uint32_t events)
{
	struct account_watch *w = arg;
	char text[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	bool changed = false;
	ssize_t n;

	(void)events;
	while ((n = read(w->inotify, text, sizeof(text))) > 0) {
		const char *p = text;

		while (p < text + n) {
			const struct inotify_event *ev = (const void *)p;

			changed = changed || concerns(w, ev);
			p += sizeof(*ev) + ev->len;
		}
	}
	if (changed)
		w->changed(w->arg);
}

static int watch_directory(struct account_watch *w, const char *path)
{
	char *dir = directory_of(path);
	int r = 0;

	w->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (!dir || w->inotify < 0 ||
		inotify_add_watch(w->inotify, dir,
			IN_CLOSE_WRITE | IN_MOVED_TO | IN_ATTRIB | IN_ONLYDIR) < 0)
		r = dir ? -errno : -ENOMEM;
	free(dir);
	return r;
}

int account_watch_start(struct account_watch *w, struct loop *loop, const char *path,
	loop_fn *changed, void *arg)
{
	const char *slash = strrchr(path, '/');
	int r;

	*w = (struct account_watch){.loop = loop, .changed = changed, .arg = arg};
	w->name = strdup(slash ? slash + 1 : path);
	r = w->name ? watch_directory(w, path) : -ENOMEM;
	if (r == 0)
		r = loop_fd_add(loop, &w->fd, w->inotify, EPOLLIN, on_event, w);
	if (r < 0)
		account_watch_stop(w);
	return r;
}

void account_watch_stop(struct account_watch *w)
{
	if (w->loop)
		loop_fd_del(w->loop, &w->fd);
	if (w->inotify > 0)
		close(w->inotify);
	free(w->name);
	*w = (struct account_watch){0};
}
