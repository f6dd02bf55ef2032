/* SPDX-License-Identifier: MIT */
/*
 * What reaches the disk, and what happens when it does not: a layer under
 * SQLite counts the syncs of the write-ahead log and can refuse them, or have
 * no room. The driver's thread calls it; each answer orders that with the test.
 */
#include <sqlite3.h>

#include "ask_settle.h"

static struct {
	sqlite3_vfs vfs; /* the default one, but for opening a log */
	sqlite3_vfs *real;
	sqlite3_io_methods log; /* those of a log file, but for ours */
	const sqlite3_io_methods *real_log;
	unsigned syncs;
	unsigned fail_syncs;
	sqlite3_int64 room; /* bytes that a log may have; 0 any */
} disk;

static int disk_sync(sqlite3_file *f, int flags)
{
	disk.syncs++;
	if (disk.fail_syncs > 0) {
		disk.fail_syncs--;
		return SQLITE_IOERR_FSYNC;
	}
	return disk.real_log->xSync(f, flags);
}

static int disk_write(sqlite3_file *f, const void *data, int len, sqlite3_int64 at)
{
	if (disk.room > 0 && at + len > disk.room)
		return SQLITE_FULL;
	return disk.real_log->xWrite(f, data, len, at);
}

static int disk_open(
	sqlite3_vfs *v, sqlite3_filename name, sqlite3_file *f, int flags, int *out)
{
	int rc = disk.real->xOpen(disk.real, name, f, flags, out);

	(void)v;
	if (rc != SQLITE_OK || !(flags & SQLITE_OPEN_WAL))
		return rc;
	disk.real_log = f->pMethods;
	disk.log = *f->pMethods;
	disk.log.xSync = disk_sync;
	disk.log.xWrite = disk_write;
	f->pMethods = &disk.log;
	return SQLITE_OK;
}

__attribute__((constructor)) static void put_under_sqlite(void)
{
	disk.real = sqlite3_vfs_find(NULL);
	disk.vfs = *disk.real;
	disk.vfs.zName = "counting";
	disk.vfs.xOpen = disk_open;
	sqlite3_vfs_register(&disk.vfs, 1);
}

static struct bed *init(struct bed *b)
{
	disk.room = 0;
	disk.fail_syncs = 0;
	CHECK(bed_init(b, bed_factories));
	free(ask_send(b, "first"));
	disk.syncs = 0;
	return b;
}

/* man: durable-close */
TEST(what_must_be_durable_is_synced_once)
{
	struct driver_req sync = {.op = DRIVER_SYNC};
	struct bed bed, *b = init(&bed);

	free(ask_send(b, "x"));
	CHECK_INT(disk.syncs, 1);
	ask_draft(b, 0, "draft", "x");
	CHECK_INT(disk.syncs, 2);
	CHECK_INT(ask(b, &sync), 0);
	CHECK_INT(disk.syncs, 3);
	bed_fini(b);
}

TEST(what_may_be_done_twice_is_not_waited_for)
{
	struct bed bed, *b = init(&bed);
	struct driver_req send = {.op = DRIVER_DRAFT_SEND}, got;

	send.u.draft.id = ask_draft(b, 0, "draft", "x");
	disk.syncs = 0;
	CHECK_INT(ask(b, &send), 0);
	got = ask_receive(b, 2);
	CHECK_INT(got.u.receive.n, 2);
	CHECK_INT(ask_claim(b, &got.u.receive.msgs[0], "record"), 0);
	CHECK_INT(ask_settle(b, SETTLE_DELETE, &got.u.receive.msgs[0]), 0);
	CHECK_INT(ask_release(b, &got.u.receive.msgs[1], 0, 1), 0);
	ask_depth(b, 1, 0, 0);
	CHECK_INT(disk.syncs, 0);
	driver_req_fini(&got);
	driver_req_fini(&send);
	bed_fini(b);
}

TEST(a_sync_that_fails_is_told_and_undone)
{
	struct driver_req req = {.op = DRIVER_SEND, .u.send.body = ask_blob("x")};
	struct bed bed, *b = init(&bed);

	disk.fail_syncs = 1;
	CHECK_INT(ask(b, &req), -EIO);
	CHECK(req.detail[0] && !req.u.send.id);
	ask_depth(b, 1, 0, 0);
	CHECK_INT(ask(b, &req), 0);
	ask_depth(b, 2, 0, 0);
	blob_unref(req.u.send.body);
	driver_req_fini(&req);
	bed_fini(b);
}

static void count_done(struct driver_req *req)
{
	(*(unsigned *)req->arg)++;
}

/* N requests that the worker finds together: it waits for a lock of ours, with
 * one before them, while they are queued. */
static void ask_together(struct bed *b, struct driver_req *reqs, unsigned n)
{
	struct driver_req before = {.op = DRIVER_SYNC};
	unsigned done = 0;
	sqlite3 *db;

	before.done = count_done;
	before.arg = &done;
	CHECK_INT(sqlite3_open(b->path, &db), SQLITE_OK);
	CHECK_INT(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	driver_submit(b->d, &before);
	for (unsigned i = 0; i < n; i++) {
		reqs[i].done = count_done;
		reqs[i].arg = &done;
		driver_submit(b->d, &reqs[i]);
	}
	CHECK_INT(sqlite3_close(db), SQLITE_OK);
	CHECK(bed_wait(b, &done, n + 1));
	CHECK_INT(before.err, 0);
}

TEST(what_is_queued_together_costs_one_sync)
{
	struct bed bed, *b = init(&bed);
	struct driver_req reqs[16] = {0};
	struct blob *body = ask_blob("x");

	for (int i = 0; i < 16; i++) {
		reqs[i].op = DRIVER_SEND;
		reqs[i].u.send.body = body;
	}
	ask_together(b, reqs, 16);
	CHECK(disk.syncs <= 2);
	for (int i = 0; i < 16; i++) {
		CHECK_INT(reqs[i].err, 0);
		driver_req_fini(&reqs[i]);
	}
	blob_unref(body);
	bed_fini(b);
}

TEST(one_that_has_no_room_does_not_fail_the_others)
{
	struct bed bed, *b = init(&bed);
	struct driver_req got = ask_receive(b, 1), reqs[3] = {0};
	struct settle it = {.op = SETTLE_DELETE};

	it.id = got.u.receive.msgs[0].id;
	it.receipt = got.u.receive.msgs[0].receipt;
	reqs[0].op = DRIVER_SETTLE;
	reqs[0].u.settle.items = &it;
	reqs[0].u.settle.n = 1;
	reqs[1].op = DRIVER_DRAFT_PUT;
	reqs[1].u.draft.name = "large";
	reqs[1].u.draft.body = blob_create(NULL, 4 << 20);
	CHECK(reqs[1].u.draft.body);
	memset(reqs[1].u.draft.body->data, 'l', 4 << 20);
	reqs[2].op = DRIVER_SEND;
	reqs[2].u.send.body = ask_blob("small");
	disk.room = 1 << 20;
	ask_together(b, reqs, 3);
	CHECK_INT(reqs[0].err, 0);
	CHECK_INT(it.err, 0);
	CHECK_INT(reqs[1].err, -ENOSPC);
	CHECK(strstr(reqs[1].detail, "no space"));
	CHECK_INT(reqs[1].u.draft.id, 0);
	CHECK_INT(reqs[2].err, 0);
	ask_depth(b, 1, 0, 0);
	disk.room = 0;
	CHECK_INT(ask(b, &reqs[1]), 0);
	CHECK(reqs[1].u.draft.id > 0);
	blob_unref(reqs[1].u.draft.body);
	blob_unref(reqs[2].u.send.body);
	driver_req_fini(&reqs[2]);
	driver_req_fini(&got);
	bed_fini(b);
}

TEST(a_missing_draft_does_not_fail_its_batch)
{
	struct bed bed, *b = init(&bed);
	struct driver_req reqs[2] = {0};

	reqs[0].op = DRIVER_DRAFT_DROP;
	reqs[0].u.draft.id = 4711;
	reqs[1].op = DRIVER_SEND;
	reqs[1].u.send.body = ask_blob("x");
	ask_together(b, reqs, 2);
	CHECK_INT(reqs[0].err, -ENOENT);
	CHECK_INT(reqs[1].err, 0);
	blob_unref(reqs[1].u.send.body);
	driver_req_fini(&reqs[1]);
	bed_fini(b);
}
