/* SPDX-License-Identifier: MIT */
/* Rows of the tables as messages, and what is done with those of another queue. */
#ifndef SPOOLFS_DRIVERS_SQLITE_ROWS_H
#define SPOOLFS_DRIVERS_SQLITE_ROWS_H

#include "sqlite_int.h"

/* One more in the array, from a row with the columns of MSG_COLS. */
int sq_push_msg(struct sq *s, sqlite3_stmt *st, struct driver_msg **msgs, unsigned *n);
char *sq_format_receipt(struct sq *s, int64_t n);
int sq_need_body(struct sq *s, int64_t id, struct blob **out);
/* *out = a copy of column I, or NULL where it is NULL. */
int sq_copy_text(struct sq *s, sqlite3_stmt *st, int i, char **out);
/* An instant of the file, on this process's monotonic clock; and one to come. */
int64_t sq_mono_of(int64_t wall_us);
int64_t sq_us_from_now(int64_t ns);
int sq_load(struct sq *s, struct driver_req *req);
int sq_keep(struct sq *s, struct driver_req *req);
int sq_recall(struct sq *s, struct driver_req *req);
int sq_keep_purge(struct sq *s);

#endif
