/* SPDX-License-Identifier: MIT */
/*
 * Names to nodes, and listings.
 *
 * A name is resolved for more callers than it is listed for: claimed messages
 * resolve for everyone (so that `cat f && rm f` works) and are listed for their
 * opener only. Dot entries resolve and are not listed. A message that is here
 * but not yet announced does not exist for anyone but the announcer's CREATE.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "announce.h"
#include "serve.h"

/* ---- LOOKUP ---- */

static struct node *found_draft(fuse_req_t req, const char *name)
{
	struct entry *en = dir_find_draft(req, name);

	return en ? node_get(en, VIEW_ROOT) : NULL;
}

/* Who was answered ESTALE finds nothing until he has created his own. */
struct entry *dir_find_draft(fuse_req_t req, const char *name)
{
	struct fs *fs = fs_of(req);
	struct slot *s = entry_slot(fs, name);
	pid_t tid = fuse_req_ctx(req)->pid;
	struct entry *en, *found = NULL;

	if (!s)
		return NULL;
	TAILQ_FOREACH (en, &s->entries, link) {
		if (entry_is_reopener(en, tid))
			return NULL;
		if (!found && draft_shared_with(fs->engine, en->draft, fs_caller(req)))
			found = en;
	}
	return found;
}

static struct node *found_reserved(struct fs *fs, const char *name)
{
	enum name_reserved r = name_reserved(name);

	if (r != NAME_NONE && r != NAME_SCHEDULED)
		return fs->fixed[r];
	if (fs->cfg.done && !strcmp(name, fs->cfg.done))
		return fs->done_dir;
	if (fs->cfg.failed && !strcmp(name, fs->cfg.failed))
		return fs->failed_dir;
	return NULL;
}

/* The announcer sees what is about to depart, and nothing that it is to create. */
static struct node *found_by_announcer(struct fs *fs, const char *name)
{
	struct entry *en = announce_departing(fs->announce, name);

	if (en)
		return node_get(en, VIEW_ROOT);
	if (!strcmp(name, ".announce"))
		return fs->announce_dir;
	return NULL;
}

static struct node *found_at_top(fuse_req_t req, const char *name)
{
	struct fs *fs = fs_of(req);
	struct node *n = found_reserved(fs, name);
	struct entry *en;

	if (n)
		return n;
	if (fs_is_announcer(req))
		return found_by_announcer(fs, name);
	en = entry_message(fs, name);
	if (en && entry_is_visible(en))
		return node_get(en, VIEW_ROOT);
	return found_draft(req, name);
}

static struct node *found_in(fuse_req_t req, enum name_reserved dir, const char *name)
{
	struct fs *fs = fs_of(req);
	struct entry *en;

	switch (dir) {
	case NAME_PEEK:
		en = entry_message(fs, name);
		return en && en->listed && en->message->state == MESSAGE_READY
			       ? node_get(en, VIEW_PEEK)
			       : NULL;
	case NAME_INFLIGHT:
		en = entry_message(fs, name);
		return en && en->message->state == MESSAGE_CLAIMED
			       ? node_get(en, VIEW_OTHER)
			       : NULL;
	case NAME_DEAD:
		en = entry_letter(fs, name);
		return en ? node_get(en, VIEW_ROOT) : NULL;
	case NAME_OUTBOX:
	case NAME_DRAFTS:
		en = entry_view(fs, name);
		if (!en || en->draft->state == DRAFT_SENT ||
			(en->draft->state == DRAFT_SENDING) != (dir == NAME_OUTBOX))
			return NULL;
		return node_get(en, VIEW_OTHER);
	default:
		return NULL;
	}
}

static struct node *found_hidden(struct fs *fs, const char *name)
{
	struct entry *en = entry_message(fs, name);

	return en && !en->listed ? node_get(en, VIEW_ROOT) : NULL;
}

void dir_lookup(fuse_req_t req, struct node *parent, const char *name)
{
	struct fuse_entry_param e;
	struct node *n = NULL;

	if (strlen(name) > NAME_MAX) {
		fuse_reply_err(req, ENAMETOOLONG);
		return;
	}
	if (parent->kind == NODE_ANNOUNCE)
		n = found_hidden(parent->fs, name);
	else if (parent->kind == NODE_DIR && parent->reserved == NAME_NONE)
		n = found_at_top(req, name);
	else if (parent->kind == NODE_DIR)
		n = found_in(req, parent->reserved, name);
	if (!n) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	node_param(n, &e);
	node_taken(n);
	if (fuse_reply_entry(req, &e) == -ENOENT)
		node_forget(n, 1);
}

/* ---- READDIR ---- */

/* A snapshot: taken when a listing starts, so that it neither skips nor repeats
 * a name while messages come and go. */
struct item {
	struct entry *entry; /* referenced, or NULL */
	enum entry_view view;
	struct node *node; /* a fixed one, or NULL */
	const char *name;  /* of a fixed one */
};

struct listing {
	size_t n, cap;
	struct item *items;
};

void listing_destroy(struct listing *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n; i++)
		entry_unref(l->items[i].entry);
	free(l->items);
	free(l);
}

static bool list(struct listing *l, struct item item)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 64;
		struct item *p = reallocarray(l->items, cap, sizeof(*p));

		if (!p)
			return false;
		l->items = p;
		l->cap = cap;
	}
	if (item.entry)
		entry_ref(item.entry);
	l->items[l->n++] = item;
	return true;
}

static bool list_entry(struct listing *l, struct entry *en, enum entry_view view)
{
	return !en || list(l, (struct item){.entry = en, .view = view});
}

static bool list_fixed(struct listing *l, struct node *n, const char *name)
{
	return list(l, (struct item){.node = n, .name = name});
}

static bool list_ready(struct fs *fs, struct listing *l, enum entry_view view)
{
	const struct message *m;
	bool ok = true;

	TAILQ_FOREACH (m, engine_ready(fs->engine), link) {
		struct entry *en = entry_of_message(m);

		if (en && en->listed)
			ok &= list_entry(l, en, view);
	}
	return ok;
}

static bool list_top(fuse_req_t req, struct fs *fs, struct listing *l)
{
	struct proc *caller = fs_caller(req);
	const struct message *m;
	bool ok = list_ready(fs, l, VIEW_ROOT);

	TAILQ_FOREACH (m, engine_in_flight(fs->engine), link) {
		struct entry *en = entry_of_message(m);

		if (en && en->name[0] != '.' && (m->alias || engine_is_opener(m, caller)))
			ok &= list_entry(l, en, VIEW_ROOT);
	}
	if (fs->cfg.done)
		ok &= list_fixed(l, fs->done_dir, fs->cfg.done);
	if (fs->cfg.failed)
		ok &= list_fixed(l, fs->failed_dir, fs->cfg.failed);
	for (int r = NAME_NONE + 1; fs->cfg.show_control && r < NAME_SCHEDULED; r++)
		ok &= list_fixed(l, fs->fixed[r], name_reserved_text(r));
	return ok;
}

static bool list_drafts(struct listing *l, const struct draft_list *drafts)
{
	const struct draft *d;
	bool ok = true;

	TAILQ_FOREACH (d, drafts, link)
		ok &= list_entry(l, entry_of_draft(d), VIEW_OTHER);
	return ok;
}

static bool list_dead(struct fs *fs, struct listing *l)
{
	const struct dead *d;
	bool ok = true;

	for (d = engine_dead(fs->engine); d; d = d->hh.next)
		if (!d->gone)
			ok &= list_entry(l, entry_of_letter(d), VIEW_ROOT);
	return ok;
}

static bool list_in_flight(struct fs *fs, struct listing *l)
{
	const struct message *m;
	bool ok = true;

	TAILQ_FOREACH (m, engine_in_flight(fs->engine), link)
		ok &= list_entry(l, entry_of_message(m), VIEW_OTHER);
	return ok;
}

static bool fill(fuse_req_t req, struct node *n, struct listing *l)
{
	struct fs *fs = n->fs;

	if (n->kind != NODE_DIR)
		return true;
	switch (n->reserved) {
	case NAME_NONE:
		return list_top(req, fs, l);
	case NAME_PEEK:
		return list_ready(fs, l, VIEW_PEEK);
	case NAME_INFLIGHT:
		return list_in_flight(fs, l);
	case NAME_DEAD:
		return list_dead(fs, l);
	case NAME_OUTBOX:
		return list_drafts(l, engine_outbox(fs->engine));
	case NAME_DRAFTS:
		return list_drafts(l, engine_drafts(fs->engine));
	default:
		return true;
	}
}

static struct listing *snapshot(fuse_req_t req, struct node *n)
{
	struct listing *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	if (list_fixed(l, n, ".") && list_fixed(l, n->fs->fixed[NAME_NONE], "..") &&
		fill(req, n, l))
		return l;
	listing_destroy(l);
	return NULL;
}

/* What left since the snapshot is not shown any more. */
static bool is_there(const struct item *it)
{
	const struct entry *en = it->entry;

	return !en || en->message || en->draft || en->letter;
}

static size_t put_plain(
	fuse_req_t req, char *p, size_t room, const struct item *it, off_t next)
{
	struct stat st = {.st_mode = S_IFREG};

	if (it->node)
		node_stat(it->node, &st);
	else
		st.st_ino = it->entry->ino + it->view;
	return fuse_add_direntry(
		req, p, room, it->node ? it->name : it->entry->name, &st, next);
}

/* "." and ".." take no reference, everything else does. */
static size_t put_plus(
	fuse_req_t req, char *p, size_t room, const struct item *it, off_t next)
{
	struct node *n = it->node ? it->node : node_get(it->entry, it->view);
	const char *name = it->node ? it->name : it->entry->name;
	struct fuse_entry_param e;
	size_t need;

	if (!n)
		return put_plain(req, p, room, it, next);
	node_param(n, &e);
	if (next <= 2)
		e.ino = 0;
	need = fuse_add_direntry_plus(req, p, room, name, &e, next);
	if (need <= room && next > 2)
		node_taken(n);
	else if (it->entry)
		node_gc(n);
	return need;
}

static size_t put_all(fuse_req_t req, const struct listing *l, char *p, size_t size,
	size_t at, bool plus)
{
	size_t used = 0, n;

	for (; at < l->n; at++) {
		const struct item *it = &l->items[at];
		off_t next = (off_t)at + 1;

		if (!is_there(it))
			continue;
		n = plus ? put_plus(req, p + used, size - used, it, next)
			 : put_plain(req, p + used, size - used, it, next);
		if (n > size - used)
			break;
		used += n;
	}
	return used;
}

void dir_open(fuse_req_t req, struct node *node, struct fuse_file_info *fi)
{
	struct handle *h = handle_create(node->fs, node);

	if (!h) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	fi->fh = (uint64_t)(uintptr_t)h;
	if (fuse_reply_open(req, fi) == -ENOENT)
		handle_destroy(h);
}

void dir_read(
	fuse_req_t req, size_t size, off_t off, struct fuse_file_info *fi, bool plus)
{
	struct handle *h = handle_of(fi);
	char *p = malloc(size);

	if (off == 0 || !h->listing) {
		listing_destroy(h->listing);
		h->listing = snapshot(req, h->node);
	}
	if (!p || !h->listing)
		fuse_reply_err(req, ENOMEM);
	else
		fuse_reply_buf(
			req, p, put_all(req, h->listing, p, size, (size_t)off, plus));
	free(p);
}

void dir_release(fuse_req_t req, struct fuse_file_info *fi)
{
	handle_destroy(handle_of(fi));
	fuse_reply_err(req, 0);
}
