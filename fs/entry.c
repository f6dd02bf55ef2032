/* SPDX-License-Identifier: MIT */
#include "entry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "announce.h"
#include "serve.h"

static struct entry *create(struct fs *fs, enum entry_kind kind, const char *name)
{
	struct entry *en = calloc(1, sizeof(*en));

	if (!en)
		return NULL;
	en->name = strdup(name);
	if (!en->name) {
		free(en);
		return NULL;
	}
	en->fs = fs;
	en->kind = kind;
	en->refs = 1;
	en->mode = 0666 & ~fs->cfg.umask;
	en->uid = fs->cfg.uid;
	en->gid = fs->cfg.gid;
	en->ino = fs->last_ino + 1;
	fs->last_ino += VIEW_COUNT;
	return en;
}

struct entry *entry_ref(struct entry *en)
{
	en->refs++;
	return en;
}

void entry_unref(struct entry *en)
{
	if (!en || --en->refs)
		return;
	free(en->name);
	free(en);
}

static struct entry **table_of(struct entry *en)
{
	if (en->kind == ENTRY_MESSAGE)
		return &en->fs->messages;
	return en->kind == ENTRY_DRAFT ? &en->fs->views : &en->fs->letters;
}

static int add(struct entry *en)
{
	struct entry **table = table_of(en);

	HASH_ADD_KEYPTR(hh, *table, en->name, strlen(en->name), en);
	return table_took(hh, en) ? 0 : -ENOMEM;
}

static void take_out(struct entry *en)
{
	struct entry **table = table_of(en);

	if (!table_took(hh, en))
		return;
	HASH_DEL(*table, en);
	en->hh.tbl = NULL;
}

static struct entry *find(struct entry *table, const char *name)
{
	struct entry *en = NULL;

	HASH_FIND_STR(table, name, en);
	return en;
}

struct entry *entry_message(const struct fs *fs, const char *name)
{
	return find(fs->messages, name);
}

struct entry *entry_letter(const struct fs *fs, const char *name)
{
	return find(fs->letters, name);
}

struct entry *entry_view(const struct fs *fs, const char *name)
{
	return find(fs->views, name);
}

struct entry *entry_of_message(const struct message *m)
{
	return m->user;
}

struct entry *entry_of_draft(const struct draft *d)
{
	return d->user;
}

struct entry *entry_of_letter(const struct dead *d)
{
	return d->user;
}

/* ---- slots: drafts by the name their writer gave ---- */

struct slot *entry_slot(const struct fs *fs, const char *name)
{
	struct slot *s = NULL;

	HASH_FIND_STR(fs->slots, name, s);
	return s;
}

static struct slot *slot_make(struct fs *fs, const char *name)
{
	struct slot *s = entry_slot(fs, name);

	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->name = strdup(name);
	if (!s->name) {
		free(s);
		return NULL;
	}
	TAILQ_INIT(&s->entries);
	HASH_ADD_KEYPTR(hh, fs->slots, s->name, strlen(s->name), s);
	if (!table_took(hh, s)) {
		free(s->name);
		free(s);
		return NULL;
	}
	return s;
}

static void unslot(struct entry *en)
{
	struct slot *s = en->slot;

	if (!s)
		return;
	TAILQ_REMOVE(&s->entries, en, link);
	en->slot = NULL;
	if (!TAILQ_EMPTY(&s->entries))
		return;
	HASH_DEL(en->fs->slots, s);
	free(s->name);
	free(s);
}

static int reslot(struct entry *en)
{
	struct slot *s = slot_make(en->fs, en->draft->name);

	if (!s)
		return -ENOMEM;
	if (s == en->slot)
		return 0;
	unslot(en);
	en->slot = s;
	TAILQ_INSERT_HEAD(&s->entries, en, link);
	return 0;
}

/* ---- coming, going, changing ---- */

void entry_detach(struct entry *en)
{
	take_out(en);
	unslot(en);
	if (en->message)
		en->message->user = NULL;
	if (en->draft)
		en->draft->user = NULL;
	if (en->letter)
		en->letter->user = NULL;
	en->message = NULL;
	en->draft = NULL;
	en->letter = NULL;
	entry_unref(en);
}

bool entry_is_visible(const struct entry *en)
{
	return en->listed || (en->message && en->message->state == MESSAGE_CLAIMED);
}

void entry_list(struct entry *en)
{
	en->listed = true;
}

int entry_rename(struct entry *en, const char *newname)
{
	char *old = en->name, *copy = strdup(newname);

	if (!copy)
		return -ENOMEM;
	take_out(en);
	en->name = copy;
	if (!add(en)) {
		free(old);
		return 0;
	}
	en->name = old;
	free(copy);
	if (add(en))
		log_error("entry", "out of memory: no longer shown name=%s", old);
	return -ENOMEM;
}

/* 0 in the table means nobody. */
static pid_t seen_as(pid_t tid)
{
	return tid ? tid : -1;
}

bool entry_is_reopener(const struct entry *en, pid_t tid)
{
	for (unsigned i = 0; i < ENTRY_REOPENERS; i++)
		if (en->reopeners[i] == seen_as(tid))
			return true;
	return false;
}

void entry_add_reopener(struct entry *en, pid_t tid)
{
	en->reopeners[en->n_reopeners++ % ENTRY_REOPENERS] = seen_as(tid);
}

void entry_forget_reopener(struct entry *en, pid_t tid)
{
	for (unsigned i = 0; i < ENTRY_REOPENERS; i++)
		if (en->reopeners[i] == seen_as(tid))
			en->reopeners[i] = 0;
}

/* ---- messages ---- */

static void shown_name(struct fs *fs, const struct driver_msg *d, char out[NAME_MAX + 1])
{
	name_format(out, d->enqueued_ns, d->id, d->given, fs->cfg.suffix);
}

/* Hidden until the announcer has created it, where there is one. */
static void appear(struct entry *en)
{
	struct fs *fs = en->fs;

	if (en->listed)
		return;
	if (!fs->mounted || !announce_create(fs->announce, en->name))
		entry_list(en);
}

static int arrived(void *arg, struct message *m)
{
	struct fs *fs = arg;
	char name[NAME_MAX + 1];
	struct entry *en;

	shown_name(fs, &m->d, name);
	en = create(fs, ENTRY_MESSAGE, m->alias ? m->alias : name);
	if (!en || add(en)) {
		entry_unref(en);
		log_error(
			"entry", "out of memory: a message is not shown id=%s", m->d.id);
		return -ENOMEM;
	}
	en->message = m;
	en->size = m->d.size;
	en->mtime_ns = m->d.enqueued_ns;
	m->user = en;
	if (m->state == MESSAGE_CLAIMED)
		entry_list(en);
	else
		appear(en);
	return 0;
}

static void left(void *arg, struct message *m)
{
	struct fs *fs = arg;
	struct entry *en = m->user;

	if (!en)
		return;
	entry_ref(en);
	entry_detach(en);
	if (en->listed)
		announce_delete(fs->announce, en);
	entry_unref(en);
}

static void unclaimed(void *arg, struct message *m)
{
	struct entry *en = m->user;

	(void)arg;
	if (en && (table_took(hh, en) || !add(en)))
		appear(en);
}

/* ---- dead letters ---- */

static void dead_added(void *arg, struct dead *d)
{
	struct fs *fs = arg;
	char name[NAME_MAX + 1];
	struct entry *en;

	shown_name(fs, &d->d, name);
	en = create(fs, ENTRY_LETTER, name);
	if (!en || add(en)) {
		entry_unref(en);
		return;
	}
	en->letter = d;
	en->size = d->d.size;
	en->mtime_ns = d->d.enqueued_ns;
	d->user = en;
}

static void dead_removed(void *arg, struct dead *d)
{
	(void)arg;
	if (d->user)
		entry_detach(d->user);
}

/* ---- drafts ---- */

static void view_name(const struct draft *d, char out[NAME_MAX + 1])
{
	char serial[24];

	snprintf(serial, sizeof(serial), "%016llu", (unsigned long long)d->serial);
	name_format(out, d->begun_ns, serial, d->name, NULL);
}

int entry_rename_draft(struct entry *en)
{
	char name[NAME_MAX + 1];
	int err = reslot(en);

	view_name(en->draft, name);
	return err ? err : entry_rename(en, name);
}

struct entry *entry_add_draft(struct fs *fs, struct draft *d)
{
	char name[NAME_MAX + 1];
	struct entry *en;

	view_name(d, name);
	en = create(fs, ENTRY_DRAFT, name);
	if (!en)
		return NULL;
	en->draft = d;
	if (reslot(en) || add(en)) {
		unslot(en);
		entry_unref(en);
		return NULL;
	}
	d->user = en;
	return en;
}

static void draft_found(void *arg, struct draft *d)
{
	if (!entry_add_draft(arg, d))
		log_error("entry", "out of memory: a draft is not shown");
}

static void draft_sent(void *arg, struct draft *d)
{
	(void)d;
	control_changed(arg);
}

static void draft_gone(void *arg, struct draft *d)
{
	struct entry *en = d->user;

	(void)arg;
	if (!en)
		return;
	en->size = draft_size(d);
	en->mtime_ns = d->mtime_ns;
	en->mode = d->mode;
	entry_detach(en);
}

static void changed(void *arg)
{
	control_changed(arg);
}

static void ready_changed(void *arg, bool ready)
{
	if (ready)
		next_ready_changed(arg);
}

static void finished(void *arg)
{
	struct fs *fs = arg;

	fs_end(fs, engine_end_reason(fs->engine), fs_run_exit_code(fs));
}

void entry_events(struct fs *fs, struct engine_events *ev)
{
	*ev = (struct engine_events){
		.arrived = arrived,
		.left = left,
		.unclaimed = unclaimed,
		.dead_added = dead_added,
		.dead_removed = dead_removed,
		.draft_found = draft_found,
		.draft_sent = draft_sent,
		.draft_gone = draft_gone,
		.changed = changed,
		.ready_changed = ready_changed,
		.finished = finished,
		.arg = fs,
	};
}

void entry_fini(struct fs *fs)
{
	struct entry *en, *next;

	HASH_ITER (hh, fs->messages, en, next) {
		entry_detach(en);
	}
	HASH_ITER (hh, fs->letters, en, next) {
		entry_detach(en);
	}
	HASH_ITER (hh, fs->views, en, next) {
		entry_detach(en);
	}
}
