/* SPDX-License-Identifier: MIT */
/*
 * Tables, statements, and what a file must be to be opened.
 *
 * A body is written once: message, dead letter and draft are small rows with
 * the id of their body, and change hands without touching it. All kinds of
 * ids come from one counter, so a draft keeps its id as a message.
 *
 * message.visible_at is 0 while a message is waiting; else the wall clock, in
 * microseconds, when its lease (mount is set) or delay (mount is NULL) ends.
 * So the index has all waiting messages first, in queue order, and then the
 * others in the order in which they fall due: both ends are found at once,
 * however many of either kind there are.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "sqlite_int.h"

#define APPLICATION_ID 0x73706f6c /* "spol" */
#define USER_VERSION   2
#define STRING(x)      #x
#define STRING_OF(x)   STRING(x)

/* What a receive turns back into waiting messages at one go: a bound on how
 * long the worker is kept when very many fall due at once. */
#define DUE_AT_ONCE "4096"

/*
 * Since version 2: drafts that are complete, and messages of another queue
 * (sqlite_keep.c). A kept message with a record is claimed here.
 */
static const char version_2[] =
	"ALTER TABLE draft ADD COLUMN outbox INTEGER NOT NULL DEFAULT 0;"
	"CREATE TABLE kept("
	"id TEXT PRIMARY KEY, mount INTEGER, receipt TEXT, enqueued_us INTEGER,"
	"lease_until_us INTEGER, attempts INTEGER NOT NULL, dequeue_count INTEGER,"
	"record TEXT, data BLOB, reason TEXT, seen_us INTEGER NOT NULL DEFAULT 0);"
	"PRAGMA user_version=" STRING_OF(USER_VERSION) ";";

static const char tables[] =
	"CREATE TABLE state("
	"one INTEGER PRIMARY KEY CHECK(one=1), last_us INTEGER NOT NULL,"
	"last_id INTEGER NOT NULL, waiting INTEGER NOT NULL,"
	"leased INTEGER NOT NULL, dead INTEGER NOT NULL, syncs INTEGER NOT NULL);"
	"INSERT INTO state VALUES(1,0,0,0,0,0,0);"
	"CREATE TABLE body(id INTEGER PRIMARY KEY, data BLOB NOT NULL);"
	"CREATE TABLE message("
	"id INTEGER PRIMARY KEY, enqueued_us INTEGER NOT NULL,"
	"visible_at INTEGER NOT NULL DEFAULT 0, mount INTEGER,"
	"receipt INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0,"
	"dequeue_count INTEGER NOT NULL DEFAULT 0, size INTEGER NOT NULL,"
	"given TEXT, record TEXT);"
	"CREATE INDEX message_order ON message(visible_at, enqueued_us, mount);"
	"CREATE TABLE dead("
	"id INTEGER PRIMARY KEY, enqueued_us INTEGER NOT NULL,"
	"receipt INTEGER NOT NULL, attempts INTEGER NOT NULL,"
	"dequeue_count INTEGER NOT NULL, size INTEGER NOT NULL,"
	"given TEXT, reason TEXT);"
	"CREATE INDEX dead_order ON dead(enqueued_us);"
	"CREATE TABLE draft("
	"id INTEGER PRIMARY KEY, mount INTEGER NOT NULL, name TEXT NOT NULL,"
	"begun_ns INTEGER NOT NULL, mode INTEGER NOT NULL, uid INTEGER NOT NULL,"
	"gid INTEGER NOT NULL, size INTEGER NOT NULL);"
	"CREATE TABLE mount("
	"n INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE,"
	"alive INTEGER NOT NULL DEFAULT 1, hungry INTEGER NOT NULL DEFAULT 0,"
	"consumed_ns INTEGER NOT NULL DEFAULT 0);"
	"PRAGMA application_id=" STRING_OF(APPLICATION_ID) ";";

/* The columns that sqlite_ops.c reads a message from. */
#define MSG_COLS "id,enqueued_us,size,attempts,dequeue_count,receipt,given,"
/* A lease that is held by this very receipt. */
#define HELD " WHERE id=?1 AND receipt=?2 AND mount IS NOT NULL"

const char *const sq_sql[SQ_STMTS] = {
	[SQ_BEGIN_READ] = "BEGIN",
	[SQ_BEGIN_WRITE] = "BEGIN IMMEDIATE",
	[SQ_COMMIT] = "COMMIT",
	[SQ_ROLLBACK] = "ROLLBACK",
	[SQ_STATE_GET] = "SELECT last_us,last_id,waiting,leased,dead,syncs,"
			 "(SELECT count(*) FROM mount) FROM state",
	[SQ_STATE_SET] = "UPDATE state SET last_us=?1,last_id=?2,waiting=?3,leased=?4,"
			 "dead=?5,syncs=?6",
	[SQ_VERSION] = "PRAGMA data_version",

	[SQ_DUE] = "SELECT visible_at FROM message WHERE visible_at>0"
		   " ORDER BY visible_at LIMIT 1",
	[SQ_NEXT_DUE] = "SELECT visible_at FROM message WHERE visible_at>0"
			" AND mount IS NOT ?1 ORDER BY visible_at LIMIT 1",
	[SQ_WAKE] = "UPDATE message SET visible_at=0 WHERE id IN(SELECT id FROM message"
		    " WHERE visible_at BETWEEN 1 AND ?1 AND mount IS NULL"
		    " ORDER BY visible_at LIMIT " DUE_AT_ONCE ")",
	[SQ_EXPIRE] = "UPDATE message SET visible_at=0,mount=NULL,"
		      "attempts=attempts+(record IS NOT NULL),record=NULL"
		      " WHERE id IN(SELECT id FROM message"
		      " WHERE visible_at BETWEEN 1 AND ?1 AND mount IS NOT NULL"
		      " ORDER BY visible_at LIMIT " DUE_AT_ONCE ")",
	[SQ_PICK] = "SELECT " MSG_COLS "NULL FROM message WHERE visible_at=0"
		    " ORDER BY enqueued_us LIMIT ?1",
	[SQ_LEASE] = "UPDATE message SET visible_at=?2,mount=?3,receipt=receipt+1,"
		     "dequeue_count=dequeue_count+1 WHERE id=?1",
	[SQ_BODY] = "SELECT data FROM body WHERE id=?1",

	[SQ_EXISTS] = "SELECT 1 FROM message WHERE id=?1",
	[SQ_DELETE] = "DELETE FROM message" HELD,
	[SQ_BODY_DELETE] = "DELETE FROM body WHERE id=?1",
	[SQ_RELEASE] = "UPDATE message SET visible_at=?3,mount=NULL,record=NULL,"
		       "attempts=?4" HELD,
	[SQ_RENEW] = "UPDATE message SET visible_at=?3" HELD,
	[SQ_RECORD] = "UPDATE message SET record=?3" HELD,
	[SQ_BURY] = "INSERT INTO dead(id,enqueued_us,receipt,attempts,dequeue_count,"
		    "size,given,reason) SELECT id,enqueued_us,receipt,?3,dequeue_count,"
		    "size,given,?4 FROM message" HELD,
	[SQ_REVIVE] = "INSERT INTO message(id,enqueued_us,receipt,dequeue_count,size,"
		      "given) SELECT id,enqueued_us,receipt,dequeue_count,size,given"
		      " FROM dead WHERE id=?1",
	[SQ_DEAD_DELETE] = "DELETE FROM dead WHERE id=?1",

	[SQ_BODY_NEW] = "INSERT INTO body(id,data) VALUES(?1,?2)",
	[SQ_BODY_SET] = "UPDATE body SET data=?2 WHERE id=?1",
	[SQ_SEND] = "INSERT INTO message(id,enqueued_us,size,given) VALUES(?1,?2,?3,?4)",
	[SQ_DRAFT_NEW] = "INSERT INTO draft(id,mount,name,begun_ns,mode,uid,gid,size)"
			 " VALUES(?1,?2,?3,?4,?5,?6,?7,?8)",
	[SQ_DRAFT_SET] = "UPDATE draft SET name=?3,begun_ns=?4,mode=?5,uid=?6,gid=?7,"
			 "size=?8 WHERE id=?1 AND mount=?2",
	[SQ_DRAFT_NAME] = "UPDATE draft SET name=?3 WHERE id=?1 AND mount=?2",
	[SQ_DRAFT_SEND] = "INSERT INTO message(id,enqueued_us,size,given)"
			  " SELECT id,?3,size,?4 FROM draft WHERE id=?1 AND mount=?2",
	[SQ_DRAFT_SEAL] = "UPDATE draft SET outbox=1 WHERE id=?1 AND mount=?2",
	[SQ_DRAFT_SEALED] = "SELECT outbox FROM draft WHERE id=?1",
	[SQ_DRAFT_DELETE] = "DELETE FROM draft WHERE id=?1 AND mount=?2",

	[SQ_DRAFTS] =
		"SELECT id,name,begun_ns,mode,uid,gid,outbox FROM draft WHERE mount=?1"
		" ORDER BY id",
	[SQ_LEASED] = "SELECT " MSG_COLS "record FROM message"
		      " WHERE visible_at>0 AND mount=?1 ORDER BY enqueued_us",
	[SQ_LEASE_AGAIN] = "UPDATE message SET visible_at=?2,receipt=receipt+1"
			   " WHERE id=?1",
	[SQ_DEAD] = "SELECT " MSG_COLS "reason FROM dead ORDER BY enqueued_us LIMIT ?1",
	[SQ_DEAD_BODY] = "SELECT data FROM dead JOIN body USING(id) WHERE id=?1",

	[SQ_MOUNT_FIND] = "SELECT n FROM mount WHERE identity=?1",
	[SQ_MOUNT_NEW] = "INSERT INTO mount(identity) VALUES(?1)",
	[SQ_MOUNT_ALIVE] = "UPDATE mount SET alive=?2,hungry=0 WHERE n=?1",
	[SQ_MOUNTS] = "SELECT n,alive,hungry,consumed_ns FROM mount WHERE n<>?1",
	[SQ_APPETITE] = "UPDATE mount SET hungry=?2,consumed_ns=?3 WHERE n=?1",
	[SQ_MOUNT_RETURN] = "UPDATE message SET visible_at=0,mount=NULL"
			    " WHERE visible_at>0 AND mount=?1 AND record IS NULL",
	[SQ_MOUNT_ADOPT] = "UPDATE draft SET mount=?2 WHERE mount=?1",
	[SQ_MOUNT_DROP] = "DELETE FROM mount WHERE n=?1 AND NOT EXISTS(SELECT 1 FROM"
			  " message WHERE visible_at>0 AND mount=?1) AND NOT EXISTS("
			  "SELECT 1 FROM draft WHERE mount=?1) AND NOT EXISTS("
			  "SELECT 1 FROM kept WHERE mount=?1)",

	[SQ_KEEP] = "INSERT OR REPLACE INTO kept(id,mount,receipt,enqueued_us,"
		    "lease_until_us,attempts,dequeue_count,record,data)"
		    " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)",
	[SQ_KEEP_RENEW] = "UPDATE kept SET receipt=?2,lease_until_us=?3 WHERE id=?1",
	[SQ_KEEP_COUNT] = "INSERT OR REPLACE INTO kept(id,attempts,reason,seen_us)"
			  " VALUES(?1,?2,?3,?4)",
	[SQ_KEEP_FORGET] = "DELETE FROM kept WHERE id=?1",
	[SQ_KEEP_PURGE] = "DELETE FROM kept"
			  " WHERE max(seen_us,coalesce(lease_until_us,0))<?1",
	[SQ_KEPT_ELSEWHERE] = "SELECT count(*) FROM kept"
			      " WHERE id=?1 AND record IS NOT NULL AND mount<>?2",
	[SQ_KEPT_SEEN] = "UPDATE kept SET seen_us=?2"
			 " WHERE id=?1 AND record IS NULL AND seen_us<?3",
	[SQ_KEPT] = "SELECT id,enqueued_us,length(data),attempts,dequeue_count,receipt,"
		    "NULL,record,lease_until_us,data FROM kept"
		    " WHERE mount=?1 AND record IS NOT NULL",
	[SQ_RECALL] = "SELECT attempts,reason,record IS NOT NULL FROM kept WHERE id=?1",
};

static int int_of(struct sq *s, const char *sql, int64_t *out)
{
	sqlite3_stmt *st;
	int rc = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL);
	int r;

	if (rc != SQLITE_OK)
		return sq_fail(s, rc);
	r = sq_step(s, st);
	*out = r > 0 ? sqlite3_column_int64(st, 0) : 0;
	sqlite3_finalize(st);
	return r < 0 ? r : 0;
}

/* The version of a file that is ours; 0: empty, to be made. */
static int judge(struct sq *s, int64_t app, int64_t version, int64_t tables_n)
{
	if (app == 0 && version == 0 && tables_n == 0)
		return 0;
	if (app != APPLICATION_ID)
		return sq_say(
			s, -EINVAL, "it is an SQLite database, but not a spoolfs queue");
	if (version > USER_VERSION)
		return sq_say(s, -EINVAL, "it was made by a newer version of spoolfs");
	return (int)version;
}

/* In one transaction: another process may be making the tables just now. */
static int identify(struct sq *s)
{
	int64_t app = 0, version = 0, tables_n = 0;
	int r = sq_script(s, "BEGIN");

	if (r < 0)
		return r;
	r = int_of(s, "PRAGMA application_id", &app);
	if (r == 0)
		r = int_of(s, "PRAGMA user_version", &version);
	if (r == 0)
		r = int_of(s, "SELECT count(*) FROM sqlite_master", &tables_n);
	if (r == 0)
		r = sq_script(s, "COMMIT");
	return r < 0 ? r : judge(s, app, version, tables_n);
}

/* Waits for another process: 50 us, doubled up to 5 ms, about 2 s in all. */
static int busy(void *arg, int count)
{
	struct timespec ts = {.tv_nsec = count < 7 ? 50000L << count : 5000000L};

	(void)arg;
	if (count > 400)
		return 0;
	(void)nanosleep(&ts, NULL);
	return 1;
}

int sq_schema_open(struct sq *s)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
	int rc = sqlite3_open_v2(s->path, &s->db, flags, NULL);
	int r;

	if (rc != SQLITE_OK)
		return sq_fail(s, rc);
	sqlite3_busy_handler(s->db, busy, NULL);
	if (sqlite3_db_readonly(s->db, "main") == 1)
		return sq_say(s, -EACCES, "the file is read-only");
	r = identify(s);
	return r < 0 ? r : 0;
}

static int make_wal(struct sq *s)
{
	sqlite3_stmt *st;
	int rc = sqlite3_prepare_v2(s->db, "PRAGMA journal_mode=WAL", -1, &st, NULL);
	const unsigned char *mode;
	int r;

	if (rc != SQLITE_OK)
		return sq_fail(s, rc);
	r = sq_step(s, st);
	mode = r > 0 ? sqlite3_column_text(st, 0) : NULL;
	if (r >= 0 && (!mode || strcmp((const char *)mode, "wal") != 0))
		r = sq_say(s, -EIO, "the file cannot be used in WAL mode");
	sqlite3_finalize(st);
	return r < 0 ? r : 0;
}

/* The caller keeps other processes from doing the same (sqlite_file.c). */
static int make_tables(struct sq *s)
{
	int version = identify(s);
	int r;

	if (version < 0 || version == USER_VERSION)
		return version < 0 ? version : 0;
	r = sq_script(s, "BEGIN IMMEDIATE");
	if (r == 0 && version == 0)
		r = sq_script(s, tables);
	if (r == 0)
		r = sq_script(s, version_2);
	if (r == 0)
		r = sq_script(s, "COMMIT");
	return r;
}

static int prepare(struct sq *s)
{
	for (int i = 0; i < SQ_STMTS; i++) {
		int rc = sqlite3_prepare_v3(s->db, sq_sql[i], -1,
			SQLITE_PREPARE_PERSISTENT, &s->stmt[i], NULL);

		if (rc == SQLITE_ERROR)
			return sq_say(s, -EIO, "the queue file is damaged: %s",
				sqlite3_errmsg(s->db));
		if (rc != SQLITE_OK)
			return sq_fail(s, rc);
	}
	return 0;
}

/* secure_delete: some distributions build SQLite with it on, which writes every
 * page of a body a second time when the message is deleted. FAST overwrites
 * what costs no further page. */
int sq_schema_init(struct sq *s)
{
	int r = sq_script(s, "PRAGMA synchronous=FULL");

	s->full_sync = true;
	if (r == 0)
		r = make_wal(s);
	if (r == 0)
		r = make_tables(s);
	if (r == 0)
		r = sq_script(s, "PRAGMA secure_delete=FAST;"
				 "PRAGMA mmap_size=0;"
				 "PRAGMA cache_size=-8000;"
				 "PRAGMA temp_store=MEMORY;"
				 "PRAGMA journal_size_limit=67108864;");
	return r < 0 ? r : prepare(s);
}
