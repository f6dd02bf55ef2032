/* SPDX-License-Identifier: MIT */
/*
 * Names that change: unlink and rename, and attributes that are set.
 *
 * Deleting is deleting what one has read; renaming within the directory claims
 * (importers do that), into done= deletes, into failed= or .dead/ buries.
 * Everything else is refused with EPERM, never EXDEV: tools answer that by
 * copying, and a copy is a new message that has forgotten its attempts.
 */
#include <errno.h>
#include <string.h>

#include "announce.h"
#include "serve.h"

static bool is_top(const struct node *n)
{
	return n->kind == NODE_DIR && n->reserved == NAME_NONE;
}

static bool is_in(const struct node *n, enum name_reserved r)
{
	return n->kind == NODE_DIR && n->reserved == r;
}

static struct entry *visible(struct fs *fs, const char *name)
{
	struct entry *en = entry_message(fs, name);

	return en && entry_is_visible(en) ? en : NULL;
}

/* The name is gone here by a local call: nothing is to be announced. */
static int gone(struct entry *en, int err)
{
	if (!err)
		entry_detach(en);
	return err;
}

/* ---- unlink ---- */

static int unlink_message(fuse_req_t req, struct entry *en)
{
	struct message *m = en->message;
	int err;

	entry_ref(en);
	err = engine_remove(en->fs->engine, m, fs_caller(req));
	if (!err && en->message)
		entry_detach(en);
	entry_unref(en);
	return err;
}

static int unlink_draft(fuse_req_t req, struct entry *en)
{
	struct fs *fs = fs_of(req);
	struct draft *d = en->draft;

	if (d->state == DRAFT_SENDING)
		return 0;
	write_forget_sent(req, d->name, en);
	entry_detach(en);
	draft_discard(fs->engine, d);
	return 0;
}

static int unlink_letter(struct entry *en)
{
	struct dead *d = en->letter;
	int err = dead_discard(en->fs->engine, d);

	return gone(en, err);
}

static int unlink_at_top(fuse_req_t req, const char *name)
{
	struct fs *fs = fs_of(req);
	struct entry *en;

	if (fs_is_announcer(req)) {
		announce_departed(fs->announce, name);
		return 0;
	}
	if (name_reserved(name) != NAME_NONE)
		return -EPERM;
	en = visible(fs, name);
	if (en)
		return unlink_message(req, en);
	en = dir_find_draft(req, name);
	return en ? unlink_draft(req, en) : -ENOENT;
}

static int unlink_in(fuse_req_t req, struct node *dir, const char *name)
{
	struct fs *fs = dir->fs;
	struct entry *en;

	switch (dir->reserved) {
	case NAME_INFLIGHT:
		en = entry_message(fs, name);
		if (!en || en->message->state != MESSAGE_CLAIMED)
			return -ENOENT;
		return unlink_message(req, en);
	case NAME_DEAD:
		en = entry_letter(fs, name);
		return en ? unlink_letter(en) : -ENOENT;
	case NAME_DRAFTS:
		en = entry_view(fs, name);
		return en ? unlink_draft(req, en) : -ENOENT;
	default:
		return -EPERM;
	}
}

void change_unlink(fuse_req_t req, struct node *parent, const char *name)
{
	int err = -EPERM;

	if (is_top(parent))
		err = unlink_at_top(req, name);
	else if (parent->kind == NODE_DIR)
		err = unlink_in(req, parent, name);
	fuse_reply_err(req, -err);
}

/* ---- rename ---- */

/* Whether something is listed, or kept, under NAME at the top. */
static int check_target(fuse_req_t req, const char *name, unsigned flags)
{
	struct fs *fs = fs_of(req);
	struct entry *en;

	if (strlen(name) > NAME_MAX)
		return -ENAMETOOLONG;
	if (name_reserved(name) != NAME_NONE)
		return -EPERM;
	if (entry_message(fs, name))
		return -EEXIST;
	if (!(flags & RENAME_NOREPLACE))
		return 0;
	en = dir_find_draft(req, name);
	return en && en->draft->state != DRAFT_SENT ? -EEXIST : 0;
}

static int alias(fuse_req_t req, struct entry *en, const char *newname, unsigned flags)
{
	struct fs *fs = en->fs;
	int err = check_target(req, newname, flags);

	if (!err && dir_find_draft(req, newname))
		err = -EEXIST;
	if (!err)
		err = engine_claim(fs->engine, en->message, fs_caller(req), true, false);
	if (err)
		return err;
	err = entry_rename(en, newname);
	if (!err)
		err = engine_alias(fs->engine, en->message, newname);
	en->listed = true;
	return err;
}

/* A rename over a draft of the caller's own replaces it, as write-then-rename
 * programs expect; over a name just sent it is a new message. */
static void replace_draft(fuse_req_t req, const struct entry *by, const char *name)
{
	struct entry *old = dir_find_draft(req, name);

	if (old && old != by && old->draft->state != DRAFT_SENDING)
		unlink_draft(req, old);
}

static int rename_draft(
	fuse_req_t req, struct entry *en, const char *newname, unsigned flags)
{
	struct fs *fs = en->fs;
	int err = check_target(req, newname, flags);

	if (!err && name_is_message(newname))
		err = -ENOENT;
	if (err)
		return err;
	entry_ref(en);
	write_forget_sent(req, en->draft->name, en);
	replace_draft(req, en, newname);
	err = draft_rename(
		fs->engine, en->draft, newname, name_patterns_match(fs->drafts, newname));
	if (!err && en->draft)
		err = entry_rename_draft(en);
	entry_unref(en);
	return err;
}

static int rename_at_top(
	fuse_req_t req, const char *name, const char *newname, unsigned flags)
{
	struct fs *fs = fs_of(req);
	struct entry *en = visible(fs, name);

	if (name_reserved(name) != NAME_NONE)
		return -EPERM;
	if (en)
		return alias(req, en, newname, flags);
	en = dir_find_draft(req, name);
	return en ? rename_draft(req, en, newname, flags) : -ENOENT;
}

static int bury(fuse_req_t req, struct entry *en, const char *reason)
{
	int err;

	entry_ref(en);
	err = engine_bury(en->fs->engine, en->message, fs_caller(req), reason);
	if (!err && en->message)
		entry_detach(en);
	entry_unref(en);
	return err;
}

/* Out of the top directory: done with it, or it failed. */
static int rename_away(fuse_req_t req, const char *name, struct node *to)
{
	struct entry *en = visible(fs_of(req), name);

	if (!en)
		return dir_find_draft(req, name) ? -EPERM : -ENOENT;
	if (to->kind == NODE_DONE)
		return unlink_message(req, en);
	if (to->kind == NODE_FAILED)
		return bury(req, en, "failed");
	return is_in(to, NAME_DEAD) ? bury(req, en, "buried") : -EPERM;
}

static int revive(fuse_req_t req, const char *name, const char *newname)
{
	struct fs *fs = fs_of(req);
	struct entry *en = entry_letter(fs, name);
	int err = check_target(req, newname, 0);

	if (err)
		return err;
	return en ? gone(en, dead_revive(fs->engine, en->letter)) : -ENOENT;
}

/* Out of .drafts/: sent under the name its writer gave, or another. */
static int resume_draft(fuse_req_t req, const char *name, const char *newname)
{
	struct fs *fs = fs_of(req);
	struct entry *en = entry_view(fs, name);
	bool own = name_is_message(newname);
	int err;

	if (!en || en->draft->state != DRAFT_KEPT)
		return en ? -EBUSY : -ENOENT;
	err = check_target(req, newname, 0);
	if (err)
		return err;
	if (own)
		newname = en->draft->name;
	entry_ref(en);
	err = draft_rename(fs->engine, en->draft, newname,
		!own && name_patterns_match(fs->drafts, newname));
	if (!err && en->draft)
		err = entry_rename_draft(en);
	entry_unref(en);
	return err;
}

/* The announcer moves in what is here already (announce=rename). */
static int rename_announced(struct fs *fs, const char *name)
{
	struct entry *en = entry_message(fs, name);

	if (!en || en->listed || en->message->state != MESSAGE_READY)
		return -ENOENT;
	entry_list(en);
	return 0;
}

static int rename_checked(fuse_req_t req, struct node *from, const char *name,
	struct node *to, const char *newname, unsigned flags)
{
	struct fs *fs = fs_of(req);

	if (from->kind == NODE_ANNOUNCE && is_top(to) && fs_is_announcer(req))
		return rename_announced(fs, name);
	if (is_top(from) && is_top(to))
		return rename_at_top(req, name, newname, flags);
	if (is_top(from))
		return rename_away(req, name, to);
	if (is_in(from, NAME_DEAD) && is_top(to))
		return revive(req, name, newname);
	if (is_in(from, NAME_DRAFTS) && is_top(to))
		return resume_draft(req, name, newname);
	return -EPERM;
}

void change_rename(fuse_req_t req, struct node *from, const char *name, struct node *to,
	const char *newname, unsigned flags)
{
	int err = flags & ~(unsigned)RENAME_NOREPLACE
			  ? -EINVAL
			  : rename_checked(req, from, name, to, newname, flags);

	fuse_reply_err(req, -err);
}

/* ---- attributes ---- */

static int64_t wanted_mtime(const struct stat *attr, int set)
{
	if (!(set & FUSE_SET_ATTR_MTIME) || set & FUSE_SET_ATTR_MTIME_NOW)
		return 0;
	return attr->st_mtim.tv_sec * NS_PER_S + attr->st_mtim.tv_nsec;
}

/* touch(1): "I still work on it", or, with a time to come, "show it again then". */
static int touch(fuse_req_t req, struct entry *en, int64_t mtime_ns)
{
	struct engine *e = en->fs->engine;
	struct message *m = en->message;
	int64_t delay = mtime_ns - clock_wall();
	int err;

	if (!m || m->state != MESSAGE_CLAIMED)
		return 0;
	err = engine_may(e, m, fs_caller(req));
	if (err)
		return err;
	if (delay > NS_PER_S)
		return engine_release(e, m, delay);
	engine_touch(e, m);
	return 0;
}

static int attr_of_draft(
	struct draft *d, const struct stat *attr, int set, struct engine *e)
{
	int err = 0;

	if (d->state == DRAFT_SENT || d->state == DRAFT_SENDING)
		return 0;
	if (set & FUSE_SET_ATTR_SIZE)
		err = draft_truncate(e, d, (uint64_t)attr->st_size);
	if (set & FUSE_SET_ATTR_MODE)
		d->mode = attr->st_mode & 07777;
	if (set & FUSE_SET_ATTR_UID)
		d->uid = attr->st_uid;
	if (set & FUSE_SET_ATTR_GID)
		d->gid = attr->st_gid;
	if (wanted_mtime(attr, set))
		d->mtime_ns = wanted_mtime(attr, set);
	return err;
}

static int set_attr(fuse_req_t req, struct node *n, const struct stat *attr, int set,
	const struct handle *h)
{
	struct engine *e = n->fs->engine;

	if (h && h->writes)
		return attr_of_draft(h->draft, attr, set, e);
	if (!n->entry)
		return 0;
	if (n->entry->draft)
		return attr_of_draft(n->entry->draft, attr, set, e);
	if (set & (FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID |
			  FUSE_SET_ATTR_GID))
		return n->kind == NODE_DRAFT ? 0 : -EPERM;
	return n->kind == NODE_MESSAGE ? touch(req, n->entry, wanted_mtime(attr, set))
				       : 0;
}

void change_attr(fuse_req_t req, struct node *node, const struct stat *attr, int set,
	struct fuse_file_info *fi)
{
	struct stat st;
	int err = set_attr(req, node, attr, set, fi ? handle_of(fi) : NULL);

	if (err) {
		fuse_reply_err(req, -err);
		return;
	}
	node_stat(node, &st);
	fuse_reply_attr(req, &st, 0);
}
