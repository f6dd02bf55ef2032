/* SPDX-License-Identifier: MIT */
/*
 * Creating and writing: a file at the top is a draft until its last close.
 *
 * Two openers of one name write two messages. A name that resolves to somebody
 * else's draft, or to one just sent, is answered ESTALE when it is opened for
 * writing: the kernel then looks the name up again, is told that it does not
 * exist, and creates it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "../backend/engine/procs.h"
#include "announce.h"
#include "serve.h"

static struct handle *writer(struct fs *fs, struct node *node, struct draft *d)
{
	struct handle *h = handle_create(fs, node);

	if (!h)
		return NULL;
	h->entry = entry_ref(node->entry);
	h->draft = d;
	h->writes = true;
	return h;
}

/* ---- CREATE ---- */

static void reply_create(fuse_req_t req, struct handle *h, struct fuse_file_info *fi)
{
	struct node *n = h->node;
	struct fuse_entry_param e;

	node_param(n, &e);
	node_taken(n);
	fi->fh = (uint64_t)(uintptr_t)h;
	if (fuse_reply_create(req, &e, fi) != -ENOENT)
		return;
	/* Interrupted: the kernel took nothing, no RELEASE follows. */
	if (h->writes) {
		entry_detach(h->entry);
		draft_discard(h->fs->engine, h->draft);
		write_release(h);
	}
	handle_destroy(h);
	node_forget(n, 1);
}

/* The announcer creates a message that is here already: from now on it is
 * listed. One that was claimed or left meanwhile needs no announcement. */
static void create_announced(fuse_req_t req, const char *name, struct fuse_file_info *fi)
{
	struct fs *fs = fs_of(req);
	struct entry *en = entry_message(fs, name);
	struct handle *h = NULL;
	struct node *n;

	if (!en || en->listed || en->message->state != MESSAGE_READY) {
		fuse_reply_err(req, en ? EEXIST : ENOENT);
		return;
	}
	n = node_get(en, VIEW_ROOT);
	if (n)
		h = handle_create(fs, n);
	if (!h) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	entry_list(en);
	fi->noflush = 1;
	reply_create(req, h, fi);
}

static int may_create(struct fs *fs, const struct node *parent, const char *name)
{
	if (parent->kind != NODE_DIR || parent->reserved != NAME_NONE)
		return -EPERM;
	if (strlen(name) > NAME_MAX)
		return -ENAMETOOLONG;
	if (fs->cfg.role == CONFIG_ROLE_IN)
		return -EACCES;
	if (name_reserved(name) != NAME_NONE || engine_stopping(fs->engine))
		return -EACCES;
	if (name_is_message(name))
		return -ENOENT;
	return 0;
}

static struct handle *new_draft(fuse_req_t req, struct fs *fs, const char *name,
	mode_t mode)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	bool keep = name_patterns_match(fs->drafts, name);
	struct draft *d = draft_create(fs->engine, name, fs_caller(req), keep);
	struct entry *en = d ? entry_add_draft(fs, d) : NULL;
	struct node *n = en ? node_get(en, VIEW_ROOT) : NULL;
	struct handle *h = n ? writer(fs, n, d) : NULL;

	if (h) {
		d->mode = mode & 07777;
		d->uid = ctx->uid;
		d->gid = ctx->gid;
		return h;
	}
	if (en)
		entry_detach(en);
	if (d) {
		draft_discard(fs->engine, d);
		draft_close(fs->engine, d);
	}
	return NULL;
}

void write_create(fuse_req_t req, struct node *parent, const char *name, mode_t mode,
	struct fuse_file_info *fi)
{
	struct fs *fs = fs_of(req);
	struct handle *h;
	int err;

	if (fs_is_announcer(req)) {
		create_announced(req, name, fi);
		return;
	}
	err = may_create(fs, parent, name);
	if (err) {
		fuse_reply_err(req, -err);
		return;
	}
	h = new_draft(req, fs, name, mode);
	if (!h) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	reply_create(req, h, fi);
}

/* ---- OPEN ---- */

static void look_again(fuse_req_t req, struct entry *en)
{
	en->reopener = fuse_req_ctx(req)->pid;
	fuse_reply_err(req, ESTALE);
}

static int open_writer(struct fs *fs, struct handle *h, struct draft *d, int flags)
{
	int err = 0;

	if (flags & O_TRUNC)
		err = draft_truncate(fs->engine, d, 0);
	if (err)
		return err;
	draft_open(d);
	h->draft = d;
	h->writes = true;
	return 0;
}

void write_open(fuse_req_t req, struct node *node, struct fuse_file_info *fi)
{
	struct fs *fs = node->fs;
	struct draft *d = node->entry->draft;
	bool writes = (fi->flags & O_ACCMODE) != O_RDONLY;
	struct handle *h;

	if (!d || (writes && d->state != DRAFT_OPEN && d->state != DRAFT_KEPT)) {
		look_again(req, node->entry);
		return;
	}
	h = handle_create(fs, node);
	if (!h || (writes && open_writer(fs, h, d, fi->flags))) {
		handle_destroy(h);
		fuse_reply_err(req, ENOMEM);
		return;
	}
	h->entry = entry_ref(node->entry);
	h->body = d->stored ? blob_ref(d->stored) : NULL;
	fi->fh = (uint64_t)(uintptr_t)h;
	fi->noflush = !writes;
	if (fuse_reply_open(req, fi) == -ENOENT) {
		write_release(h);
		handle_destroy(h);
	}
}

/* ---- WRITE, READ, FLUSH ---- */

void write_data(fuse_req_t req, struct handle *h, const char *data, size_t n, off_t off)
{
	int err = h->writes ? draft_write(h->fs->engine, h->draft, data, n, (uint64_t)off)
			    : -EPERM;

	if (err)
		fuse_reply_err(req, -err);
	else
		fuse_reply_write(req, n);
}

struct flush {
	struct draft_flush flush;
	fuse_req_t req;
};

static void flushed(struct draft_flush *f, int err)
{
	struct flush *fl = f->arg;

	fuse_reply_err(fl->req, -err);
	free(fl);
}

/*
 * The commit is not abandoned when the writer is being killed: the request is
 * answered when it is done. Whether he was cut off is seen now, while he exits.
 */
void write_flush(fuse_req_t req, struct handle *h, bool closing)
{
	struct flush *fl;

	if (!h->writes) {
		fuse_reply_err(req, 0);
		return;
	}
	if (closing)
		h->draft->cut = procs_exit_signal(fuse_req_ctx(req)->pid) != 0;
	fl = calloc(1, sizeof(*fl));
	if (!fl) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	fl->req = req;
	fl->flush.fn = flushed;
	fl->flush.arg = fl;
	draft_flush(h->fs->engine, h->draft, &fl->flush);
}

void write_release(struct handle *h)
{
	if (!h->writes)
		return;
	h->writes = false;
	draft_close(h->fs->engine, h->draft);
	h->draft = NULL;
}
