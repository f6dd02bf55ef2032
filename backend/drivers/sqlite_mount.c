/* SPDX-License-Identifier: MIT */
/*
 * Who has the queue mounted.
 *
 * A row of table mount is live while its byte of the lock file is locked.
 * What a dead one held goes three ways: messages that nobody had claimed are
 * waiting again at once, and it is no attempt; claimed ones wait for the end
 * of their lease, since their consumers may outlive the daemon, and its next
 * life asks for them by its identity (those of another queue, too); drafts are adopted by
 * the mount that is being opened, so that no writer's data is out of sight (not by a run
 * without a mount: the row stays, for the next one that shows them).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sqlite_rows.h"

/* The row of IDENTITY, made if missing; 0 when a live mount has it. */
static int find(struct sq *s, const char *identity, int64_t *n)
{
	int r;

	sq_start(s, SQ_MOUNT_FIND, "t", identity);
	r = sq_int(s, SQ_MOUNT_FIND, n, 0);
	if (r == 0 && *n == 0) {
		r = sq_exec(s, SQ_MOUNT_NEW, "t", identity);
		*n = sqlite3_last_insert_rowid(s->db);
	}
	if (r < 0)
		return r;
	r = sq_file_lock(s, *n);
	if (r == 0)
		*n = 0;
	return r < 0 ? r : 0;
}

/* The same mount point may be in use in another container: then this one has
 * an identity of its own. */
static int find_free(struct sq *s, const char *identity)
{
	int r = find(s, identity, &s->mount);

	for (unsigned i = 2; r == 0 && s->mount == 0; i++) {
		char *other;

		if (asprintf(&other, "%s#%u", identity, i) < 0)
			return sq_oom(s);
		r = find(s, other, &s->mount);
		free(other);
	}
	return r;
}

/* Of 20 ms each. */
#define OWN_TRIES 100

static int give_back(struct sq *s, int64_t n)
{
	int r = sq_exec(s, SQ_MOUNT_RETURN, "i", n);

	if (r < 0)
		return r;
	s->state.leased -= r;
	s->state.waiting += r;
	s->ring = s->ring || r > 0;
	r = sq_exec(s, SQ_MOUNT_ALIVE, "ii", n, (int64_t)0);
	return r < 0 ? r : 0;
}

static int bury_mount(struct sq *s, int64_t n)
{
	int r = give_back(s, n);

	if (r == 0 && !s->no_drafts)
		r = sq_exec(s, SQ_MOUNT_ADOPT, "ii", n, s->mount);
	if (r >= 0)
		r = sq_exec(s, SQ_MOUNT_DROP, "i", n);
	return r < 0 ? r : 0;
}

/* Nobody enters meanwhile: that takes the write transaction that we have. */
static int take_over(struct sq *s)
{
	sqlite3_stmt *st = sq_start(s, SQ_MOUNTS, "i", s->mount);
	int r = 0, more;

	while ((more = sq_step(s, st)) > 0 && r == 0) {
		int64_t n = sqlite3_column_int64(st, 0);

		if (!sq_file_locked(s, n))
			r = bury_mount(s, n);
	}
	sqlite3_reset(st);
	return more < 0 ? more : r;
}

/*
 * The own identity, with the transaction begun. The daemon before this one may
 * still be ending: umount(8) returns before it has. So wait for a while, outside
 * of the transaction that it needs itself; then somebody else really has it.
 */
static int enter_own(struct sq *s, const char *identity)
{
	static const struct timespec step = {0, 20000000};
	int r = 0;

	for (int i = 0; r == 0 && i < OWN_TRIES; i++) {
		r = sq_begin(s, true, true);
		if (r == 0)
			r = find(s, identity, &s->mount);
		if (r < 0 || s->mount)
			return r;
		sq_rollback(s);
		nanosleep(&step, NULL);
	}
	r = r ? r : sq_begin(s, true, true);
	return r ? r : find_free(s, identity);
}

int sq_mount_enter(struct sq *s, const char *identity)
{
	int r = enter_own(s, identity);

	if (r == 0)
		sq_wal_lengthen(s);
	if (r == 0)
		r = sq_exec(s, SQ_MOUNT_ALIVE, "ii", s->mount, (int64_t)1);
	if (r >= 0)
		r = take_over(s);
	if (r == 0)
		r = sq_keep_purge(s);
	if (r == 0)
		r = sq_commit(s);
	if (r < 0)
		sq_rollback(s);
	else if (s->ring)
		sq_file_ring(s);
	return r;
}

static int tell(struct sq *s, const struct driver_appetite *mine)
{
	int r;

	if (mine->hungry == s->told.hungry && mine->consumed_ns == s->told.consumed_ns)
		return 0;
	r = sq_exec(s, SQ_APPETITE, "iii", s->mount, (int64_t)mine->hungry,
		mine->consumed_ns);
	s->tell = *mine;
	s->ring = true;
	return r < 0 ? r : 0;
}

static void count_peer(struct driver_req *req, sqlite3_stmt *st)
{
	struct driver_appetite *any = &req->u.peers.any;
	int64_t consumed_ns = sqlite3_column_int64(st, 3);

	req->u.peers.n_peers++;
	if (!sqlite3_column_int(st, 2))
		return;
	any->hungry = true;
	if (consumed_ns > any->consumed_ns)
		any->consumed_ns = consumed_ns;
}

/* A mount that was killed is noticed here too; its drafts wait for the next
 * mount that opens the queue and will load them. */
int sq_mount_peers(struct sq *s, struct driver_req *req)
{
	int r = tell(s, &req->u.peers.mine), more = 0;
	sqlite3_stmt *st = sq_start(s, SQ_MOUNTS, "i", s->mount);

	while (r == 0 && (more = sq_step(s, st)) > 0) {
		int64_t n = sqlite3_column_int64(st, 0);

		if (sq_file_locked(s, n))
			count_peer(req, st);
		else if (sqlite3_column_int(st, 1))
			r = give_back(s, n);
	}
	sqlite3_reset(st);
	return more < 0 ? more : r;
}
