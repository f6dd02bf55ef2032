/* SPDX-License-Identifier: MIT */
/* Inodes as the kernel knows them. */
#ifndef SPOOLFS_FS_NODE_H
#define SPOOLFS_FS_NODE_H

#include "entry.h"

enum node_kind {
	NODE_DIR,      /* reserved says which; NAME_NONE is the top */
	NODE_DONE,     /* -o done= */
	NODE_FAILED,   /* -o failed= */
	NODE_ANNOUNCE, /* .announce/, for the announcer alone */
	NODE_FILE,     /* .control, .status.json, .metrics, .next */
	NODE_MESSAGE,  /* at the top, or in .inflight/ */
	NODE_PEEK,     /* in .peek/ */
	NODE_LETTER,   /* in .dead/ */
	NODE_DRAFT,    /* at the top */
	NODE_VIEW,     /* a draft in .drafts/ or .outbox/ */
};

struct node {
	struct fs *fs;
	enum node_kind kind;
	enum name_reserved reserved; /* DIR and FILE */
	struct entry *entry;         /* referenced; MESSAGE ... VIEW */
	enum entry_view view;
	uint64_t ino;
	TAILQ_ENTRY(node) link; /* of fs->nodes */
	uint64_t lookups;       /* the kernel's references */
	unsigned refs;          /* ours: open handles, the fixed table */
};

/* The fixed nodes. 0 or -ENOMEM. */
int node_init(struct fs *fs);
void node_fini(struct fs *fs);

/* FUSE's number for it and back; the root is FUSE_ROOT_ID. */
fuse_ino_t node_id(const struct node *n);
struct node *node_of(fuse_req_t req, fuse_ino_t id);

/* The node of EN in VIEW, made if needed. NULL when out of memory. Without a
 * reference it lives until the next node_gc(). */
struct node *node_get(struct entry *en, enum entry_view view);
/* N, at the top, stands for EN instead. */
void node_retarget(struct node *n, struct entry *en);
struct node *node_ref(struct node *n);
void node_unref(struct node *n);
/* The kernel took, or gave back, N references. */
void node_taken(struct node *n);
void node_forget(struct node *n, uint64_t lookups);
/* Frees N when nobody refers to it. */
void node_gc(struct node *n);

void node_stat(const struct node *n, struct stat *st);
/* For LOOKUP, CREATE and READDIRPLUS. */
void node_param(const struct node *n, struct fuse_entry_param *e);
bool node_is_dir(const struct node *n);

#endif
