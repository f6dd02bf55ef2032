/* SPDX-License-Identifier: MIT */
/*
 * nullfs COUNT SIZE MOUNTPOINT: what a FUSE filesystem costs that does nothing.
 *
 * One directory with COUNT files of SIZE bytes, all made up; reading, removing
 * and creating are answered from memory at once, and what is written vanishes.
 * The loop is that of spoolfs (one thread, epoll, a non-blocking descriptor,
 * one request for each wake-up), and so are the flags of its replies. Whatever
 * spoolfs needs beyond this is its own.
 *
 * Stays in the foreground, so that who started it knows its pid; ends when it is
 * unmounted.
 */
#define FUSE_USE_VERSION FUSE_MAKE_VERSION(3, 12)

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define FOREVER    3600.0
#define FIRST_FILE 2 /* inode of file 0; FUSE's root is 1 */
#define SIZE_MAX_B (1 << 20)

struct null {
	size_t count, size;
	bool *removed;
	char *body;
	size_t entry_len;    /* of one directory entry */
	fuse_ino_t next_ino; /* of a created file */
};

static struct null *null_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

static void name_of(char *name, size_t len, size_t file)
{
	snprintf(name, len, "m%08zu", file);
}

/* The number of the file NAME, or count. */
static size_t file_of(const struct null *n, const char *name)
{
	char *end;
	size_t file = name[0] == 'm' ? strtoul(name + 1, &end, 10) : n->count;

	if (file >= n->count || *end != '\0' || n->removed[file])
		return n->count;
	return file;
}

static struct stat attr_of(const struct null *n, fuse_ino_t ino)
{
	struct stat st = {.st_ino = ino, .st_uid = getuid(), .st_gid = getgid()};

	st.st_mode = ino == FUSE_ROOT_ID ? S_IFDIR | 0700 : S_IFREG | 0600;
	st.st_nlink = ino == FUSE_ROOT_ID ? 2 : 1;
	if (ino >= FIRST_FILE && ino < FIRST_FILE + n->count)
		st.st_size = (off_t)n->size;
	return st;
}

static struct fuse_entry_param entry_of(const struct null *n, fuse_ino_t ino)
{
	return (struct fuse_entry_param){.ino = ino,
		.attr = attr_of(n, ino),
		.attr_timeout = FOREVER,
		.entry_timeout = FOREVER};
}

static void null_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct null *n = null_of(req);
	size_t file = file_of(n, name);
	struct fuse_entry_param e;

	(void)parent;
	if (file == n->count) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	e = entry_of(n, FIRST_FILE + file);
	fuse_reply_entry(req, &e);
}

static void null_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st = attr_of(null_of(req), ino);

	(void)fi;
	fuse_reply_attr(req, &st, FOREVER);
}

static void null_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
	struct fuse_file_info *fi)
{
	(void)attr;
	(void)to_set;
	null_getattr(req, ino, fi);
}

static void null_readdirplus(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct null *n = null_of(req);
	char *buf = malloc(size);
	size_t used = 0;

	(void)ino;
	(void)fi;
	if (buf == NULL) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	for (size_t file = (size_t)off; file < n->count; file++) {
		struct fuse_entry_param e = entry_of(n, FIRST_FILE + file);
		char name[24];

		if (n->removed[file])
			continue;
		if (used + n->entry_len > size)
			break;
		name_of(name, sizeof(name), file);
		used += fuse_add_direntry_plus(
			req, buf + used, size - used, name, &e, (off_t)file + 1);
	}
	fuse_reply_buf(req, buf, used);
	free(buf);
}

static void null_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	fi->keep_cache = 1;
	fi->noflush = 1;
	fuse_reply_open(req, fi);
}

static void null_read(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct null *n = null_of(req);
	size_t at = (size_t)off < n->size ? (size_t)off : n->size;

	(void)ino;
	(void)fi;
	fuse_reply_buf(req, n->body + at, size < n->size - at ? size : n->size - at);
}

static void null_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	struct fuse_file_info *fi)
{
	struct null *n = null_of(req);
	struct fuse_entry_param e = entry_of(n, n->next_ino++);

	(void)parent;
	(void)name;
	(void)mode;
	e.entry_timeout = 0; /* it will have vanished */
	fuse_reply_create(req, &e, fi);
}

static void null_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size,
	off_t off, struct fuse_file_info *fi)
{
	(void)ino;
	(void)data;
	(void)off;
	(void)fi;
	fuse_reply_write(req, size);
}

/* FLUSH and RELEASE. */
static void null_close(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	(void)fi;
	fuse_reply_err(req, 0);
}

static void null_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct null *n = null_of(req);
	size_t file = file_of(n, name);

	(void)parent;
	if (file < n->count)
		n->removed[file] = true;
	fuse_reply_err(req, file < n->count ? 0 : ENOENT);
}

static const struct fuse_lowlevel_ops null_ops = {
	.lookup = null_lookup,
	.getattr = null_getattr,
	.setattr = null_setattr,
	.readdirplus = null_readdirplus,
	.open = null_open,
	.read = null_read,
	.create = null_create,
	.write = null_write,
	.flush = null_close,
	.release = null_close,
	.unlink = null_unlink,
};

static int serve(struct fuse_session *se)
{
	struct epoll_event ev = {.events = EPOLLIN};
	struct fuse_buf buf = {0};
	int fd = fuse_session_fd(se);
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	int rc = 0;

	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ||
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
		rc = -errno;
	while (rc == 0 && !fuse_session_exited(se)) {
		if (epoll_wait(epoll, &ev, 1, -1) < 0 && errno != EINTR)
			rc = -errno;
		else if ((rc = fuse_session_receive_buf(se, &buf)) > 0)
			fuse_session_process_buf(se, &buf);
		if (rc == -EINTR || rc == -EAGAIN || rc > 0)
			rc = 0;
	}
	free(buf.mem);
	close(epoll);
	return rc;
}

static int mount_and_serve(struct null *n, const char *mountpoint)
{
	char *argv[] = {"nullfs", "-o", "fsname=nullfs,default_permissions", NULL};
	struct fuse_args args = FUSE_ARGS_INIT(3, argv);
	struct fuse_session *se = fuse_session_new(&args, &null_ops, sizeof(null_ops), n);
	int rc = -1;

	if (se == NULL)
		goto out;
	if (fuse_session_mount(se, mountpoint) < 0)
		goto destroy;
	if (fuse_set_signal_handlers(se) == 0)
		rc = serve(se);
	fuse_remove_signal_handlers(se);
	fuse_session_unmount(se);
destroy:
	fuse_session_destroy(se);
out:
	fuse_opt_free_args(&args);
	return rc;
}

int main(int argc, char **argv)
{
	struct null n = {0};
	int rc = -1;

	if (argc == 4) {
		n.count = strtoul(argv[1], NULL, 10);
		n.size = strtoul(argv[2], NULL, 10);
	}
	if (argc != 4 || n.size > SIZE_MAX_B) {
		fputs("usage: nullfs COUNT SIZE MOUNTPOINT\n", stderr);
		return 64;
	}
	n.removed = calloc(n.count + 1, sizeof(*n.removed));
	n.body = malloc(n.size + 1);
	n.entry_len = fuse_add_direntry_plus(NULL, NULL, 0, "m00000000", NULL, 0);
	n.next_ino = FIRST_FILE + n.count;
	if (n.removed != NULL && n.body != NULL) {
		memset(n.body, 'x', n.size + 1);
		rc = mount_and_serve(&n, argv[3]);
	}
	free(n.removed);
	free(n.body);
	return rc == 0 ? 0 : 1;
}
