/* SPDX-License-Identifier: MIT */
#include "backend/engine/procfs.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "tests/unit/children.h"

static void take_an_evil_name(int in, int out)
{
	prctl(PR_SET_NAME, ") Z 1 1 (a) b");
	say_pid(out, getpid());
	wait_for_word(in);
}

TEST(a_name_may_hold_parentheses)
{
	struct child c = spawn(take_an_evil_name);
	struct procfs_stat st;

	CHECK_INT(procfs_stat(hear_pid(&c), &st), 0);
	CHECK_INT(st.parent, getpid());
	CHECK_INT(st.session, getsid(0));
	CHECK_INT(st.threads, 1);
	kill_and_reap(&c);
}

static void *ask_for_itself(void *arg)
{
	pid_t tid = (pid_t)syscall(SYS_gettid);

	*(int *)arg = procfs_pidfd_open(tid);
	return procfs_process_of(tid) == getpid() ? arg : NULL;
}

TEST(a_thread_is_told_from_a_process)
{
	pthread_t thread;
	void *found;
	int err = 0, fd = procfs_pidfd_open(getpid());

	CHECK(fd >= 0);
	close(fd);
	CHECK_INT(pthread_create(&thread, NULL, ask_for_itself, &err), 0);
	CHECK_INT(pthread_join(thread, &found), 0);
	CHECK_INT(err, -EINVAL);
	CHECK(found);
	CHECK_INT(procfs_process_of(INT32_MAX), 0);
	CHECK_INT(procfs_pidfd_open(INT32_MAX), -ESRCH);
}

TEST(stat_is_parsed_field_by_field)
{
	static const char text[] =
		"77 (a) (b c)) S 4 5 6 7 -1 9 10 11 12 13 14 15 16 17 18 -19 20 21 22 23 "
		"24 18446744073709551615 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 "
		"42 43 44 45 46 47 48 49 50 51 9\n";
	struct procfs_stat st;
	char cut[sizeof(text)];

	CHECK_INT(procfs_parse_stat(text, &st), 0);
	CHECK_INT(st.state, 'S');
	CHECK_INT(st.parent, 4);
	CHECK_INT(st.session, 6);
	CHECK_INT(st.flags, 9);
	CHECK_INT(st.threads, 20);
	CHECK_INT(st.start, 22);
	CHECK_INT(st.exit_code, 9);
	for (size_t i = 0; i < sizeof(text) - 3; i++) {
		memcpy(cut, text, i);
		cut[i] = '\0';
		CHECK_INT(procfs_parse_stat(cut, &st), -EPROTO);
	}
}
