/* SPDX-License-Identifier: MIT */
/*
 * Opening for reading: at the top it claims; in .peek/ it does not; a dead
 * letter's body is fetched first. What was opened stays readable whatever
 * becomes of the message.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "serve.h"

static void reply(fuse_req_t req, struct handle *h, struct fuse_file_info *fi)
{
	fi->fh = (uint64_t)(uintptr_t)h;
	/* The bytes never change under one inode number, and closing a reader
	 * has nothing to flush. */
	fi->keep_cache = 1;
	fi->noflush = 1;
	if (fuse_reply_open(req, fi) == -ENOENT) {
		read_release(h);
		handle_destroy(h);
	}
}

static int claim(fuse_req_t req, struct handle *h, struct message *m)
{
	int err = engine_claim(h->fs->engine, m, fs_caller(req), false, true);

	h->claims = !err;
	return err == -ENOENT ? -ESTALE : err;
}

/* Writing to a message is refused: at open where tools look, EPERM at write(2)
 * for O_RDWR, which some programs use for reading. */
static int refuse(const struct node *n, int flags)
{
	if ((flags & O_ACCMODE) == O_WRONLY || flags & O_TRUNC)
		return -EACCES;
	if (n->kind != NODE_MESSAGE && (flags & O_ACCMODE) != O_RDONLY)
		return -EACCES;
	return n->entry->message ? 0 : -ESTALE;
}

void read_open(fuse_req_t req, struct node *node, struct fuse_file_info *fi)
{
	struct handle *h;
	int err = refuse(node, fi->flags);

	if (err) {
		fuse_reply_err(req, -err);
		return;
	}
	h = handle_create(node->fs, node);
	if (!h) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	h->entry = entry_ref(node->entry);
	h->body = blob_ref(node->entry->message->d.body);
	if (node->kind == NODE_MESSAGE)
		err = claim(req, h, node->entry->message);
	if (err) {
		handle_destroy(h);
		fuse_reply_err(req, -err);
		return;
	}
	reply(req, h, fi);
}

void read_reply(fuse_req_t req, struct handle *h, size_t size, off_t off)
{
	struct blob *b = h->body;
	size_t at = (size_t)off;

	if (h->claims && h->entry->message)
		engine_was_read(h->fs->engine, h->entry->message);
	if (at >= b->len)
		fuse_reply_buf(req, NULL, 0);
	else
		fuse_reply_buf(req, (const char *)b->data + at,
			size < b->len - at ? size : b->len - at);
}

void read_release(struct handle *h)
{
	if (h->claims && h->entry->message)
		engine_close(h->fs->engine, h->entry->message);
	h->claims = false;
}

/* ---- dead letters ---- */

struct letter_open {
	struct dead_read read;
	fuse_req_t req; /* NULL once it was interrupted */
	struct handle *h;
	struct fuse_file_info fi;
};

static void interrupted(fuse_req_t req, void *arg)
{
	struct letter_open *lo = arg;

	lo->req = NULL;
	fuse_reply_err(req, EINTR);
}

static void letter_read(struct dead_read *r, int err, struct blob *body)
{
	struct letter_open *lo = r->arg;

	if (lo->req)
		fuse_req_interrupt_func(lo->req, NULL, NULL);
	if (lo->req && !err) {
		lo->h->body = blob_ref(body);
		reply(lo->req, lo->h, &lo->fi);
	} else {
		handle_destroy(lo->h);
		if (lo->req)
			fuse_reply_err(lo->req, err == -ENOENT ? ENOENT : EIO);
	}
	dead_read_fini(r);
	free(lo);
}

void read_open_letter(fuse_req_t req, struct node *node, struct fuse_file_info *fi)
{
	struct letter_open *lo;

	if ((fi->flags & O_ACCMODE) != O_RDONLY || fi->flags & O_TRUNC) {
		fuse_reply_err(req, EACCES);
		return;
	}
	if (!node->entry->letter) {
		fuse_reply_err(req, ESTALE);
		return;
	}
	lo = calloc(1, sizeof(*lo));
	if (lo)
		lo->h = handle_create(node->fs, node);
	if (!lo || !lo->h) {
		free(lo);
		fuse_reply_err(req, ENOMEM);
		return;
	}
	lo->h->entry = entry_ref(node->entry);
	lo->req = req;
	lo->fi = *fi;
	lo->read.fn = letter_read;
	lo->read.arg = lo;
	dead_read(node->fs->engine, node->entry->letter, &lo->read);
	fuse_req_interrupt_func(req, interrupted, lo);
}
