/* SPDX-License-Identifier: MIT */
/* Files with secrets: which are taken, and when they were changed. */
#ifndef SPOOLFS_WIRE_ACCOUNT_FILE_H
#define SPOOLFS_WIRE_ACCOUNT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "../base/buf.h"
#include "../base/loop.h"

#define ACCOUNT_FILE_MAX ((size_t)64 << 10)

enum account_file {
	/* Only its owner may read it, and it is no symbolic link; but on a mount
	 * that cannot be written, or in memory where we could not put it, it is
	 * what an orchestrator gives to us alone, whatever its mode says. */
	ACCOUNT_FILE_SECRET,
	/* A short-lived assertion, which its issuer puts where it likes. */
	ACCOUNT_FILE_TOKEN,
};

/* What is known of a file before it is read. */
struct account_file_facts {
	mode_t mode;
	bool link;      /* its name is a symbolic link */
	bool read_only; /* its mount is */
	bool in_memory; /* tmpfs or ramfs, and its directory is not ours to write */
};

/* NULL when a secret may be read from it, else why not. Pure. */
const char *account_file_wrong(const struct account_file_facts *f);

/*
 * The whole file in OUT, which is emptied before. 0, -ENOMEM, or with a line in
 * ERR: -EACCES (missing, not readable, readable to others), -EINVAL (no regular
 * file, longer than ACCOUNT_FILE_MAX). Wipe OUT with account_buf_wipe().
 */
int account_file_read(const char *path, enum account_file kind, struct buf *out,
	char *err, size_t err_len);
void account_buf_wipe(struct buf *b);

/*
 * Calls changed() when something happened to the file, perhaps nothing: look.
 * Watches its directory, since whoever replaces a file renames another over it,
 * and a kubelet replaces a link beside it. Zero-initialise.
 */
struct account_watch {
	struct loop *loop;
	struct loop_fd fd;
	int inotify; /* 0: none */
	char *name;  /* without its directory */
	loop_fn *changed;
	void *arg;
};

/* 0 or -errno: the file is not watched, and nothing must be undone. */
int account_watch_start(struct account_watch *w, struct loop *loop, const char *path,
	loop_fn *changed, void *arg);
void account_watch_stop(struct account_watch *w);

#endif
