/* SPDX-License-Identifier: MIT */
/* user.spoolfs.*: what is known of a message, for getfattr(1). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "announce.h"
#include "serve.h"

#define PREFIX "user.spoolfs."

static int time_text(struct buf *out, int64_t wall_ns)
{
	time_t s = (time_t)(wall_ns / NS_PER_S);
	struct tm tm;
	char text[32];

	gmtime_r(&s, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	return buf_printf(out, "%s.%06dZ", text, (int)(wall_ns % NS_PER_S / NS_PER_US));
}

static const struct driver_msg *msg_of(const struct entry *en)
{
	if (en->message)
		return &en->message->d;
	return en->letter ? &en->letter->d : NULL;
}

static int put_id(const struct entry *en, struct buf *out)
{
	const struct driver_msg *d = msg_of(en);

	return d ? buf_addstr(out, d->id) : -ENODATA;
}

static int put_name(const struct entry *en, struct buf *out)
{
	const struct driver_msg *d = msg_of(en);

	if (en->draft)
		return buf_addstr(out, en->draft->name);
	return d && d->given ? buf_addstr(out, d->given) : -ENODATA;
}

static int put_attempts(const struct entry *en, struct buf *out)
{
	const struct driver_msg *d = msg_of(en);

	return d ? buf_printf(out, "%u", d->attempts) : -ENODATA;
}

static int put_dequeue_count(const struct entry *en, struct buf *out)
{
	const struct driver_msg *d = msg_of(en);

	return d ? buf_printf(out, "%u", d->dequeue_count) : -ENODATA;
}

static int put_enqueued(const struct entry *en, struct buf *out)
{
	const struct driver_msg *d = msg_of(en);

	return d ? time_text(out, d->enqueued_ns) : -ENODATA;
}

static int put_lease_until(const struct entry *en, struct buf *out)
{
	if (!en->message)
		return -ENODATA;
	return time_text(
		out, clock_wall() + en->message->d.lease_until_ns - clock_mono());
}

static int put_state(const struct entry *en, struct buf *out)
{
	static const char *const draft_states[] = {
		"draft", "draft", "outbox", "sent", "gone"};

	if (en->message)
		return buf_addstr(
			out, en->message->state == MESSAGE_CLAIMED ? "claimed" : "ready");
	if (en->draft)
		return buf_addstr(out, draft_states[en->draft->state]);
	return en->letter ? buf_addstr(out, "dead") : -ENODATA;
}

static int put_owner(const struct entry *en, struct buf *out)
{
	const struct message *m = en->message;
	int pid = m && m->claim ? engine_owner_pid(m) : -1;

	return pid < 0 ? -ENODATA : buf_printf(out, "%d", pid);
}

static int put_reason(const struct entry *en, struct buf *out)
{
	if (!en->letter || !en->letter->d.reason)
		return -ENODATA;
	return buf_addstr(out, en->letter->d.reason);
}

static const struct {
	const char *name;
	int (*put)(const struct entry *en, struct buf *out);
} attrs[] = {
	{"id", put_id},
	{"name", put_name},
	{"attempts", put_attempts},
	{"dequeue_count", put_dequeue_count},
	{"enqueued", put_enqueued},
	{"lease_until", put_lease_until},
	{"state", put_state},
	{"owner", put_owner},
	{"reason", put_reason},
};

#define N_ATTRS (sizeof(attrs) / sizeof(attrs[0]))

/* SIZE 0 asks how much there is. */
static void reply(fuse_req_t req, struct buf *b, int err, size_t size)
{
	if (err)
		fuse_reply_err(req, -err);
	else if (!size)
		fuse_reply_xattr(req, b->len);
	else if (b->len > size)
		fuse_reply_err(req, ERANGE);
	else
		fuse_reply_buf(req, b->p, b->len);
	buf_fini(b);
}

/* Anything but user.*: "not supported" makes the kernel stop asking for
 * security.capability before each write. */
void xattr_get(fuse_req_t req, struct node *node, const char *name, size_t size)
{
	struct buf b = {0};
	int err = strncmp(name, "user.", 5) != 0 ? -EOPNOTSUPP : -ENODATA;

	if (node->entry && !strncmp(name, PREFIX, strlen(PREFIX)))
		for (size_t i = 0; i < N_ATTRS; i++)
			if (!strcmp(attrs[i].name, name + strlen(PREFIX)))
				err = attrs[i].put(node->entry, &b);
	reply(req, &b, err, size);
}

void xattr_list(fuse_req_t req, struct node *node, size_t size)
{
	struct buf names = {0}, value = {0};
	int err = 0;

	for (size_t i = 0; node->entry && i < N_ATTRS && !err; i++) {
		if (attrs[i].put(node->entry, &value))
			continue;
		err = buf_addstr(&names, PREFIX);
		if (!err) /* with its NUL */
			err = buf_add(&names, attrs[i].name, strlen(attrs[i].name) + 1);
	}
	buf_fini(&value);
	reply(req, &names, err, size);
}
