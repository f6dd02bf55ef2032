/* SPDX-License-Identifier: MIT */
/* Who a caller is. How processes end: test_procs_end.c. */
#include "backend/engine/procs.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "tests/unit/children.h"
#include "tests/unit/procs_fixture.h"

TEST(knows_itself_and_its_parents)
{
	struct fixture f;
	struct proc *p, *top;

	setup(&f);
	p = procs_get(f.ps, getpid());
	CHECK(p);
	CHECK_INT(p->pid, getpid());
	CHECK_INT(p->session, getsid(0));
	CHECK(p->start > 0 && p->alive);
	CHECK_INT(p->parent ? p->parent->pid : 0, getppid());
	for (top = p; top->parent; top = top->parent)
		CHECK(top->parent->start <= top->start);
	CHECK(procs_get(f.ps, top->pid) == top);
	CHECK(procs_get(f.ps, getpid()) == p);
	CHECK(procs_check_alive(f.ps, p));
	teardown(&f);
}

TEST(the_unseen_share_one_record)
{
	struct fixture f;
	struct proc *p;

	setup(&f);
	p = procs_get(f.ps, 0);
	CHECK(p);
	CHECK_INT(p->pid, 0);
	CHECK(p->alive && procs_check_alive(f.ps, p));
	CHECK(procs_get(f.ps, INT32_MAX) == p); /* above any pid_max */
	CHECK(procs_get(f.ps, -1) == p);
	CHECK(procs_revive(f.ps, 0, 0) == p);
	procs_unref(f.ps, p);
	procs_unref(f.ps, NULL);
	run_now(&f);
	CHECK(procs_get(f.ps, 0) == p);
	teardown(&f);
}

static void beget(int in, int out)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, 0);
		say_pid(out, getpid());
		wait_for_word(in);
		_exit(0);
	}
	pause();
}

TEST(a_parent_stays_as_seen_first)
{
	struct fixture f;
	struct child c = spawn(beget);
	pid_t grandchild = hear_pid(&c);
	struct proc *g, *p;

	setup(&f);
	g = procs_ref(procs_get(f.ps, grandchild));
	p = g->parent;
	CHECK_INT(g->pid, grandchild);
	CHECK(p == procs_get(f.ps, c.pid));
	CHECK(p->parent == procs_get(f.ps, getpid()));
	CHECK_INT(kill(c.pid, SIGKILL), 0);
	await_zombie(&c);
	run_now(&f);
	CHECK(!p->alive && g->alive);
	CHECK(g == procs_get(f.ps, grandchild) && g->parent == p);
	CHECK(owner_is_below(g, procs_get(f.ps, getpid())));
	CHECK_INT(f.exited, 0); /* only its child held it */
	procs_unref(f.ps, g);
	reap(&c); /* the grandchild reads end of file, and ends */
	teardown(&f);
}

static void *thread_of_test(void *arg)
{
	int *pipes = arg;
	char c;

	say_pid(pipes[1], (pid_t)syscall(SYS_gettid));
	return read(pipes[2], &c, 1) < 0 ? arg : NULL;
}

static void check_thread(struct fixture *f)
{
	int there[2], back[2], pipes[3];
	pthread_t thread;
	pid_t tid;

	CHECK_INT(pipe(there), 0);
	CHECK_INT(pipe(back), 0);
	pipes[1] = there[1];
	pipes[2] = back[0];
	CHECK_INT(pthread_create(&thread, NULL, thread_of_test, pipes), 0);
	CHECK_INT(read(there[0], &tid, sizeof(tid)), sizeof(tid));
	CHECK(tid != getpid());
	CHECK_INT(procs_get(f->ps, tid)->pid, getpid());
	CHECK(procs_get(f->ps, tid) == procs_get(f->ps, getpid()));
	close(back[1]);
	pthread_join(thread, NULL);
	close(there[0]);
	close(there[1]);
	close(back[0]);
}

TEST(a_thread_is_its_process)
{
	struct fixture f;

	setup(&f);
	check_thread(&f);
	teardown(&f);
	setup_without_pidfds(&f);
	check_thread(&f);
	teardown(&f);
}

static void lead_a_session(int in, int out)
{
	setsid();
	say_pid(out, getpid());
	wait_for_word(in);
}

TEST(setsid_makes_a_leader)
{
	struct fixture f;
	struct child c = spawn(lead_a_session);
	struct owner_chain chain;
	struct proc *p;

	setup(&f);
	p = procs_get(f.ps, hear_pid(&c));
	CHECK_INT(p->session, p->pid);
	owner_chain_init(&chain, p);
	CHECK(chain.n > 1 && chain.p[1] == procs_get(f.ps, getpid()));
	kill_and_reap(&c);
	teardown(&f);
}

TEST(a_record_is_pid_and_start)
{
	struct fixture f;
	struct proc *now, *same, *earlier;

	setup(&f);
	now = procs_get(f.ps, getpid());
	same = procs_revive(f.ps, now->pid, now->start);
	CHECK(same == now);
	earlier = procs_revive(f.ps, now->pid, now->start - 1);
	CHECK(earlier && earlier != now);
	CHECK(!earlier->alive && now->alive);
	CHECK(!procs_check_alive(f.ps, earlier));
	CHECK(procs_get(f.ps, getpid()) == now);
	procs_unref(f.ps, earlier);
	procs_unref(f.ps, same);
	run_now(&f);
	CHECK(procs_get(f.ps, getpid()) == now);
	CHECK_INT(f.exited + f.ended, 0);
	teardown(&f);
}

TEST(revives_with_parents_and_sees_the_end)
{
	struct fixture f;
	struct child c = spawn(exit_as_told);
	struct procfs_ident st;
	struct proc *p;

	setup(&f);
	CHECK_INT(procfs_ident(c.pid, -1, &st), 0);
	p = procs_revive(f.ps, c.pid, st.start);
	CHECK(p->alive && p->parent && p->parent->pid == getpid());
	CHECK_INT(kill(c.pid, SIGKILL), 0);
	run_until(&f, &f.exited);
	CHECK(f.last == p && !p->alive);
	procs_unref(f.ps, p);
	reap(&c);
	p = procs_revive(f.ps, c.pid, st.start);
	CHECK(p && !p->alive && p->pid == c.pid && p->start == st.start);
	procs_unref(f.ps, p);
	teardown(&f);
}

static int thread_in, thread_out;

static void *outlive_main(void *arg)
{
	say_pid(thread_out, (pid_t)syscall(SYS_gettid));
	wait_for_word(thread_in);
	_exit(5);
	return arg;
}

static void leave_a_thread(int in, int out)
{
	pthread_t thread;

	thread_in = in;
	thread_out = out;
	if (pthread_create(&thread, NULL, outlive_main, NULL))
		_exit(97);
	pthread_exit(NULL);
}

static void await_state(pid_t pid, char state)
{
	int64_t end = clock_mono() + BOUND_NS;
	struct procfs_stat st;

	do {
		CHECK(clock_mono() < end);
		sched_yield();
		CHECK_INT(procfs_stat(pid, &st), 0);
	} while (st.state != state);
}

static void check_early_main(struct fixture *f, const struct child *c, pid_t tid)
{
	struct proc *p = procs_ref(procs_get(f->ps, c->pid));

	CHECK_INT(p->pid, c->pid);
	CHECK(p->alive && procs_check_alive(f->ps, p));
	CHECK(procs_get(f->ps, tid) == p);
	run_now(f);
	CHECK_INT(f->exited, 0);
	tell(c, 0);
	await_zombie(c);
	CHECK(!procs_check_alive(f->ps, p));
	CHECK_INT(f->exited, 1);
	procs_unref(f->ps, p);
}

TEST(a_main_thread_that_ended_first)
{
	for (int i = 0; i < 2; i++) {
		struct fixture f;
		struct child c = spawn(leave_a_thread);
		pid_t tid = hear_pid(&c);

		await_state(c.pid, 'Z');
		(i == 0 ? setup : setup_without_pidfds)(&f);
		check_early_main(&f, &c, tid);
		reap(&c);
		teardown(&f);
	}
}

TEST(without_pidfds_a_record_is_checked_on_use)
{
	struct fixture f;
	struct child c = spawn(exit_as_told), d = spawn(exit_as_told);
	struct proc *p, *q;

	setup_without_pidfds(&f);
	p = procs_ref(procs_get(f.ps, c.pid));
	q = procs_ref(procs_get(f.ps, d.pid));
	CHECK(p->alive && procs_get(f.ps, c.pid) == p);
	CHECK(p->parent == procs_get(f.ps, getpid()));
	tell(&c, 0);
	await_zombie(&c);
	CHECK(procs_get(f.ps, c.pid) == procs_get(f.ps, 0));
	CHECK(!p->alive);
	CHECK_INT(f.exited, 1);
	kill_and_reap(&d);
	CHECK(!procs_check_alive(f.ps, q));
	CHECK_INT(f.exited, 2);
	procs_unref(f.ps, p);
	procs_unref(f.ps, q);
	run_now(&f);
	CHECK_INT(f.ended, 0);
	reap(&c);
	teardown(&f);
}

TEST(boot_id_is_read)
{
	struct fixture f;

	setup(&f);
	CHECK_INT(strlen(procs_boot_id(f.ps)), 36);
	CHECK_INT(strcspn(procs_boot_id(f.ps), " \n"), 36);
	teardown(&f);
}
