/* SPDX-License-Identifier: MIT */
/*
 * What has a name in the mount: a message, a draft, a dead letter. An entry
 * outlives its object as long as a node or an open file refers to it: then its
 * object pointers are NULL, and only the copied facts are left.
 */
#ifndef SPOOLFS_FS_ENTRY_H
#define SPOOLFS_FS_ENTRY_H

#include "fs.h"

enum entry_kind { ENTRY_MESSAGE, ENTRY_DRAFT, ENTRY_LETTER };

/* The directories an entry may be seen in; each has an inode of its own. */
enum entry_view {
	VIEW_ROOT,  /* the top directory */
	VIEW_PEEK,  /* .peek/ (messages) */
	VIEW_OTHER, /* .inflight/ (messages), .drafts/ or .outbox/ (drafts) */
	VIEW_COUNT,
};

#define ENTRY_REOPENERS 16

struct entry {
	struct fs *fs;
	enum entry_kind kind;
	unsigned refs;
	char *name; /* message: as shown now; draft: in .drafts/; letter */
	struct message *message;
	struct draft *draft;
	struct dead *letter;
	struct node *nodes[VIEW_COUNT]; /* weak */
	uint64_t ino;                   /* of VIEW_ROOT; the others follow */

	/* messages: whether plain listings have it. Hidden until announced. */
	bool listed;
	bool departing; /* gone, but the announcer has still to unlink it */
	/* drafts: who was told to look again (ESTALE), and makes a new one; the
	 * oldest is overwritten. -1: someone whose pid cannot be seen */
	pid_t reopeners[ENTRY_REOPENERS];
	unsigned n_reopeners;

	uint64_t size;
	int64_t mtime_ns;
	uint32_t mode, uid, gid;

	UT_hash_handle hh; /* fs->messages, letters or views, by name */
	UT_hash_handle hh_departing;
	TAILQ_ENTRY(entry) link; /* draft: in its slot */
	struct slot *slot;
};

/* Drafts of one name, newest first. */
struct slot {
	char *name;
	TAILQ_HEAD(, entry) entries;
	UT_hash_handle hh;
};

struct entry *entry_ref(struct entry *en);
void entry_unref(struct entry *en); /* takes NULL */

struct entry *entry_of_message(const struct message *m);
struct entry *entry_of_draft(const struct draft *d);
struct entry *entry_of_letter(const struct dead *d);

/* The live message shown as NAME (listed, claimed or hidden), or NULL. */
struct entry *entry_message(const struct fs *fs, const char *name);
struct entry *entry_letter(const struct fs *fs, const char *name);
struct entry *entry_view(const struct fs *fs, const char *name);
struct slot *entry_slot(const struct fs *fs, const char *name);

/* Whether others than the announcer can resolve it. */
bool entry_is_visible(const struct entry *en);
/* Hidden no more: it was announced, or nobody announces. */
void entry_list(struct entry *en);
/* Shown under NEWNAME from now on (a renamed message). 0 or -ENOMEM. */
int entry_rename(struct entry *en, const char *newname);
/* A draft's name changed: found, and shown in .drafts/, by its present one. 0 or
 * -ENOMEM. */
int entry_rename_draft(struct entry *en);
/* Its object is gone; nothing is announced. The entry may be freed. */
void entry_detach(struct entry *en);
/* Whether TID was told to look again; telling it; forgetting it. */
bool entry_is_reopener(const struct entry *en, pid_t tid);
void entry_add_reopener(struct entry *en, pid_t tid);
void entry_forget_reopener(struct entry *en, pid_t tid);
/* A new draft's entry. NULL when out of memory. */
struct entry *entry_add_draft(struct fs *fs, struct draft *d);

/* The engine's events. */
void entry_events(struct fs *fs, struct engine_events *ev);
/* At the end: lets go of everything. */
void entry_fini(struct fs *fs);

#endif
