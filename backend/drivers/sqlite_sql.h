/* SPDX-License-Identifier: MIT */
/* The statements of the SQLite driver; their text is in sqlite_schema.c. */
#ifndef SPOOLFS_DRIVERS_SQLITE_SQL_H
#define SPOOLFS_DRIVERS_SQLITE_SQL_H

enum sq_stmt {
	/* transactions */
	SQ_BEGIN_READ,
	SQ_BEGIN_WRITE,
	SQ_COMMIT,
	SQ_ROLLBACK,
	SQ_STATE_GET,
	SQ_STATE_SET,
	SQ_VERSION,
	/* receive */
	SQ_DUE,
	SQ_NEXT_DUE,
	SQ_WAKE,
	SQ_EXPIRE,
	SQ_PICK,
	SQ_LEASE,
	SQ_BODY,
	/* settle */
	SQ_EXISTS,
	SQ_DELETE,
	SQ_BODY_DELETE,
	SQ_RELEASE,
	SQ_RENEW,
	SQ_RECORD,
	SQ_BURY,
	SQ_REVIVE,
	SQ_DEAD_DELETE,
	/* send, drafts */
	SQ_BODY_NEW,
	SQ_BODY_SET,
	SQ_SEND,
	SQ_DRAFT_NEW,
	SQ_DRAFT_SET,
	SQ_DRAFT_NAME,
	SQ_DRAFT_SEND,
	SQ_DRAFT_SEAL,
	SQ_DRAFT_SEALED,
	SQ_DRAFT_DELETE,
	/* lists */
	SQ_DRAFTS,
	SQ_LEASED,
	SQ_LEASE_AGAIN,
	SQ_DEAD,
	SQ_DEAD_BODY,
	/* mounts */
	SQ_MOUNT_FIND,
	SQ_MOUNT_NEW,
	SQ_MOUNT_ALIVE,
	SQ_MOUNTS,
	SQ_APPETITE,
	SQ_MOUNT_RETURN,
	SQ_MOUNT_ADOPT,
	SQ_MOUNT_DROP,
	/* messages of another queue */
	SQ_KEEP,
	SQ_KEEP_RENEW,
	SQ_KEEP_COUNT,
	SQ_KEEP_FORGET,
	SQ_KEEP_PURGE,
	SQ_KEPT_ELSEWHERE,
	SQ_KEPT_SEEN,
	SQ_KEPT,
	SQ_RECALL,

	SQ_STMTS
};

/* Their text, by number. */
extern const char *const sq_sql[SQ_STMTS];

#endif
