/* SPDX-License-Identifier: MIT */
/*
 * .next: each open gives one name. The first read waits for a message and
 * claims it for the reader; a read that is given up (a signal) takes nothing.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "serve.h"

static void answer(struct handle *h, fuse_req_t req, size_t size, off_t off)
{
	size_t at = (size_t)off;

	if (at >= h->text.len)
		fuse_reply_buf(req, NULL, 0);
	else
		fuse_reply_buf(req, h->text.p + at,
			size < h->text.len - at ? size : h->text.len - at);
}

static void interrupted(fuse_req_t req, void *arg)
{
	struct handle *h = arg;

	if (h->waiting != req)
		return;
	engine_next_cancel(h->fs->engine, &h->waiter);
	h->waiting = NULL;
	fuse_reply_err(req, EINTR);
}

/*
 * A kernel with fs.fuse.max_request_timeout set aborts the whole mount when a
 * request stays unanswered for so long. A read that waits is answered EINTR at
 * half of it: whoever reads in earnest reads again.
 */
static int64_t patience_ns(void)
{
	FILE *f = fopen("/proc/sys/fs/fuse/max_request_timeout", "re");
	long long s = 0;

	if (f && fscanf(f, "%lld", &s) != 1)
		s = 0;
	if (f)
		fclose(f);
	return s > 0 ? s * NS_PER_S / 2 : CLOCK_NEVER;
}

static void give_up_waiting(struct handle *h)
{
	fuse_req_t req = h->waiting;

	engine_next_cancel(h->fs->engine, &h->waiter);
	h->waiting = NULL;
	fuse_req_interrupt_func(req, NULL, NULL);
	fuse_reply_err(req, EINTR);
}

static void look_at_waiting(void *arg)
{
	struct fs *fs = arg;
	int64_t now = clock_mono(), next = CLOCK_NEVER;
	struct handle *h;

	TAILQ_FOREACH (h, &fs->nexts, link) {
		if (h->waiting && h->give_up_ns <= now)
			give_up_waiting(h);
		else if (h->waiting && h->give_up_ns < next)
			next = h->give_up_ns;
	}
	loop_timer_set(fs->loop, &fs->next_timer, next);
}

void next_init(struct fs *fs)
{
	TAILQ_INIT(&fs->nexts);
	fs->next_patience_ns = patience_ns();
	loop_timer_init(&fs->next_timer, look_at_waiting, fs);
}

void next_fini(struct fs *fs)
{
	loop_timer_clear(fs->loop, &fs->next_timer);
}

static void wait_on(struct handle *h, fuse_req_t req)
{
	struct fs *fs = h->fs;

	h->give_up_ns = clock_add(clock_mono(), fs->next_patience_ns);
	if (h->give_up_ns != CLOCK_NEVER && !loop_timer_is_set(&fs->next_timer))
		loop_timer_set(fs->loop, &fs->next_timer, h->give_up_ns);
	fuse_req_interrupt_func(req, interrupted, h);
}

/* M is ours (NULL without an error: the queue ends, which is end of file). */
static void served(struct engine_waiter *w, struct message *m)
{
	struct handle *h = w->arg;
	fuse_req_t req = h->waiting;
	const struct entry *en = m ? entry_of_message(m) : NULL;

	h->waiting = NULL;
	fuse_req_interrupt_func(req, NULL, NULL);
	if (w->err) {
		fuse_reply_err(req, -w->err);
		return;
	}
	h->has_text = true;
	if (en && buf_printf(&h->text, "%s\n", en->name))
		fuse_reply_err(req, ENOMEM);
	else
		answer(h, req, h->wanted, 0);
}

void next_open(fuse_req_t req, struct node *node, struct fuse_file_info *fi)
{
	struct handle *h;

	if (node->fs->cfg.role == CONFIG_ROLE_OUT) {
		fuse_reply_err(req, EACCES);
		return;
	}
	h = handle_create(node->fs, node);
	if (!h) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	TAILQ_INSERT_TAIL(&h->fs->nexts, h, link);
	h->linked = true;
	fi->fh = (uint64_t)(uintptr_t)h;
	fi->direct_io = 1;
	fi->noflush = 1;
	if (fuse_reply_open(req, fi) == -ENOENT) {
		next_release(h);
		handle_destroy(h);
	}
}

void next_read(fuse_req_t req, struct handle *h, size_t size, off_t off, bool nonblock)
{
	int err;

	if (h->has_text) {
		answer(h, req, size, off);
		return;
	}
	if (h->waiting) { /* a second thread on one descriptor */
		fuse_reply_err(req, EAGAIN);
		return;
	}
	h->waiting = req;
	h->wanted = size;
	h->waiter.fn = served;
	h->waiter.arg = h;
	err = engine_next(h->fs->engine, &h->waiter, fs_caller(req), nonblock);
	if (err) {
		h->waiting = NULL;
		fuse_reply_err(req, -err);
	} else if (h->waiting) {
		wait_on(h, req);
	}
}

static bool is_readable(const struct handle *h)
{
	return h->has_text || !engine_hands_out(h->fs->engine) ||
	       !TAILQ_EMPTY(engine_ready(h->fs->engine));
}

static void keep_poll(struct handle *h, struct fuse_pollhandle *ph)
{
	if (h->poll)
		fuse_pollhandle_destroy(h->poll);
	h->poll = ph;
}

void next_poll(fuse_req_t req, struct handle *h, struct fuse_pollhandle *ph)
{
	if (ph)
		keep_poll(h, ph);
	fuse_reply_poll(req, is_readable(h) ? POLLIN | POLLRDNORM : 0);
}

void next_ready_changed(struct fs *fs)
{
	struct handle *h;

	TAILQ_FOREACH (h, &fs->nexts, link) {
		if (!h->poll)
			continue;
		fuse_lowlevel_notify_poll(h->poll);
		keep_poll(h, NULL);
	}
}

void next_release(struct handle *h)
{
	engine_next_cancel(h->fs->engine, &h->waiter);
	if (h->linked)
		TAILQ_REMOVE(&h->fs->nexts, h, link);
	h->linked = false;
}
