/* SPDX-License-Identifier: MIT */
/*
 * The inside of the SQLite driver.
 *
 *   sqlite.c         open, close, submit: the loop's side
 *   sqlite_worker.c  the thread: batches, transactions, answers
 *   sqlite_db.c      the connection: statements, errors, the state row
 *   sqlite_schema.c  tables, and what a file must be to be opened
 *   sqlite_file.c    paths, permissions, locks of the file beside the database
 *   sqlite_ops.c     one function per request
 *   sqlite_settle.c  one function per settle operation
 *   sqlite_keep.c    messages of another queue
 *   sqlite_load.c    what an earlier life left
 *   sqlite_mount.c   who has the queue mounted; taking over from the dead
 *   sqlite_wal.c     a log whose length does not change
 *   sqlite_watch.c   noticing the commits of other mounts
 *
 * After sq_open() the connection and all below "the worker's" belong to the
 * worker thread, until it has been joined. Functions return 0 (or a count)
 * or -errno. One that met an error of SQLite, or no memory, has also set
 * `broken`: the transaction must be rolled back. An error without it (the
 * message is gone) has changed nothing.
 */
#ifndef SPOOLFS_DRIVERS_SQLITE_INT_H
#define SPOOLFS_DRIVERS_SQLITE_INT_H

#include <pthread.h>
#include <sqlite3.h>

#include "../base/loop.h"
#include "driver.h"
#include "sqlite_file.h"
#include "sqlite_sql.h"

#define SQ_MAX_BODY    ((uint64_t)64 << 20)
#define SQ_MAX_RECEIVE 1024

TAILQ_HEAD(sq_reqs, driver_req);

/* The one row of table state: what all mounts share. Only int64_t: it is
 * compared as bytes. Read when a transaction begins, written when it ends. */
struct sq_state {
	int64_t last_us; /* the newest enqueue time given */
	int64_t last_id; /* the newest id given to a message or draft */
	int64_t waiting, leased, dead;
	int64_t syncs; /* makes a SYNC have something to write */
};

struct sq_watch {
	int fd; /* inotify */
	struct loop_fd w;
	struct loop_timer timer;
	int64_t next_ns; /* not looked at again before */
};

struct sq {
	struct driver_base base;
	char *path; /* absolute, symlinks resolved */

	/* the loop's */
	struct loop *loop;
	void (*on_change)(void *arg);
	void *arg;
	int event_fd;
	struct loop_fd event;
	size_t submitted; /* not yet done */
	struct sq_watch watch;

	/* shared */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct sq_reqs queue;
	struct sq_reqs answered;
	size_t urgent; /* of those queued: not to be put off */
	bool stop;
	bool look;    /* did another connection commit? */
	bool changed; /* it did */

	/* the worker's */
	pthread_t thread;
	bool running;
	sqlite3 *db;
	sqlite3_stmt *stmt[SQ_STMTS];
	struct sq_state state;
	struct sq_state state_read; /* as it was read */
	int64_t mounts;             /* rows of table mount */
	int64_t version;            /* PRAGMA data_version */
	int wal_frames;
	bool full_sync; /* PRAGMA synchronous is FULL */
	bool ring;      /* this transaction concerns the other mounts */
	bool broken;
	int err;       /* with broken */
	char why[512]; /* one line; paths are long */
	int64_t mount; /* own row, and own byte of the lock file */
	bool no_drafts;
	int lock_fd;
	int64_t receipts[SQ_MAX_RECEIVE]; /* of the receive under way */
	/* own appetite as stored, and as it is once this is committed */
	struct driver_appetite told, tell;
};

/* sqlite_wal.c; with the write transaction begun. Frames: a checkpoint's worth. */
#define SQ_CHECKPOINT_FRAMES 2000
void sq_wal_lengthen(struct sq *s);

/* sqlite_db.c */
/* Note an error of SQLite / the system / memory. They return its -errno. */
int sq_fail(struct sq *s, int rc);
int sq_say(struct sq *s, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int sq_oom(struct sq *s);
/*
 * Binds: i int64_t, t const char * (may be NULL), b const struct blob *.
 * sq_start() readies a statement for sq_step() (1 row, 0 end, -errno), which
 * sqlite3_reset() must end. sq_exec() runs it: rows changed, or -errno.
 */
sqlite3_stmt *sq_start(struct sq *s, enum sq_stmt n, const char *types, ...);
int sq_step(struct sq *s, sqlite3_stmt *st);
int sq_exec(struct sq *s, enum sq_stmt n, const char *types, ...);
/* Runs SQL text that is used once. */
int sq_script(struct sq *s, const char *sql);
/* The first column of the first row, or ABSENT. */
int sq_int(struct sq *s, enum sq_stmt n, int64_t *out, int64_t absent);
/* The decimal number TEXT, or -1. */
int64_t sq_number(const char *text);
int sq_begin(struct sq *s, bool write, bool durable);
int sq_commit(struct sq *s);
void sq_rollback(struct sq *s);

/* sqlite_schema.c */
/* Opens the connection and looks, without changing anything. */
int sq_schema_open(struct sq *s);
/* Makes what is missing and prepares the statements. */
int sq_schema_init(struct sq *s);

/* sqlite_worker.c */
int sq_worker_start(struct sq *s);
/* Ends the thread; all that was submitted must be done. */
void sq_worker_stop(struct sq *s);

/* sqlite_ops.c (more in sqlite_rows.h), _settle.c, _mount.c, _watch.c */
int sq_op(struct sq *s, struct driver_req *req);
void sq_settle(struct sq *s, struct settle *it);
int sq_mount_enter(struct sq *s, const char *identity);
int sq_mount_peers(struct sq *s, struct driver_req *req);
int sq_watch_start(struct sq *s);
void sq_watch_stop(struct sq *s);

#endif
