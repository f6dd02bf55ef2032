/* SPDX-License-Identifier: MIT */
/* What only the SQLite driver has: its file. Other connections are opened by
 * the tests themselves, beside the driver's. */
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ask_settle.h"
#include "backend/drivers/sqlite.h"
#include "backend/drivers/sqlite_int.h"

/* Shown by statfs(2) instead of the truth. */
static uint32_t fake_type;
static const char *fake_path; /* for this one only, if set */

int statfs(const char *path, struct statfs *out)
{
	int r = (int)syscall(SYS_statfs, path, out);

	if (fake_type && (!fake_path || strcmp(path, fake_path) == 0))
		out->f_type = fake_type;
	return r;
}

/* Runs SQL on the queue file, as a stranger would. */
static void sql(struct bed *b, const char *text)
{
	sqlite3 *db;

	CHECK_INT(sqlite3_open(b->path, &db), SQLITE_OK);
	CHECK_INT(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
	CHECK_INT(sqlite3_close(db), SQLITE_OK);
}

static void write_file(const char *path, const void *data, size_t len, off_t at)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	CHECK(fd >= 0);
	CHECK_INT(pwrite(fd, data, len, at), len);
	CHECK_INT(close(fd), 0);
}

static bool exists(struct bed *b, const char *suffix)
{
	char path[128];

	snprintf(path, sizeof(path), "%s%s", b->path, suffix);
	return access(path, F_OK) == 0;
}

/* Opening gives ERR, and a line that says WHY. */
static void refused(struct bed *b, int err, const char *why)
{
	char text[BED_ERR];
	struct driver *d;

	CHECK_INT(bed_open(b, "bed", &d, text), err);
	if (!strstr(text, why))
		CHECK_STR(text, why);
	CHECK(!strchr(text, '\n'));
}

static mode_t mode_of(struct bed *b, const char *suffix)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s%s", b->path, suffix);
	CHECK_INT(stat(path, &st), 0);
	return st.st_mode & 0777;
}

TEST(its_files_are_the_owners_alone)
{
	struct bed b;
	mode_t old = umask(0);

	CHECK(bed_init(&b, bed_factories));
	umask(old);
	free(ask_send(&b, "x"));
	CHECK_INT(mode_of(&b, ""), 0600);
	CHECK_INT(mode_of(&b, "-wal"), 0600);
	CHECK_INT(mode_of(&b, "-shm"), 0600);
	CHECK_INT(mode_of(&b, "-lock"), 0600);
	bed_fini(&b);
}

TEST(what_is_not_a_database)
{
	char junk[8192];
	struct bed b;

	memset(junk, 'j', sizeof(junk));
	CHECK(bed_init(&b, NULL));
	write_file(b.path, junk, sizeof(junk), 0);
	refused(&b, -EIO, "not an SQLite database");
	CHECK(!exists(&b, "-lock") && !exists(&b, "-wal"));
	bed_fini(&b);
}

TEST(a_foreign_database_is_left_alone)
{
	struct bed b;

	CHECK(bed_init(&b, NULL));
	sql(&b, "CREATE TABLE t(x)");
	refused(&b, -EINVAL, "not a spoolfs queue");
	CHECK(!exists(&b, "-lock") && !exists(&b, "-wal"));
	bed_fini(&b);
}

TEST(a_queue_of_a_newer_version)
{
	struct bed b;

	CHECK(bed_init(&b, bed_factories));
	driver_close(b.d);
	b.d = NULL;
	sql(&b, "PRAGMA user_version=99");
	refused(&b, -EINVAL, "newer");
	bed_fini(&b);
}

TEST(a_queue_that_misses_a_table)
{
	struct bed b;

	CHECK(bed_init(&b, bed_factories));
	driver_close(b.d);
	b.d = NULL;
	sql(&b, "DROP TABLE draft");
	refused(&b, -EIO, "damaged");
	bed_fini(&b);
}

TEST(a_network_file_system_is_refused)
{
	static const uint32_t types[] = {0x6969, 0xff534d42, 0x65735546, 0x01021997};
	struct bed b;

	CHECK(bed_init(&b, NULL));
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		fake_type = types[i];
		refused(&b, -EINVAL, "network file system");
		CHECK(!exists(&b, ""));
	}
	fake_type = 0;
	bed_fini(&b);
}

TEST(a_link_to_a_network_file_system_is_refused)
{
	char target[128];
	struct bed b;

	CHECK(bed_init(&b, NULL));
	snprintf(target, sizeof(target), "%s/target", b.dir);
	write_file(target, "", 0, 0);
	CHECK_INT(symlink(target, b.path), 0);
	fake_type = 0x6969;
	fake_path = target;
	refused(&b, -EINVAL, "network file system");
	fake_type = 0;
	fake_path = NULL;
	CHECK_INT(unlink(target), 0);
	bed_fini(&b);
}

TEST(paths_that_lead_nowhere)
{
	struct driver_params p = {.identity = "bed"};
	char text[BED_ERR];
	struct driver *d;
	struct bed b;

	CHECK(bed_init(&b, NULL));
	p.loop = b.loop;
	p.source = b.path;
	CHECK_INT(driver_open(&sqlite_driver_ops, &p, &d, text, sizeof(text)), -ENOENT);
	p.create = true;
	p.source = "/nonexistent/q.db";
	CHECK_INT(driver_open(&sqlite_driver_ops, &p, &d, text, sizeof(text)), -ENOENT);
	CHECK(strstr(text, "/nonexistent"));
	p.source = b.dir;
	CHECK_INT(driver_open(&sqlite_driver_ops, &p, &d, text, sizeof(text)), -EINVAL);
	CHECK(strstr(text, "regular file"));
	p.source = "";
	CHECK_INT(driver_open(&sqlite_driver_ops, &p, &d, text, sizeof(text)), -EINVAL);
	bed_fini(&b);
}

TEST(a_path_without_a_directory_is_found_after_chdir)
{
	char before[4096], text[BED_ERR];
	struct driver_params p = {.identity = "bed", .source = "rel.db", .create = true};
	struct bed b;

	CHECK(bed_init(&b, NULL));
	p.loop = b.loop;
	CHECK(getcwd(before, sizeof(before)));
	CHECK_INT(chdir(b.dir), 0);
	CHECK_INT(driver_open(&sqlite_driver_ops, &p, &b.d, text, sizeof(text)), 0);
	CHECK_INT(chdir(before), 0);
	free(ask_send(&b, "x"));
	CHECK(access("rel.db", F_OK) < 0);
	bed_fini(&b);
}

TEST(a_queue_has_one_lock_file_whatever_it_is_called)
{
	struct driver_req req = {.op = DRIVER_PEERS};
	char text[BED_ERR], link[128];
	struct driver *other;
	struct bed b, linked;

	CHECK(bed_init(&b, bed_factories));
	snprintf(link, sizeof(link), "%s/link", b.dir);
	CHECK_INT(symlink(b.path, link), 0);
	linked = b;
	snprintf(linked.path, sizeof(linked.path), "%s/link", b.dir);
	CHECK_INT(bed_open(&linked, "other", &other, text), 0);
	CHECK_INT(ask(&b, &req), 0);
	CHECK_INT(req.u.peers.n_peers, 1);
	driver_close(other);
	bed_fini(&b);
}

/* Root may write everywhere: the child is nobody. */
static int open_as_nobody(struct bed *b)
{
	if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
		return 2;
	if (setjmp(test_end))
		return 1;
	refused(b, -EACCES, b->path);
	return 0;
}

TEST(a_file_that_may_only_be_read)
{
	struct bed b;
	int status;
	pid_t pid;

	CHECK(bed_init(&b, bed_factories));
	driver_close(b.d);
	b.d = NULL;
	CHECK_INT(chmod(b.dir, 0755), 0);
	CHECK_INT(chmod(b.path, 0444), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(open_as_nobody(&b));
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
	bed_fini(&b);
}

/* The first column of the first row. */
static int64_t sql_int(struct bed *b, const char *text)
{
	sqlite3_stmt *st;
	sqlite3 *db;
	int64_t n;

	CHECK_INT(sqlite3_open(b->path, &db), SQLITE_OK);
	CHECK_INT(sqlite3_prepare_v2(db, text, -1, &st, NULL), SQLITE_OK);
	CHECK_INT(sqlite3_step(st), SQLITE_ROW);
	n = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	CHECK_INT(sqlite3_close(db), SQLITE_OK);
	return n;
}

TEST(bodies_go_with_what_they_belong_to)
{
	struct driver_req drop = {.op = DRIVER_DRAFT_DROP}, got;
	struct settle discard = {.op = SETTLE_DISCARD};
	struct bed b;

	CHECK(bed_init(&b, bed_factories));
	free(ask_send(&b, "deleted"));
	free(ask_send(&b, "discarded"));
	drop.u.draft.id = ask_draft(&b, 0, "dropped", "x");
	CHECK_INT(sql_int(&b, "SELECT count(*) FROM body"), 3);
	got = ask_receive(&b, 2);
	CHECK_INT(ask_settle(&b, SETTLE_DELETE, &got.u.receive.msgs[0]), 0);
	CHECK_INT(sql_int(&b, "SELECT count(*) FROM body"), 2);
	CHECK_INT(ask_bury(&b, &got.u.receive.msgs[1], "x", 1), 0);
	CHECK_INT(ask(&b, &drop), 0);
	CHECK_INT(sql_int(&b, "SELECT count(*) FROM body"), 1);
	discard.id = got.u.receive.msgs[1].id;
	CHECK_INT(ask_settle_of(&b, b.d, &discard), 0);
	CHECK_INT(sql_int(&b, "SELECT count(*) FROM body"), 0);
	driver_req_fini(&got);
	bed_fini(&b);
}

TEST(a_body_that_is_missing_fails_its_own_request)
{
	struct driver_req req = {.op = DRIVER_RECEIVE};
	struct bed b;

	CHECK(bed_init(&b, bed_factories));
	free(ask_send(&b, "x"));
	sql(&b, "DELETE FROM body");
	req.u.receive.max = 1;
	CHECK_INT(ask(&b, &req), -EIO);
	CHECK(strstr(req.detail, "damaged"));
	CHECK(!req.u.receive.msgs && req.u.receive.n == 0);
	ask_depth(&b, 1, 0, 0);
	free(ask_send(&b, "y"));
	bed_fini(&b);
}

TEST(damaged_pages_are_an_error_and_no_crash)
{
	struct driver_req req = {.op = DRIVER_RECEIVE};
	struct bed b;
	char junk[4096];
	struct stat st;

	memset(junk, 0xa5, sizeof(junk));
	CHECK(bed_init(&b, bed_factories));
	for (int i = 0; i < 500; i++)
		free(ask_send(&b, "some text that fills a page or two"));
	driver_close(b.d);
	b.d = NULL;
	CHECK_INT(stat(b.path, &st), 0);
	for (off_t at = 14 * 4096; at < st.st_size; at += 4096)
		write_file(b.path, junk, sizeof(junk), at);
	b.d = ask_open(&b, "bed");
	req.u.receive.max = 1000;
	req.u.receive.max_bytes = 1 << 20;
	CHECK_INT(ask(&b, &req), -EIO);
	CHECK(strstr(req.detail, "damaged"));
	bed_fini(&b);
}

TEST(a_lock_that_is_not_given_back_is_told)
{
	struct driver_req req = {.op = DRIVER_SEND, .u.send.body = ask_blob("x")};
	struct bed b;
	sqlite3 *db;

	CHECK(bed_init(&b, bed_factories));
	CHECK_INT(sqlite3_open(b.path, &db), SQLITE_OK);
	CHECK_INT(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	CHECK_INT(ask(&b, &req), -EAGAIN);
	CHECK(strstr(req.detail, "locked"));
	ask_depth(&b, 0, 0, 0); /* reading goes on */
	CHECK_INT(sqlite3_close(db), SQLITE_OK);
	CHECK_INT(ask(&b, &req), 0);
	blob_unref(req.u.send.body);
	driver_req_fini(&req);
	bed_fini(&b);
}

/* What the statements of the driver have computed since the last call. The
 * worker is idle: its last answer has come. */
static int steps(struct bed *b)
{
	struct sq *s = (struct sq *)(void *)b->d;
	int n = 0;

	for (int i = 0; i < SQ_STMTS; i++)
		n += sqlite3_stmt_status(s->stmt[i], SQLITE_STMTSTATUS_VM_STEP, 1);
	return n;
}

static int steps_of_a_receive(struct bed *b)
{
	struct driver_req got;
	int n;

	(void)steps(b);
	got = ask_receive(b, 10);
	CHECK_INT(got.u.receive.n, 10);
	n = steps(b);
	/* What is held here is stepped over: let the next find as little. */
	for (unsigned i = 0; i < got.u.receive.n; i++)
		CHECK_INT(ask_settle(b, SETTLE_DELETE, &got.u.receive.msgs[i]), 0);
	driver_req_fini(&got);
	return n;
}

/* N more rows, by the columns of VALUES where i counts. */
static void many(struct bed *b, int n, const char *values)
{
	char text[600];

	snprintf(text, sizeof(text),
		"WITH RECURSIVE c(i) AS(SELECT 1000 UNION ALL SELECT i+1 FROM c WHERE"
		" i<%d) INSERT INTO message(id,enqueued_us,visible_at,size)"
		" SELECT %s FROM c;"
		"INSERT OR IGNORE INTO body SELECT id,'' FROM message;",
		n + 999, values);
	sql(b, text);
}

TEST(receiving_costs_the_same_whatever_waits)
{
	struct bed b;
	int few, waiting, delayed;

	CHECK(bed_init(&b, bed_factories));
	for (int i = 0; i < 30; i++)
		free(ask_send(&b, "x"));
	few = steps_of_a_receive(&b);
	many(&b, 100000, "i, 9000000000000000+i, 0, 0");
	waiting = steps_of_a_receive(&b);
	many(&b, 100000, "200000+i, i, 9000000000000000+i, 0");
	delayed = steps_of_a_receive(&b);
	printf("# steps: %d, %d with 100,000 waiting, %d and as many delayed\n", few,
		waiting, delayed);
	CHECK(waiting <= few + 20);
	CHECK(delayed <= few + 20);
	bed_fini(&b);
}

TEST(very_many_that_fall_due_at_once_come_in_portions)
{
	struct driver_req got;
	unsigned all = 0;
	struct bed b;

	CHECK(bed_init(&b, bed_factories));
	many(&b, 10000, "i, i, 5, 0");
	sql(&b, "UPDATE state SET waiting=10000");
	while (all < 10000) {
		got = ask_receive(&b, 1024);
		CHECK(got.u.receive.n > 0);
		all += got.u.receive.n;
		driver_req_fini(&got);
	}
	ask_depth(&b, 0, 10000, 0);
	bed_fini(&b);
}

TEST(the_plan_uses_the_index)
{
	static const enum sq_stmt indexed[] = {SQ_DUE, SQ_WAKE, SQ_EXPIRE, SQ_PICK};
	struct bed b;

	CHECK(bed_init(&b, bed_factories));
	for (size_t i = 0; i < sizeof(indexed) / sizeof(indexed[0]); i++) {
		struct sq *s = (struct sq *)(void *)b.d;
		char text[1000];
		sqlite3_stmt *st;

		snprintf(text, sizeof(text), "EXPLAIN QUERY PLAN %s", sq_sql[indexed[i]]);
		CHECK_INT(sqlite3_prepare_v2(s->db, text, -1, &st, NULL), SQLITE_OK);
		while (sqlite3_step(st) == SQLITE_ROW) {
			const char *line = (const char *)sqlite3_column_text(st, 3);

			CHECK(!strstr(line, "SCAN") && !strstr(line, "TEMP B-TREE"));
		}
		sqlite3_finalize(st);
	}
	bed_fini(&b);
}

static off_t size_of(const struct bed *b, const char *suffix)
{
	char path[PATH_MAX];
	struct stat st = {0};

	snprintf(path, sizeof(path), "%s%s", b->path, suffix);
	CHECK_INT(stat(path, &st), 0);
	return st.st_size;
}

/* A sync costs less when the log does not grow. The disk of the tests has room. */
TEST(the_log_does_not_grow_with_the_messages)
{
	struct bed b;
	off_t before;

	CHECK(bed_init(&b, bed_factories));
	before = size_of(&b, "-wal");
	CHECK(before >= (off_t)SQ_CHECKPOINT_FRAMES * 4096);
	for (int i = 0; i < 300; i++)
		free(ask_send(&b, "x"));
	CHECK_INT(size_of(&b, "-wal"), before);
	ask_depth(&b, 300, 0, 0);
	bed_fini(&b);
}
