/* SPDX-License-Identifier: MIT */
/*
 * What the kernel asks, sorted by kind of node. Each request is answered here
 * or in the file named by the call, exactly once. Answered late are only READ
 * of .next, FLUSH and FSYNC of a draft, FSYNC of .control and OPEN of a dead
 * letter: all others hold a lock of the directory, or are short.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "announce.h"
#include "serve.h"

struct proc *fs_caller(fuse_req_t req)
{
	return engine_caller(fs_of(req)->engine, fuse_req_ctx(req)->pid);
}

bool fs_is_announcer(fuse_req_t req)
{
	return announce_is(fs_of(req)->announce, fuse_req_ctx(req)->pid);
}

struct handle *handle_create(struct fs *fs, struct node *node)
{
	struct handle *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->fs = fs;
	h->node = node_ref(node);
	TAILQ_INSERT_TAIL(&fs->handles, h, all);
	return h;
}

void handle_destroy(struct handle *h)
{
	if (!h)
		return;
	if (h->poll)
		fuse_pollhandle_destroy(h->poll);
	listing_destroy(h->listing);
	buf_fini(&h->text);
	buf_fini(&h->line);
	blob_unref(h->body);
	entry_unref(h->entry);
	node_unref(h->node);
	TAILQ_REMOVE(&h->fs->handles, h, all);
	free(h);
}

void handle_fini(struct fs *fs)
{
	struct handle *h;

	while ((h = TAILQ_FIRST(&fs->handles))) {
		engine_next_cancel(fs->engine, &h->waiter);
		handle_destroy(h);
	}
}

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
	struct fs *fs = userdata;

	conn->want |= conn->capable & (FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_READDIRPLUS);
	/* Whoever lists a spool opens what is listed: with READDIRPLUS_AUTO the
	 * kernel lists mostly names, and looks each of them up. */
	conn->want &= ~(unsigned)(FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_SPLICE_READ |
				  FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE |
				  FUSE_CAP_WRITEBACK_CACHE);
	fs->mounted = true;
	fs->ready(fs, 0);
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	dir_lookup(req, node_of(req, parent), name);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n)
{
	if (ino != FUSE_ROOT_ID)
		node_forget(node_of(req, ino), n);
	fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *f)
{
	for (size_t i = 0; i < count; i++)
		if (f[i].ino != FUSE_ROOT_ID)
			node_forget(node_of(req, f[i].ino), f[i].nlookup);
	fuse_reply_none(req);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct node *n = node_of(req, ino);
	struct fuse_entry_param e;

	(void)fi;
	node_param(n, &e);
	fuse_reply_attr(req, &e.attr, e.attr_timeout);
}

static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int set,
	struct fuse_file_info *fi)
{
	change_attr(req, node_of(req, ino), attr, set, fi);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct node *n = node_of(req, ino);

	switch (n->kind) {
	case NODE_FILE:
		if (n->reserved == NAME_NEXT)
			next_open(req, n, fi);
		else
			control_open(req, n, fi);
		return;
	case NODE_MESSAGE:
	case NODE_PEEK:
		read_open(req, n, fi);
		return;
	case NODE_LETTER:
		read_open_letter(req, n, fi);
		return;
	case NODE_DRAFT:
	case NODE_VIEW:
		write_open(req, n, fi);
		return;
	default:
		fuse_reply_err(req, EISDIR);
	}
}

static void read_draft(fuse_req_t req, struct handle *h, size_t size, off_t off)
{
	const struct draft *d = h->writes ? h->draft : h->entry->draft;
	const char *p = NULL;
	size_t n;

	if (h->body) {
		read_reply(req, h, size, off);
		return;
	}
	n = d ? draft_read(d, (uint64_t)off, size, &p) : 0;
	fuse_reply_buf(req, p, n);
}

static void op_read(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct handle *h = handle_of(fi);

	(void)ino;
	if (h->node->kind == NODE_FILE && h->node->reserved == NAME_NEXT)
		next_read(req, h, size, off, fi->flags & O_NONBLOCK);
	else if (h->node->kind == NODE_FILE)
		control_read(req, h, size, off);
	else if (h->node->kind == NODE_DRAFT || h->node->kind == NODE_VIEW)
		read_draft(req, h, size, off);
	else if (h->body)
		read_reply(req, h, size, off);
	else
		fuse_reply_err(req, EIO);
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t n,
	off_t off, struct fuse_file_info *fi)
{
	struct handle *h = handle_of(fi);

	(void)ino;
	if (h->node->kind == NODE_FILE && h->node->reserved == NAME_CONTROL)
		control_write(req, h, data, n);
	else
		write_data(req, h, data, n, off);
}

static void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct handle *h = handle_of(fi);

	(void)ino;
	if (h->node->kind == NODE_FILE)
		fuse_reply_err(req, -control_flush(h));
	else
		write_flush(req, h, true);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct handle *h = handle_of(fi);

	(void)ino;
	if (h->node->kind == NODE_FILE && h->node->reserved == NAME_NEXT)
		next_release(h);
	else if (h->node->kind == NODE_FILE)
		control_release(h);
	read_release(h);
	write_release(h);
	handle_destroy(h);
	fuse_reply_err(req, 0);
}

static void op_fsync(
	fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct handle *h = handle_of(fi);

	(void)ino;
	(void)datasync;
	if (h->node->kind == NODE_FILE && h->node->reserved == NAME_CONTROL)
		control_fsync(req, h);
	else
		write_flush(req, h, false);
}

/* FSYNCDIR holds the directory's lock and so cannot wait: see spoolfs.7. */
static void op_fsyncdir(
	fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)ino;
	(void)datasync;
	(void)fi;
	fuse_reply_err(req, 0);
}

static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	dir_open(req, node_of(req, ino), fi);
}

static void op_readdir(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	(void)ino;
	dir_read(req, size, off, fi, false);
}

static void op_readdirplus(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	(void)ino;
	dir_read(req, size, off, fi, true);
}

static void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	dir_release(req, fi);
}

static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	struct fuse_file_info *fi)
{
	write_create(req, node_of(req, parent), name, mode, fi);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	change_unlink(req, node_of(req, parent), name);
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
	fuse_ino_t newparent, const char *newname, unsigned flags)
{
	change_rename(
		req, node_of(req, parent), name, node_of(req, newparent), newname, flags);
}

/* df -i: the queue's depth. */
static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct statvfs st = {.f_bsize = 4096, .f_frsize = 4096, .f_namemax = NAME_MAX};
	struct engine_stats s;

	(void)ino;
	engine_stats(fs_of(req)->engine, &s);
	st.f_files = s.depth;
	fuse_reply_statfs(req, &st);
}

static void op_mknod(
	fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	(void)parent;
	(void)name;
	(void)mode;
	(void)rdev;
	fuse_reply_err(req, EPERM);
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	(void)parent;
	(void)mode;
	fuse_reply_err(req, strlen(name) > NAME_MAX ? ENAMETOOLONG : EPERM);
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	(void)parent;
	(void)name;
	fuse_reply_err(req, EPERM);
}

static void op_symlink(
	fuse_req_t req, const char *link, fuse_ino_t parent, const char *name)
{
	(void)link;
	(void)parent;
	(void)name;
	fuse_reply_err(req, EPERM);
}

static void op_link(
	fuse_req_t req, fuse_ino_t ino, fuse_ino_t newparent, const char *name)
{
	(void)ino;
	(void)newparent;
	(void)name;
	fuse_reply_err(req, EPERM);
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	xattr_get(req, node_of(req, ino), name, size);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	xattr_list(req, node_of(req, ino), size);
}

static void op_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
	struct fuse_pollhandle *ph)
{
	struct handle *h = handle_of(fi);

	(void)ino;
	if (h->node->kind == NODE_FILE && h->node->reserved == NAME_NEXT) {
		next_poll(req, h, ph);
	} else if (h->node->kind == NODE_FILE) {
		control_poll(req, h, ph);
	} else {
		if (ph)
			fuse_pollhandle_destroy(ph);
		fuse_reply_poll(req, POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM);
	}
}

const struct fuse_lowlevel_ops fs_ops = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.open = op_open,
	.read = op_read,
	.write = op_write,
	.flush = op_flush,
	.release = op_release,
	.fsync = op_fsync,
	.fsyncdir = op_fsyncdir,
	.opendir = op_opendir,
	.readdir = op_readdir,
	.readdirplus = op_readdirplus,
	.releasedir = op_releasedir,
	.create = op_create,
	.unlink = op_unlink,
	.rename = op_rename,
	.statfs = op_statfs,
	.mknod = op_mknod,
	.mkdir = op_mkdir,
	.rmdir = op_rmdir,
	.symlink = op_symlink,
	.link = op_link,
	.getxattr = op_getxattr,
	.listxattr = op_listxattr,
	.poll = op_poll,
};
