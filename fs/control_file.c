/* SPDX-License-Identifier: MIT */
/* .control, .status.json and .metrics as files; what their commands do. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "announce.h"
#include "control.h"
#include "serve.h"

/* Watchers hear of a change when the state has settled, not of each flicker. */
#define TELL_AFTER_NS (20 * NS_PER_MS)
#define LINE_MAX_LEN  4096

int control_text(struct fs *fs, const struct node *node, struct buf *out)
{
	struct control_view v = {
		.cfg = &fs->cfg,
		.driver = driver_ops_of(fs->driver)->name,
		.announcer = announce_state(fs->announce),
	};

	engine_stats(fs->engine, &v.stats);
	if (node->reserved == NAME_CONTROL)
		return control_render(&v, out);
	if (node->reserved == NAME_STATUS_JSON)
		return control_render_json(&v, out);
	return control_render_metrics(&v, out);
}

static void keep_poll(struct handle *h, struct fuse_pollhandle *ph)
{
	if (h->poll)
		fuse_pollhandle_destroy(h->poll);
	h->poll = ph;
}

static void tell(void *arg)
{
	struct fs *fs = arg;
	struct engine_stats s;
	struct handle *h;

	engine_stats(fs->engine, &s);
	if (s.state == fs->told_state)
		return;
	fs->told_state = s.state;
	fs->generation++;
	announce_touch(fs->announce, ".control");
	TAILQ_FOREACH (h, &fs->controls, link) {
		if (!h->poll)
			continue;
		fuse_lowlevel_notify_poll(h->poll);
		keep_poll(h, NULL);
	}
}

void control_changed(struct fs *fs)
{
	struct engine_stats s;

	if (!fs->mounted || loop_timer_is_set(&fs->changed_timer))
		return;
	engine_stats(fs->engine, &s);
	if (s.state != fs->told_state)
		loop_timer_set(
			fs->loop, &fs->changed_timer, clock_mono() + TELL_AFTER_NS);
}

void control_init(struct fs *fs)
{
	TAILQ_INIT(&fs->controls);
	loop_timer_init(&fs->changed_timer, tell, fs);
}

void control_fini(struct fs *fs)
{
	loop_timer_clear(fs->loop, &fs->changed_timer);
}

/* A reader gets the text as it was at his open, whole. */
void control_open(fuse_req_t req, struct node *node, struct fuse_file_info *fi)
{
	struct handle *h = handle_create(node->fs, node);

	if (!h || control_text(node->fs, node, &h->text)) {
		handle_destroy(h);
		fuse_reply_err(req, ENOMEM);
		return;
	}
	h->line.max = LINE_MAX_LEN;
	h->generation = node->fs->generation;
	TAILQ_INSERT_TAIL(&node->fs->controls, h, link);
	h->linked = true;
	fi->fh = (uint64_t)(uintptr_t)h;
	fi->direct_io = 1;
	fi->noflush = (fi->flags & O_ACCMODE) == O_RDONLY;
	if (fuse_reply_open(req, fi) == -ENOENT) {
		control_release(h);
		handle_destroy(h);
	}
}

/* One who goes back to the beginning wants to see what is new. */
void control_read(fuse_req_t req, struct handle *h, size_t size, off_t off)
{
	size_t at = (size_t)off;

	if (!at && h->has_text) {
		buf_clear(&h->text);
		if (control_text(h->fs, h->node, &h->text)) {
			fuse_reply_err(req, ENOMEM);
			return;
		}
	}
	h->has_text = true;
	if (at > h->text.len)
		at = h->text.len;
	fuse_reply_buf(
		req, h->text.p + at, size < h->text.len - at ? size : h->text.len - at);
}

void control_release(struct handle *h)
{
	if (h->linked)
		TAILQ_REMOVE(&h->fs->controls, h, link);
	h->linked = false;
}

void control_poll(fuse_req_t req, struct handle *h, struct fuse_pollhandle *ph)
{
	bool changed = h->generation != h->fs->generation;

	if (ph)
		keep_poll(h, ph);
	h->generation = h->fs->generation;
	fuse_reply_poll(req, changed ? POLLIN | POLLRDNORM : 0);
}

/* ---- commands ---- */

static int release_named(
	struct fs *fs, const struct control_line *line, char *err, size_t err_len)
{
	struct entry *en = entry_message(fs, line->name);

	if (en && !engine_release(fs->engine, en->message, line->delay_ns))
		return 0;
	snprintf(err, err_len, "nobody has claimed %.200s", line->name);
	return -EINVAL;
}

static int set_option(struct fs *fs, const char *assignment, char *err, size_t err_len)
{
	int e = config_set(&fs->cfg, assignment, err, err_len);

	if (!e)
		fs_configure(fs);
	return e;
}

static int run(struct fs *fs, const struct control_line *line, char *err, size_t err_len)
{
	struct engine *e = fs->engine;

	switch (line->command) {
	case CONTROL_POLL:
		engine_poll_now(e);
		return 0;
	case CONTROL_PAUSE:
	case CONTROL_RESUME:
		engine_pause(e, line->command == CONTROL_PAUSE);
		return 0;
	case CONTROL_DRAIN:
		engine_drain(e);
		return 0;
	case CONTROL_STOP:
		fs_end(fs, "stop command", 0);
		return 0;
	case CONTROL_RELEASE:
		return release_named(fs, line, err, err_len);
	case CONTROL_SET:
		return set_option(fs, line->name, err, err_len);
	}
	return -EINVAL;
}

/* No text holds a NUL: what is behind one must not go unseen. */
static int parse_line(
	const struct buf *b, struct control_line *line, char *err, size_t err_len)
{
	if (!b->len)
		return -ENODATA;
	if (!memchr(b->p, '\0', b->len))
		return control_parse(b->p, line, err, err_len);
	snprintf(err, err_len, "a NUL byte in a command");
	return -EINVAL;
}

static int run_line(struct handle *h)
{
	char err[CONFIG_ERR_LEN] = "";
	struct control_line line;
	int e = parse_line(&h->line, &line, err, sizeof(err));

	if (!e)
		e = run(h->fs, &line, err, sizeof(err));
	if (e == -ENODATA)
		e = 0;
	else if (e)
		log_warn("control", "refused: %s", err[0] ? err : strerror(-e));
	else
		log_info("control", "command: %s", h->line.p);
	return e;
}

/* One command a line; a write may hold several, or a part of one. */
void control_write(fuse_req_t req, struct handle *h, const char *data, size_t n)
{
	const char *end = data + n, *nl;
	int err = 0;

	while (!err && data < end && (nl = memchr(data, '\n', (size_t)(end - data)))) {
		err = buf_add(&h->line, data, (size_t)(nl - data));
		if (!err)
			err = run_line(h);
		buf_clear(&h->line);
		data = nl + 1;
	}
	if (!err && data < end)
		err = buf_add(&h->line, data, (size_t)(end - data));
	if (err)
		fuse_reply_err(req, err == -EFBIG ? EINVAL : -err);
	else
		fuse_reply_write(req, n);
}

/* A last command without its newline. */
int control_flush(struct handle *h)
{
	int err = run_line(h);

	buf_clear(&h->line);
	return err;
}

/* ---- fsync: wait for the backend ---- */

struct waiting_sync {
	struct engine_sync sync;
	struct fs *fs;
	fuse_req_t req;
};

static void synced(struct engine_sync *s, int err)
{
	struct waiting_sync *w = s->arg;

	fuse_req_interrupt_func(w->req, NULL, NULL);
	fuse_reply_err(w->req, -err);
	free(w);
}

static void interrupted(fuse_req_t req, void *arg)
{
	struct waiting_sync *w = arg;

	engine_sync_cancel(w->fs->engine, &w->sync);
	fuse_reply_err(req, EINTR);
	free(w);
}

void control_fsync(fuse_req_t req, struct handle *h)
{
	struct waiting_sync *w = calloc(1, sizeof(*w));

	if (!w) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	w->fs = h->fs;
	w->req = req;
	w->sync.fn = synced;
	w->sync.arg = w;
	engine_sync(h->fs->engine, &w->sync);
	fuse_req_interrupt_func(req, interrupted, w);
}
