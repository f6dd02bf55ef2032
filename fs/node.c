/* SPDX-License-Identifier: MIT */
/*
 * An inode stands for an entry in one view (top, .peek/, ...), so that a message
 * can be opened for peeking and for claiming with different meanings. Its number
 * belongs to the entry: one message received twice is two entries, and a
 * descriptor that is open across a redelivery reads on in the old one.
 */
#include "serve.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

static struct node *create(struct fs *fs, enum node_kind kind)
{
	struct node *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->fs = fs;
	n->kind = kind;
	return n;
}

static struct node *fixed(struct fs *fs, enum node_kind kind, enum name_reserved r)
{
	struct node *n = create(fs, kind);

	if (!n)
		return NULL;
	n->reserved = r;
	n->refs = 1;
	n->ino = ++fs->last_ino;
	return n;
}

int node_init(struct fs *fs)
{
	bool ok = true;

	for (int r = NAME_NONE; r < NAME_RESERVED_END; r++) {
		bool dir = r == NAME_NONE || name_reserved_is_dir(r);

		fs->fixed[r] = fixed(fs, dir ? NODE_DIR : NODE_FILE, r);
		ok &= fs->fixed[r] != NULL;
	}
	fs->done_dir = fixed(fs, NODE_DONE, NAME_NONE);
	fs->failed_dir = fixed(fs, NODE_FAILED, NAME_NONE);
	fs->announce_dir = fixed(fs, NODE_ANNOUNCE, NAME_NONE);
	return ok && fs->done_dir && fs->failed_dir && fs->announce_dir ? 0 : -ENOMEM;
}

static void destroy(struct node *n)
{
	if (n->entry->nodes[n->view] == n)
		n->entry->nodes[n->view] = NULL;
	entry_unref(n->entry);
	TAILQ_REMOVE(&n->fs->nodes, n, link);
	free(n);
}

/* Nor does it forget what it knew. */
void node_fini(struct fs *fs)
{
	struct node *n;

	while ((n = TAILQ_FIRST(&fs->nodes)))
		destroy(n);
	for (int r = NAME_NONE; r < NAME_RESERVED_END; r++)
		free(fs->fixed[r]);
	free(fs->done_dir);
	free(fs->failed_dir);
	free(fs->announce_dir);
}

fuse_ino_t node_id(const struct node *n)
{
	return n == n->fs->fixed[NAME_NONE] ? FUSE_ROOT_ID : (fuse_ino_t)(uintptr_t)n;
}

struct node *node_of(fuse_req_t req, fuse_ino_t id)
{
	if (id == FUSE_ROOT_ID)
		return fs_of(req)->fixed[NAME_NONE];
	return (struct node *)(uintptr_t)id;
}

static enum node_kind kind_of(const struct entry *en, enum entry_view view)
{
	if (en->kind == ENTRY_LETTER)
		return NODE_LETTER;
	if (en->kind == ENTRY_DRAFT)
		return view == VIEW_ROOT ? NODE_DRAFT : NODE_VIEW;
	return view == VIEW_PEEK ? NODE_PEEK : NODE_MESSAGE;
}

struct node *node_get(struct entry *en, enum entry_view view)
{
	struct node *n = en->nodes[view];

	if (n)
		return n;
	n = create(en->fs, kind_of(en, view));
	if (!n)
		return NULL;
	n->entry = entry_ref(en);
	n->view = view;
	n->ino = en->ino + view;
	en->nodes[view] = n;
	TAILQ_INSERT_TAIL(&n->fs->nodes, n, link);
	return n;
}

void node_retarget(struct node *n, struct entry *en)
{
	if (n->entry->nodes[n->view] == n)
		n->entry->nodes[n->view] = NULL;
	entry_unref(n->entry);
	n->entry = entry_ref(en);
	en->nodes[n->view] = n;
}

struct node *node_ref(struct node *n)
{
	n->refs++;
	return n;
}

void node_gc(struct node *n)
{
	if (!n->refs && !n->lookups)
		destroy(n);
}

void node_unref(struct node *n)
{
	n->refs--;
	node_gc(n);
}

void node_taken(struct node *n)
{
	n->lookups++;
}

void node_forget(struct node *n, uint64_t lookups)
{
	n->lookups -= lookups < n->lookups ? lookups : n->lookups;
	node_gc(n);
}

bool node_is_dir(const struct node *n)
{
	return n->kind <= NODE_ANNOUNCE;
}

static struct timespec timespec_of(int64_t ns)
{
	return (struct timespec){ns / NS_PER_S, ns % NS_PER_S};
}

static void stat_fixed(const struct node *n, struct stat *st)
{
	struct fs *fs = n->fs;
	struct buf text = {0};

	if (node_is_dir(n)) {
		st->st_mode = S_IFDIR | (0777 & ~fs->cfg.umask);
		st->st_nlink = 2;
	} else {
		st->st_mode = S_IFREG | (0666 & ~fs->cfg.umask);
		st->st_nlink = 1;
		if (n->reserved != NAME_CONTROL)
			st->st_mode &= ~(mode_t)0222;
		if (n->reserved != NAME_NEXT && !control_text(fs, n, &text))
			st->st_size = (off_t)text.len;
		buf_fini(&text);
	}
	st->st_uid = fs->cfg.uid;
	st->st_gid = fs->cfg.gid;
	st->st_mtim = timespec_of(fs->started_wall_ns);
}

static void stat_entry(const struct entry *en, struct stat *st)
{
	const struct draft *d = en->draft;

	st->st_mode = S_IFREG | (d ? d->mode : en->mode);
	st->st_nlink = 1;
	st->st_uid = d ? d->uid : en->uid;
	st->st_gid = d ? d->gid : en->gid;
	st->st_size = (off_t)(d ? draft_size(d) : en->size);
	st->st_mtim = timespec_of(d ? d->mtime_ns : en->mtime_ns);
}

void node_stat(const struct node *n, struct stat *st)
{
	*st = (struct stat){.st_blksize = 4096};
	if (n->entry)
		stat_entry(n->entry, st);
	else
		stat_fixed(n, st);
	st->st_ino = n->ino;
	st->st_blocks = (st->st_size + 511) / 512;
	st->st_atim = st->st_mtim;
	st->st_ctim = st->st_mtim;
}

void node_param(const struct node *n, struct fuse_entry_param *e)
{
	bool message = n->kind == NODE_MESSAGE || n->kind == NODE_PEEK;

	*e = (struct fuse_entry_param){.ino = node_id(n)};
	node_stat(n, &e->attr);
	if (message || node_is_dir(n))
		e->attr_timeout = FS_TIMEOUT_S;
	if (message || !n->entry)
		e->entry_timeout = FS_TIMEOUT_S;
}
