/* SPDX-License-Identifier: MIT */
/*
 * The mounted filesystem: what its files share.
 *
 *   main.c      a table of contents: create, run, destroy
 *   background.c  going to the background
 *   mount.c     the mount point: checks, stale mounts, what lay in it before
 *   ops.c       what the kernel asks, sorted by kind of node
 *   dir.c       LOOKUP and READDIR; names to nodes
 *   node.c      inodes: numbers, attributes, FORGET
 *   entry.c     what has a name here: messages, drafts, dead letters
 *   read.c      opening for reading: claims, peeks, dead letters
 *   write.c     creating and writing: drafts
 *   change.c    unlink, rename and what is refused
 *   next.c      .next
 *   control_file.c  .control, .status.json, .metrics as files
 *   control.c   their text, and the commands (pure)
 *   xattr.c     user.spoolfs.*
 *   announce.c  the announcer's keeper
 */
#ifndef SPOOLFS_FS_FS_H
#define SPOOLFS_FS_FS_H

#define FUSE_USE_VERSION 312

#include <fuse_lowlevel.h>

#include "../backend/base/clock.h"
#include "../backend/base/log.h"
#include "../backend/base/loop.h"
#include "../backend/base/table.h"
#include "../backend/engine/dead.h"
#include "../backend/engine/handling.h"
#include "../backend/engine/outbox.h"
#include "config.h"
#include "name.h"

struct announce;
struct entry;
struct node;
struct slot;

/* How long the kernel may keep a name and its attributes without asking. Names
 * change through the kernel itself (announce.c); this bounds the rest. */
#define FS_TIMEOUT_S 1.0

/* The one mount of this process. */
struct fs {
	struct loop *loop;
	struct driver *driver;
	struct engine *engine;
	struct config cfg;
	char *mountpoint; /* absolute */
	struct name_patterns *drafts;

	struct fuse_session *se;
	struct fuse_buf request;
	struct loop_fd fuse_fd, signal_fd;
	int exit_code;
	bool mounted, engine_started, ending;
	void (*ready)(struct fs *fs, int err);

	uint64_t last_ino;
	struct node *fixed[16];       /* by name_reserved, 0 the root (node.h) */
	TAILQ_HEAD(, node) nodes;     /* all but the fixed ones */
	TAILQ_HEAD(, handle) handles; /* all */
	struct node *done_dir, *failed_dir, *announce_dir;

	struct entry *messages; /* uthash by name, as shown */
	struct entry *letters;  /* dead letters by name */
	struct entry *views;    /* drafts by their name in .drafts/ */
	struct slot *slots;     /* drafts by the name their writer gave */

	struct announce *announce;

	/* .control */
	TAILQ_HEAD(, handle) controls; /* open ones, for poll(2) */
	TAILQ_HEAD(, handle) nexts;    /* open .next */
	struct loop_timer next_timer;
	int64_t next_patience_ns;
	struct loop_timer changed_timer;
	uint64_t generation; /* of what .control tells */
	enum poller_state told_state;
	int64_t started_wall_ns;
};

/* One open file or directory; fi->fh. */
struct handle {
	struct fs *fs;
	struct node *node;   /* referenced */
	struct entry *entry; /* referenced, or NULL */
	bool claims;         /* reading a message: to be closed */
	bool writes;         /* draft is valid, one writer of it is this */
	bool closed;         /* a descriptor of it was, once at least */
	struct draft *draft;
	struct blob *body;
	struct buf text; /* .control & co., .next: what is read */
	bool has_text;
	struct buf line; /* .control: a command not ended by a newline yet */
	uint64_t generation;
	struct fuse_pollhandle *poll;
	struct listing *listing;
	struct engine_waiter waiter;
	fuse_req_t waiting; /* .next: the READ that waits */
	size_t wanted;
	int64_t give_up_ns;
	TAILQ_ENTRY(handle) all;
	TAILQ_ENTRY(handle) link;
	bool linked;
};

static inline struct fs *fs_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

static inline struct handle *handle_of(const struct fuse_file_info *fi)
{
	return (struct handle *)(uintptr_t)fi->fh;
}

/* The process that asks. Borrowed until the next return to the loop. */
struct proc *fs_caller(fuse_req_t req);
bool fs_is_announcer(fuse_req_t req);

/* A handle on NODE (referenced). NULL when out of memory. */
struct handle *handle_create(struct fs *fs, struct node *node);
void handle_destroy(struct handle *h); /* takes NULL */
/* The kernel does not close what was open when a connection ends. */
void handle_fini(struct fs *fs);

/* ops.c */
extern const struct fuse_lowlevel_ops fs_ops;
/* main.c: end the mount, for REASON (a word for the log). */
void fs_end(struct fs *fs, const char *reason, int exit_code);
/* Of a bounded run that ended by itself: 1 when something was buried. */
int fs_run_exit_code(const struct fs *fs);
/* Hands cfg's policies to the engine and the log. */
void fs_configure(struct fs *fs);
struct engine_config fs_engine_config(const struct fs *fs);

/* mount.c */
/* Checks the mount point, frees a stale one, opens what lies in it for adopt.
 * 0 or -errno with a line in ERR. */
int mount_prepare(struct fs *fs, char *err, size_t err_len);
int mount_adopt(struct fs *fs, char *err, size_t err_len);

#endif
