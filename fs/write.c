/* SPDX-License-Identifier: MIT */
/*
 * Creating and writing: a file at the top is a draft until its last close.
 *
 * Two openers of one name write two messages. A name that means a draft just
 * sent, or one that was cut off, starts a new one when it is opened for writing:
 * with O_TRUNC under the same inode; without, the answer is ESTALE, the kernel
 * looks the name up again, is told that it does not exist, and creates it.
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

/* Whoever was told to look again has a draft of his own now. */
static void forget_reopener(struct slot *s, pid_t tid)
{
	struct entry *en;

	TAILQ_FOREACH (en, &s->entries, link)
		entry_forget_reopener(en, tid);
}

static void abandon(struct fs *fs, struct draft *d)
{
	if (d->user)
		entry_detach(d->user);
	draft_discard(fs->engine, d);
	draft_close(fs->engine, d);
}

/* A new draft of the caller's, with one writer; its entry is d->user. */
static struct draft *new_draft(fuse_req_t req, const char *name, mode_t mode)
{
	struct fs *fs = fs_of(req);
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	bool keep = name_patterns_match(fs->drafts, name);
	struct draft *d;

	write_forget_sent(req, name, NULL);
	d = draft_create(fs->engine, name, fs_caller(req), keep);
	if (!d)
		return NULL;
	d->mode = mode & 07777;
	d->uid = ctx->uid;
	d->gid = ctx->gid;
	if (!entry_add_draft(fs, d)) {
		abandon(fs, d);
		return NULL;
	}
	forget_reopener(entry_of_draft(d)->slot, ctx->pid);
	return d;
}

/* What the caller sent under NAME, EXCEPT this, does not answer any longer. */
void write_forget_sent(fuse_req_t req, const char *name, const struct entry *except)
{
	struct fs *fs = fs_of(req);
	struct slot *s = entry_slot(fs, name);
	struct entry *en = s ? TAILQ_FIRST(&s->entries) : NULL;

	while (en) {
		struct entry *next = TAILQ_NEXT(en, link);
		struct draft *d = en->draft;

		if (en != except && d->state == DRAFT_SENT &&
			draft_shared_with(fs->engine, d, fs_caller(req))) {
			entry_detach(en);
			draft_discard(fs->engine, d);
		}
		en = next;
	}
}

void write_create(fuse_req_t req, struct node *parent, const char *name, mode_t mode,
	struct fuse_file_info *fi)
{
	struct fs *fs = fs_of(req);
	struct handle *h = NULL;
	struct draft *d;
	struct node *n;
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
	d = new_draft(req, name, mode);
	n = d ? node_get(entry_of_draft(d), VIEW_ROOT) : NULL;
	if (n)
		h = writer(fs, n, d);
	if (h) {
		reply_create(req, h, fi);
		return;
	}
	if (d)
		abandon(fs, d);
	fuse_reply_err(req, ENOMEM);
}

/* ---- OPEN ---- */

static void look_again(fuse_req_t req, struct entry *en)
{
	entry_add_reopener(en, fuse_req_ctx(req)->pid);
	fuse_reply_err(req, ESTALE);
}

static bool may_reopen(fuse_req_t req, const struct draft *d)
{
	return (d->state == DRAFT_OPEN || d->state == DRAFT_KEPT) &&
	       draft_belongs_to(d, fs_caller(req));
}

/* The name is the caller's for something new: NODE stands for that from now on. */
static struct draft *start_anew(fuse_req_t req, struct node *node)
{
	const struct entry *old = node->entry;
	struct draft *was = old->draft;
	char *name = was ? strdup(was->name) : NULL;
	struct draft *d = name ? new_draft(req, name, was->mode) : NULL;

	free(name);
	if (d)
		node_retarget(node, entry_of_draft(d));
	return d;
}

/* The draft that a writer gets: NODE's, or a new one. *ERR when there is none. */
static struct draft *draft_to_write(
	fuse_req_t req, struct node *node, int flags, int *err)
{
	struct draft *d = node->entry->draft;

	*err = -ESTALE;
	if (!d)
		return NULL;
	if (may_reopen(req, d)) {
		*err = flags & O_TRUNC ? draft_truncate(node->fs->engine, d, 0) : 0;
		if (*err)
			return NULL;
		draft_open(d);
		return d;
	}
	/* touch(1), which goes on without it: it must not start a message. */
	if ((flags & (O_NONBLOCK | O_TRUNC | O_APPEND)) == O_NONBLOCK)
		*err = -EACCES;
	if (!(flags & O_TRUNC) || node->kind != NODE_DRAFT)
		return NULL;
	*err = -ENOMEM;
	return start_anew(req, node);
}

static void open_for_writing(fuse_req_t req, struct node *node, struct fuse_file_info *fi)
{
	int err;
	struct draft *d = draft_to_write(req, node, fi->flags, &err);
	struct handle *h = d ? writer(node->fs, node, d) : NULL;

	if (!d && err == -ESTALE) {
		look_again(req, node->entry);
		return;
	}
	if (!h) {
		if (d)
			draft_close(node->fs->engine, d);
		fuse_reply_err(req, d ? ENOMEM : -err);
		return;
	}
	fi->fh = (uint64_t)(uintptr_t)h;
	if (fuse_reply_open(req, fi) == -ENOENT) {
		write_release(h);
		handle_destroy(h);
	}
}

void write_open(fuse_req_t req, struct node *node, struct fuse_file_info *fi)
{
	struct draft *d = node->entry->draft;
	struct handle *h;

	if ((fi->flags & O_ACCMODE) != O_RDONLY || fi->flags & O_TRUNC) {
		open_for_writing(req, node, fi);
		return;
	}
	if (!d) {
		fuse_reply_err(req, ESTALE);
		return;
	}
	h = handle_create(node->fs, node);
	if (!h) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	h->entry = entry_ref(node->entry);
	if (d->stored && d->state != DRAFT_OPEN)
		h->body = blob_ref(d->stored);
	fi->fh = (uint64_t)(uintptr_t)h;
	fi->noflush = 1;
	if (fuse_reply_open(req, fi) == -ENOENT)
		handle_destroy(h);
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

/* fsync(2) by a reader, as sync(1) does it, is for what others have written. */
static struct draft *flushable(const struct handle *h, bool closing)
{
	struct draft *d = h->entry && !closing ? h->entry->draft : NULL;

	if (h->writes)
		return h->draft;
	return d && (d->state == DRAFT_OPEN || d->state == DRAFT_KEPT) ? d : NULL;
}

/*
 * The commit is not abandoned when the writer is being killed: the request is
 * answered when it is done. Whether he was cut off is seen now, while he exits.
 */
void write_flush(fuse_req_t req, struct handle *h, bool closing)
{
	struct draft *d = flushable(h, closing);
	struct flush *fl;

	if (!d) {
		fuse_reply_err(req, 0);
		return;
	}
	h->closed |= closing;
	if (closing)
		d->cut = procs_exit_signal(fuse_req_ctx(req)->pid) != 0;
	fl = calloc(1, sizeof(*fl));
	if (!fl) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	fl->req = req;
	fl->flush.fn = flushed;
	fl->flush.arg = fl;
	draft_flush(h->fs->engine, d, &fl->flush);
}

/*
 * Each close(2) is told, that of an exit too. Without one the caller was killed
 * inside of open(2), which has made the file and no descriptor.
 */
void write_release(struct handle *h)
{
	if (!h->writes)
		return;
	h->writes = false;
	h->draft->cut |= !h->closed;
	draft_close(h->fs->engine, h->draft);
	h->draft = NULL;
}
