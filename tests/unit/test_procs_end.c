/* SPDX-License-Identifier: MIT */
/* What is told of a process's end, and when. */
#include "backend/engine/procs.h"

#include <pthread.h>
#include <sched.h>

#include "tests/unit/children.h"
#include "tests/unit/procs_fixture.h"

/* Whether this kernel tells exit statuses by pidfd. */
static bool kernel_tells(void)
{
	struct child c = spawn(exit_as_told);
	int fd = procfs_pidfd_open(c.pid), status, known;

	CHECK(fd >= 0);
	kill_and_reap(&c);
	known = procfs_pidfd_status(fd, &status);
	close(fd);
	return known == 1;
}

/* Its exit is told at once, and a bad end with it: who sees the zombie need not
 * wait for the parent. A good one is told once it has been reaped. */
static void check_end(unsigned char word, int signal, int exit_code)
{
	struct fixture f;
	struct child c = spawn(exit_as_told);
	struct proc *p;
	bool bad = signal || exit_code;
	bool tells = bad || kernel_tells();

	setup(&f);
	p = procs_ref(procs_get(f.ps, c.pid));
	if (signal)
		CHECK_INT(kill(c.pid, signal), 0);
	else
		tell(&c, word);
	run_until(&f, &f.exited);
	CHECK(f.last == p && !p->alive);
	run_now(&f);
	CHECK_INT(f.ended, bad);
	reap(&c);
	if (tells)
		run_until(&f, &f.ended);
	CHECK_INT(f.ended, tells);
	if (tells) {
		CHECK(f.last == p && f.end.known);
		CHECK_INT(f.end.signal, signal);
		CHECK_INT(f.end.exit_code, exit_code);
	}
	run_now(&f);
	CHECK_INT(f.exited + f.ended, 1 + tells);
	procs_unref(f.ps, p);
	teardown(&f);
}

TEST(killed)
{
	check_end(0, SIGKILL, 0);
	check_end(0, SIGTERM, 0);
}

TEST(exit_3)
{
	check_end(3, 0, 3);
}

TEST(exit_0)
{
	check_end(0, 0, 0);
}

static void *reap_later(void *arg)
{
	const struct child *c = arg;
	struct procfs_stat st;

	/* Not before the main thread sleeps; then there is nothing to wake it
	 * but the reaping itself. */
	do {
		sched_yield();
		if (procfs_stat(getpid(), &st))
			return arg;
	} while (st.state != 'S');
	return waitpid(c->pid, NULL, 0) == c->pid ? NULL : arg;
}

TEST(reaping_wakes_a_sleeping_loop)
{
	struct fixture f;
	struct child c = spawn(exit_as_told);
	struct proc *p;
	pthread_t thread;
	void *failed;

	if (!kernel_tells()) {
		kill_and_reap(&c);
		return;
	}
	setup(&f);
	p = procs_ref(procs_get(f.ps, c.pid));
	tell(&c, 7);
	run_until(&f, &f.exited);
	run_now(&f);
	CHECK_INT(pthread_create(&thread, NULL, reap_later, &c), 0);
	CHECK_INT(loop_once(f.loop, BOUND_NS), 0);
	CHECK_INT(f.ended, 1);
	CHECK_INT(f.end.exit_code, 7);
	pthread_join(thread, &failed);
	CHECK(!failed);
	procs_unref(f.ps, p);
	teardown(&f);
	close(c.to);
	close(c.from);
}

TEST(a_zombie_has_exited)
{
	struct fixture f;
	struct child c = spawn(exit_as_told);
	struct proc *p;

	setup(&f);
	p = procs_ref(procs_get(f.ps, c.pid));
	tell(&c, 0);
	await_zombie(&c);
	CHECK(!procs_check_alive(f.ps, p));
	CHECK_INT(f.exited, 1); /* told before the loop got to it */
	CHECK(procs_get(f.ps, c.pid) == procs_get(f.ps, 0));
	run_now(&f);
	CHECK_INT(f.exited, 1);
	procs_unref(f.ps, p);
	reap(&c);
	teardown(&f);
}

TEST(nobody_is_told_who_holds_nothing)
{
	struct fixture f;
	struct child c = spawn(exit_as_told);
	int before;

	setup(&f);
	procs_get(f.ps, getpid());
	before = count_descriptors();
	procs_get(f.ps, c.pid);
	CHECK_INT(count_descriptors(), before + 1);
	tell(&c, 0);
	await_zombie(&c);
	run_now(&f);
	CHECK_INT(f.exited, 0);
	CHECK_INT(count_descriptors(), before);
	reap(&c);
	teardown(&f);
}

TEST(a_borrowed_record_outlives_its_process)
{
	struct fixture f;
	struct child c = spawn(exit_as_told);
	struct proc *p;

	setup(&f);
	p = procs_get(f.ps, c.pid);
	tell(&c, 0);
	await_zombie(&c);
	CHECK(!procs_check_alive(f.ps, p));
	CHECK_INT(p->pid, c.pid);
	procs_ref(p); /* just before it would go */
	run_now(&f);
	CHECK_INT(p->pid, c.pid);
	procs_unref(f.ps, p);
	reap(&c);
	teardown(&f);
}

TEST(the_last_reference_may_go_while_the_exit_is_told)
{
	struct fixture f;
	struct child c = spawn(exit_as_told);
	int before;

	setup(&f);
	procs_get(f.ps, getpid());
	before = count_descriptors();
	f.unref_at_exit = true;
	procs_ref(procs_get(f.ps, c.pid));
	tell(&c, 0);
	run_until(&f, &f.exited);
	reap(&c);
	run_now(&f);
	CHECK_INT(f.ended, 0);
	CHECK_INT(count_descriptors(), before - 2); /* the pipes of the child */
	teardown(&f);
}

TEST(destroy_forgets_everything)
{
	struct fixture f;
	struct child alive = spawn(exit_as_told), zombie = spawn(exit_as_told);
	int before = count_descriptors();

	setup(&f);
	procs_ref(procs_get(f.ps, alive.pid));
	procs_ref(procs_get(f.ps, zombie.pid));
	procs_revive(f.ps, getpid(), 1);
	tell(&zombie, 0);
	run_until(&f, &f.exited);
	procs_unref(f.ps, f.last); /* it waits for the sweep */
	teardown(&f);
	CHECK_INT(count_descriptors(), before);
	procs_destroy(NULL);
	kill_and_reap(&alive);
	reap(&zombie);
}

TEST(exit_signal_of_who_is_being_killed)
{
	struct child killed = spawn(exit_as_told), exited = spawn(exit_as_told);

	CHECK_INT(procs_exit_signal(getpid()), 0);
	CHECK_INT(procs_exit_signal(0), 0);
	CHECK_INT(procs_exit_signal(INT32_MAX), 0);
	CHECK_INT(kill(killed.pid, SIGTERM), 0);
	tell(&exited, 3);
	await_zombie(&killed);
	await_zombie(&exited);
	CHECK_INT(procs_exit_signal(killed.pid), SIGTERM);
	CHECK_INT(procs_exit_signal(exited.pid), 0);
	reap(&killed);
	reap(&exited);
}
