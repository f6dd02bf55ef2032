/* SPDX-License-Identifier: MIT */
/* How each request is answered: what ops.c calls, file by file. */
#ifndef SPOOLFS_FS_SERVE_H
#define SPOOLFS_FS_SERVE_H

#include "node.h"

/* dir.c */
void dir_lookup(fuse_req_t req, struct node *parent, const char *name);
void dir_open(fuse_req_t req, struct node *node, struct fuse_file_info *fi);
void dir_read(
	fuse_req_t req, size_t size, off_t off, struct fuse_file_info *fi, bool plus);
void dir_release(fuse_req_t req, struct fuse_file_info *fi);
void listing_destroy(struct listing *l);
/* The draft that NAME means to the caller, or NULL. */
struct entry *dir_find_draft(fuse_req_t req, const char *name);

/* read.c */
void read_open(fuse_req_t req, struct node *node, struct fuse_file_info *fi);
void read_open_letter(fuse_req_t req, struct node *node, struct fuse_file_info *fi);
void read_reply(fuse_req_t req, struct handle *h, size_t size, off_t off);
void read_release(struct handle *h);

/* write.c */
void write_create(fuse_req_t req, struct node *parent, const char *name, mode_t mode,
	struct fuse_file_info *fi);
void write_open(fuse_req_t req, struct node *node, struct fuse_file_info *fi);
/* Names that the caller sent a moment ago stop answering. */
void write_forget_sent(fuse_req_t req, const char *name, const struct entry *except);
void write_data(fuse_req_t req, struct handle *h, const char *data, size_t n, off_t off);
void write_flush(fuse_req_t req, struct handle *h, bool closing);
void write_release(struct handle *h);

/* change.c */
void change_unlink(fuse_req_t req, struct node *parent, const char *name);
void change_rename(fuse_req_t req, struct node *from, const char *name, struct node *to,
	const char *newname, unsigned flags);
void change_attr(fuse_req_t req, struct node *node, const struct stat *attr, int set,
	struct fuse_file_info *fi);

/* next.c */
void next_init(struct fs *fs);
void next_fini(struct fs *fs);
void next_open(fuse_req_t req, struct node *node, struct fuse_file_info *fi);
void next_read(fuse_req_t req, struct handle *h, size_t size, off_t off, bool nonblock);
void next_poll(fuse_req_t req, struct handle *h, struct fuse_pollhandle *ph);
void next_release(struct handle *h);
void next_ready_changed(struct fs *fs);

/* control_file.c */
void control_init(struct fs *fs);
void control_fini(struct fs *fs);
void control_open(fuse_req_t req, struct node *node, struct fuse_file_info *fi);
void control_read(fuse_req_t req, struct handle *h, size_t size, off_t off);
void control_write(fuse_req_t req, struct handle *h, const char *data, size_t n);
int control_flush(struct handle *h);
void control_poll(fuse_req_t req, struct handle *h, struct fuse_pollhandle *ph);
void control_fsync(fuse_req_t req, struct handle *h);
void control_release(struct handle *h);
/* Something that .control tells changed: its watchers hear of it soon. */
void control_changed(struct fs *fs);
/* The present text of NODE (.control, .status.json or .metrics) into OUT. */
int control_text(struct fs *fs, const struct node *node, struct buf *out);

/* xattr.c */
void xattr_get(fuse_req_t req, struct node *node, const char *name, size_t size);
void xattr_list(fuse_req_t req, struct node *node, size_t size);

#endif
