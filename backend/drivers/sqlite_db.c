/* SPDX-License-Identifier: MIT */
/* The connection: statements, errors, transactions, the state row. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sqlite_int.h"

/* The closed set of driver errors for a result code of SQLite. */
static int errno_of(int rc, int system)
{
	switch (rc & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_PROTOCOL: /* lost too many races for a lock */
		return -EAGAIN;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return -EACCES;
	case SQLITE_CANTOPEN:
		return system == ENOSPC ? -ENOSPC : -EACCES;
	case SQLITE_IOERR:
		if (rc == SQLITE_IOERR_NOMEM)
			return -ENOMEM;
		return system == ENOSPC || system == EDQUOT ? -ENOSPC : -EIO;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_TOOBIG:
		return -EMSGSIZE;
	default:
		return -EIO;
	}
}

static const char *text_of(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_PROTOCOL:
		return "the queue file is locked by another process";
	case SQLITE_NOTADB:
		return "the file is not an SQLite database, or it is damaged";
	case SQLITE_CORRUPT:
		return "the queue file is damaged";
	case SQLITE_FULL:
		return "no space left for the queue file";
	case SQLITE_READONLY:
		return "the queue file or its directory is read-only";
	case SQLITE_CANTOPEN:
		return "the queue file cannot be opened";
	default:
		return NULL;
	}
}

int sq_say(struct sq *s, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->why, sizeof(s->why), fmt, ap);
	va_end(ap);
	s->err = err;
	s->broken = true;
	return err;
}

int sq_fail(struct sq *s, int rc)
{
	int system = sqlite3_system_errno(s->db);
	const char *text = text_of(rc);

	if (text)
		return sq_say(s, errno_of(rc, system), "%s", text);
	return sq_say(s, errno_of(rc, system), "SQLite: %s%s%s", sqlite3_errmsg(s->db),
		system ? ": " : "", system ? strerrordesc_np(system) : "");
}

int sq_oom(struct sq *s)
{
	return sq_say(s, -ENOMEM, "out of memory");
}

static int bind_blob(sqlite3_stmt *st, int i, const struct blob *b)
{
	if (b->len == 0)
		return sqlite3_bind_zeroblob(st, i, 0);
	return sqlite3_bind_blob64(st, i, b->data, b->len, SQLITE_STATIC);
}

/* Static binding is right: every caller keeps its arguments until the step. A
 * failure can only be of memory or size, and shows as a failing step. */
static void bind_all(sqlite3_stmt *st, const char *types, va_list ap)
{
	for (int i = 1; *types; i++, types++) {
		int rc = SQLITE_MISUSE;

		if (*types == 'i')
			rc = sqlite3_bind_int64(st, i, va_arg(ap, int64_t));
		else if (*types == 't')
			rc = sqlite3_bind_text(
				st, i, va_arg(ap, const char *), -1, SQLITE_STATIC);
		else if (*types == 'b')
			rc = bind_blob(st, i, va_arg(ap, const struct blob *));
		assert(rc == SQLITE_OK);
	}
}

sqlite3_stmt *sq_start(struct sq *s, enum sq_stmt n, const char *types, ...)
{
	va_list ap;

	sqlite3_reset(s->stmt[n]);
	va_start(ap, types);
	bind_all(s->stmt[n], types, ap);
	va_end(ap);
	return s->stmt[n];
}

int sq_step(struct sq *s, sqlite3_stmt *st)
{
	int rc = sqlite3_step(st);

	if (rc == SQLITE_ROW)
		return 1;
	return rc == SQLITE_DONE ? 0 : sq_fail(s, rc);
}

int sq_exec(struct sq *s, enum sq_stmt n, const char *types, ...)
{
	sqlite3_stmt *st = s->stmt[n];
	va_list ap;
	int r;

	va_start(ap, types);
	bind_all(st, types, ap);
	va_end(ap);
	r = sq_step(s, st);
	sqlite3_reset(st);
	return r < 0 ? r : sqlite3_changes(s->db);
}

int sq_script(struct sq *s, const char *sql)
{
	int rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : sq_fail(s, rc);
}

int sq_int(struct sq *s, enum sq_stmt n, int64_t *out, int64_t absent)
{
	int r = sq_step(s, s->stmt[n]);

	*out = r > 0 ? sqlite3_column_int64(s->stmt[n], 0) : absent;
	sqlite3_reset(s->stmt[n]);
	return r < 0 ? r : 0;
}

int64_t sq_number(const char *text)
{
	char *end;
	long long n;

	if (!text || *text < '0' || *text > '9')
		return -1;
	errno = 0;
	n = strtoll(text, &end, 10);
	return *end || errno ? -1 : n;
}

static int state_read(struct sq *s)
{
	sqlite3_stmt *st = sq_start(s, SQ_STATE_GET, "");
	struct sq_state *d = &s->state;
	int r = sq_step(s, st);

	if (r > 0) {
		d->last_us = sqlite3_column_int64(st, 0);
		d->last_id = sqlite3_column_int64(st, 1);
		d->waiting = sqlite3_column_int64(st, 2);
		d->leased = sqlite3_column_int64(st, 3);
		d->dead = sqlite3_column_int64(st, 4);
		d->syncs = sqlite3_column_int64(st, 5);
		s->mounts = sqlite3_column_int64(st, 6);
		s->state_read = *d;
	}
	sqlite3_reset(st);
	if (r == 0)
		return sq_say(s, -EIO, "the queue file is damaged: no state");
	return r < 0 ? r : 0;
}

static int state_write(struct sq *s)
{
	const struct sq_state *d = &s->state;
	int r;

	if (memcmp(d, &s->state_read, sizeof(*d)) == 0)
		return 0;
	r = sq_exec(s, SQ_STATE_SET, "iiiiii", d->last_us, d->last_id, d->waiting,
		d->leased, d->dead, d->syncs);
	return r < 0 ? r : 0;
}

/* Whether COMMIT waits for the disk. It may be changed between transactions
 * only, and takes effect when the text is compiled: no kept statement. */
static int set_sync(struct sq *s, bool full)
{
	int r;

	if (s->full_sync == full)
		return 0;
	r = sq_script(s, full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
	if (r == 0)
		s->full_sync = full;
	return r;
}

int sq_begin(struct sq *s, bool write, bool durable)
{
	int r;

	s->broken = false;
	s->ring = false;
	s->tell = s->told;
	r = write ? set_sync(s, durable) : 0;
	if (r == 0)
		r = sq_exec(s, write ? SQ_BEGIN_WRITE : SQ_BEGIN_READ, "");
	return r < 0 ? r : state_read(s);
}

int sq_commit(struct sq *s)
{
	int r = state_write(s);

	if (r == 0)
		r = sq_exec(s, SQ_COMMIT, "");
	if (r < 0)
		return r;
	s->told = s->tell;
	return 0;
}

/* Many errors have rolled back already; then this one is refused, rightly. */
void sq_rollback(struct sq *s)
{
	for (int i = 0; i < SQ_STMTS; i++)
		sqlite3_reset(s->stmt[i]);
	if (!sqlite3_get_autocommit(s->db)) {
		sqlite3_step(s->stmt[SQ_ROLLBACK]);
		sqlite3_reset(s->stmt[SQ_ROLLBACK]);
	}
}
