/* SPDX-License-Identifier: MIT */
/* The file of a queue and the lock file beside it; 0 or -errno, as in
 * sqlite_int.h. */
#ifndef SPOOLFS_DRIVERS_SQLITE_FILE_H
#define SPOOLFS_DRIVERS_SQLITE_FILE_H

#include <stdbool.h>
#include <stdint.h>

struct sq;

/* Finds or makes the file of SOURCE; sets s->path. */
int sq_file_find(struct sq *s, const char *source, bool create);
/* Opens PATH-lock, making it if missing; sets s->lock_fd. */
int sq_file_lock_open(struct sq *s);
/* Byte N of the lock file: 1 taken, 0 held by another, or -errno. */
int sq_file_lock(struct sq *s, int64_t n);
/* Tries for MS milliseconds. 0 or -errno. */
int sq_file_lock_wait(struct sq *s, int64_t n, int ms);
void sq_file_unlock(struct sq *s, int64_t n);
/* Whether another holds it. */
bool sq_file_locked(struct sq *s, int64_t n);
/* Tells the other mounts to look. */
void sq_file_ring(struct sq *s);
/* free() it. NULL: no memory. */
char *sq_file_lock_path(const struct sq *s);

#endif
