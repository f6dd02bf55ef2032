/* SPDX-License-Identifier: MIT */
#include "backend/wire/account_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/base/clock.h"
#include "tests/test.h"

/* A directory, a file "f" in it, and a loop. */
struct bed {
	char dir[64], path[96];
	struct loop *loop;
	struct account_watch watch;
	struct buf text;
	char err[200];
	unsigned changes;
};

/* Ours to write: where it is in memory, the file is not an orchestrator's. */
static void setup(struct bed *b)
{
	*b = (struct bed){.dir = "/tmp/spoolfs-account-XXXXXX"};
	CHECK(mkdtemp(b->dir));
	snprintf(b->path, sizeof(b->path), "%s/f", b->dir);
	b->loop = loop_create();
	CHECK(b->loop);
}

static void teardown(struct bed *b)
{
	char command[96];

	account_watch_stop(&b->watch);
	account_buf_wipe(&b->text);
	loop_destroy(b->loop);
	snprintf(command, sizeof(command), "rm -r %s", b->dir);
	CHECK_INT(system(command), 0);
}

static void put(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	CHECK_INT(fchmod(fd, mode), 0);
	CHECK_INT(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static int read_as(struct bed *b, enum account_file kind)
{
	b->err[0] = '\0';
	return account_file_read(b->path, kind, &b->text, b->err, sizeof(b->err));
}

TEST(private_file_is_read_whole_and_anew)
{
	struct bed b;

	setup(&b);
	put(b.path, "first and longer", 0600);
	CHECK_INT(read_as(&b, ACCOUNT_FILE_SECRET), 0);
	CHECK_STR(b.text.p, "first and longer");
	put(b.path, "second", 0400);
	CHECK_INT(read_as(&b, ACCOUNT_FILE_SECRET), 0);
	CHECK_STR(b.text.p, "second");
	CHECK_INT(b.text.len, 6);
	teardown(&b);
}

static void check_refused(struct bed *b, int want, const char *says)
{
	CHECK_INT(read_as(b, ACCOUNT_FILE_SECRET), want);
	CHECK(strstr(b->err, b->path));
	if (!strstr(b->err, says))
		printf("# %s\n", b->err);
	CHECK(strstr(b->err, says));
	CHECK_INT(b->text.len, 0);
}

TEST(what_others_may_read_is_refused)
{
	static const mode_t modes[] = {0640, 0604, 0644, 0660, 0777};
	struct bed b;

	setup(&b);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		put(b.path, "s", modes[i]);
		check_refused(&b, -EACCES, "can be read by group or others");
		CHECK_INT(read_as(&b, ACCOUNT_FILE_TOKEN), 0);
		account_buf_wipe(&b.text);
	}
	put(b.path, "s", 0602);
	check_refused(&b, -EACCES, "can be written by group or others");
	put(b.path, "s", 0611);
	CHECK_INT(read_as(&b, ACCOUNT_FILE_SECRET), 0);
	teardown(&b);
}

TEST(what_is_no_file_is_refused_and_not_waited_for)
{
	struct bed b;
	char other[112];

	setup(&b);
	check_refused(&b, -EACCES, "No such file");
	CHECK_INT(mkfifo(b.path, 0600), 0);
	check_refused(&b, -EINVAL, "no regular file");
	CHECK_INT(read_as(&b, ACCOUNT_FILE_TOKEN), -EINVAL);
	CHECK_INT(unlink(b.path), 0);
	CHECK_INT(mkdir(b.path, 0700), 0);
	check_refused(&b, -EINVAL, "no regular file");
	CHECK_INT(rmdir(b.path), 0);
	snprintf(other, sizeof(other), "%s/other", b.dir);
	put(other, "s", 0600);
	CHECK_INT(symlink("other", b.path), 0);
	check_refused(&b, -EACCES, "is a symbolic link");
	CHECK_INT(read_as(&b, ACCOUNT_FILE_TOKEN), 0);
	CHECK_STR(b.text.p, "s");
	teardown(&b);
}

TEST(longest_file_has_64_KiB)
{
	struct bed b;

	setup(&b);
	put(b.path, "", 0600);
	CHECK_INT(truncate(b.path, 65536), 0);
	CHECK_INT(read_as(&b, ACCOUNT_FILE_SECRET), 0);
	CHECK_INT(b.text.len, 65536);
	CHECK_INT(truncate(b.path, 65537), 0);
	check_refused(&b, -EINVAL, "longer than 64 KiB");
	teardown(&b);
}

TEST(mount_of_an_orchestrator_decides)
{
	struct account_file_facts f = {.mode = S_IFREG | 0644, .link = true};

	CHECK(account_file_wrong(&f));
	f.link = false;
	CHECK(account_file_wrong(&f));
	f.read_only = true;
	CHECK_STR(account_file_wrong(&f), NULL);
	f = (struct account_file_facts){.mode = 0444, .link = true, .in_memory = true};
	CHECK_STR(account_file_wrong(&f), NULL);
	f = (struct account_file_facts){.mode = S_IFREG | 0600};
	CHECK_STR(account_file_wrong(&f), NULL);
}

static void on_change(void *arg)
{
	((struct bed *)arg)->changes++;
}

/* Runs the loop until the changes are more than BEFORE. inotify has told what it
 * has to tell when the call that caused it returns. */
static bool changed(struct bed *b)
{
	unsigned before = b->changes;

	for (int i = 0; i < 3; i++)
		CHECK_INT(loop_once(b->loop, 0), 0);
	return b->changes > before;
}

TEST(changes_are_told)
{
	struct bed b;
	char other[112];

	setup(&b);
	snprintf(other, sizeof(other), "%s/other", b.dir);
	CHECK_INT(account_watch_start(&b.watch, b.loop, b.path, on_change, &b), 0);
	CHECK(!changed(&b));
	put(other, "new", 0600);
	CHECK(!changed(&b));
	CHECK_INT(rename(other, b.path), 0);
	CHECK(changed(&b));
	put(b.path, "written", 0600);
	CHECK(changed(&b));
	CHECK_INT(chmod(b.path, 0400), 0);
	CHECK(changed(&b));
	CHECK(!changed(&b));
	teardown(&b);
}

/* As a kubelet does it: f -> ..data/f, ..data -> ..1, then ..data -> ..2. */
TEST(replaced_link_is_told)
{
	struct bed b;
	char from[112], to[112];

	setup(&b);
	CHECK_INT(symlink("..data/f", b.path), 0);
	snprintf(to, sizeof(to), "%s/..data", b.dir);
	CHECK_INT(symlink("..1", to), 0);
	CHECK_INT(account_watch_start(&b.watch, b.loop, b.path, on_change, &b), 0);
	snprintf(from, sizeof(from), "%s/..data_tmp", b.dir);
	CHECK_INT(symlink("..2", from), 0);
	CHECK(!changed(&b));
	CHECK_INT(rename(from, to), 0);
	CHECK(changed(&b));
	teardown(&b);
}

TEST(what_cannot_be_watched_leaves_nothing)
{
	struct bed b;
	int fd = dup(0);

	close(fd);
	setup(&b);
	CHECK_INT(account_watch_start(&b.watch, b.loop, "/nonexistent/f", on_change, &b),
		-ENOENT);
	account_watch_stop(&b.watch);
	teardown(&b);
	CHECK_INT(dup(0), fd);
	close(fd);
}
