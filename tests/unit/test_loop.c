/* SPDX-License-Identifier: MIT */
#include "backend/base/loop.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "backend/base/clock.h"
#include "tests/test.h"

/* Two pipes that can be read, two timers, two tasks, and what they did. */
struct fixture {
	struct loop *loop;
	int pipes[2][2];
	struct loop_fd fds[2];
	struct loop_timer timers[2];
	struct loop_task tasks[2];
	char log[64];
};

static void note(struct fixture *f, char what)
{
	size_t n = strlen(f->log);

	CHECK(n + 1 < sizeof(f->log));
	f->log[n] = what;
}

static void setup(struct fixture *f)
{
	*f = (struct fixture){.loop = loop_create()};
	CHECK(f->loop);
	for (int i = 0; i < 2; i++) {
		CHECK_INT(pipe(f->pipes[i]), 0);
		CHECK_INT(write(f->pipes[i][1], "x", 1), 1);
	}
}

static void teardown(struct fixture *f)
{
	for (int i = 0; i < 2; i++) {
		loop_fd_del(f->loop, &f->fds[i]);
		close(f->pipes[i][0]);
		close(f->pipes[i][1]);
	}
	loop_destroy(f->loop);
}

static void on_fd(void *arg, uint32_t events)
{
	note(arg, events & EPOLLIN ? 'r' : '?');
}

static void on_timer(void *arg)
{
	note(arg, 't');
}

static void on_task(void *arg)
{
	note(arg, 'k');
}

static void watch(struct fixture *f, int i, loop_fd_fn *fn)
{
	CHECK_INT(loop_fd_add(f->loop, &f->fds[i], f->pipes[i][0], EPOLLIN, fn, f), 0);
}

TEST(descriptor_is_level_triggered_until_removed)
{
	struct fixture f;

	setup(&f);
	watch(&f, 0, on_fd);
	CHECK(f.fds[0].active);
	loop_once(f.loop, 0);
	loop_once(f.loop, 0);
	CHECK_STR(f.log, "rr");
	loop_fd_del(f.loop, &f.fds[0]);
	loop_fd_del(f.loop, &f.fds[0]);
	loop_once(f.loop, 0);
	CHECK_STR(f.log, "rr");
	teardown(&f);
}

TEST(events_can_be_changed)
{
	struct fixture f;

	setup(&f);
	watch(&f, 0, on_fd);
	CHECK_INT(loop_fd_mod(f.loop, &f.fds[0], 0), 0);
	loop_once(f.loop, 0);
	CHECK_STR(f.log, "");
	CHECK_INT(loop_fd_mod(f.loop, &f.fds[0], EPOLLIN), 0);
	loop_once(f.loop, 0);
	CHECK_STR(f.log, "r");
	teardown(&f);
}

TEST(what_cannot_be_watched_is_refused)
{
	struct fixture f;

	setup(&f);
	CHECK_INT(loop_fd_add(f.loop, &f.fds[0], -1, EPOLLIN, on_fd, &f), -EBADF);
	CHECK(!f.fds[0].active);
	teardown(&f);
}

TEST(removing_twice_spares_the_next_user_of_the_descriptor)
{
	struct fixture f;
	struct loop_fd old = {0};

	setup(&f);
	CHECK_INT(loop_fd_add(f.loop, &old, f.pipes[0][0], EPOLLIN, on_fd, &f), 0);
	loop_fd_del(f.loop, &old);
	watch(&f, 0, on_fd);
	loop_fd_del(f.loop, &old);
	loop_once(f.loop, 0);
	CHECK_STR(f.log, "r");
	teardown(&f);
}

/* Whichever comes first removes the other. */
static void on_fd_remove_both(void *arg, uint32_t events)
{
	struct fixture *f = arg;

	on_fd(f, events);
	loop_fd_del(f->loop, &f->fds[0]);
	loop_fd_del(f->loop, &f->fds[1]);
}

TEST(fetched_event_of_a_removed_descriptor_is_dropped)
{
	struct fixture f;

	setup(&f);
	watch(&f, 0, on_fd_remove_both);
	watch(&f, 1, on_fd_remove_both);
	loop_once(f.loop, 0);
	CHECK_STR(f.log, "r");
	teardown(&f);
}

/* Fetches both events again, and removes both below the outer round. */
static void on_fd_inner_round(void *arg, uint32_t events)
{
	struct fixture *f = arg;

	if (!*f->log) {
		on_fd(f, events);
		loop_once(f->loop, 0);
	} else {
		on_fd_remove_both(f, events);
	}
}

TEST(inner_round_drops_events_of_the_outer)
{
	struct fixture f;

	setup(&f);
	watch(&f, 0, on_fd_inner_round);
	watch(&f, 1, on_fd_inner_round);
	loop_once(f.loop, 0);
	CHECK_STR(f.log, "rr");
	teardown(&f);
}

TEST(timers_fire_once_when_due)
{
	struct fixture f;

	setup(&f);
	clock_fake(1000, 0);
	loop_timer_init(&f.timers[0], on_timer, &f);
	loop_timer_set(f.loop, &f.timers[0], 1010);
	CHECK(loop_timer_is_set(&f.timers[0]));
	loop_once(f.loop, 0);
	CHECK_STR(f.log, "");
	clock_step(10);
	loop_once(f.loop, CLOCK_NEVER);
	CHECK_STR(f.log, "t");
	CHECK(!loop_timer_is_set(&f.timers[0]));
	loop_once(f.loop, 0);
	CHECK_STR(f.log, "t");
	teardown(&f);
}

TEST(setting_a_timer_again_replaces)
{
	struct fixture f;

	setup(&f);
	clock_fake(1000, 0);
	loop_timer_init(&f.timers[0], on_timer, &f);
	loop_timer_set(f.loop, &f.timers[0], 1010);
	loop_timer_set(f.loop, &f.timers[0], 1020);
	clock_step(10);
	loop_once(f.loop, 0);
	CHECK_STR(f.log, "");
	loop_timer_set(f.loop, &f.timers[0], CLOCK_NEVER);
	CHECK(!loop_timer_is_set(&f.timers[0]));
	clock_step(10);
	loop_once(f.loop, 0);
	CHECK_STR(f.log, "");
	teardown(&f);
}

static void on_timer_clear_both(void *arg)
{
	struct fixture *f = arg;

	on_timer(f);
	loop_timer_clear(f->loop, &f->timers[0]);
	loop_timer_clear(f->loop, &f->timers[1]);
}

TEST(due_timer_can_be_cleared_by_another)
{
	struct fixture f;

	setup(&f);
	clock_fake(1000, 0);
	for (int i = 0; i < 2; i++) {
		loop_timer_init(&f.timers[i], on_timer_clear_both, &f);
		loop_timer_set(f.loop, &f.timers[i], 1000);
	}
	loop_once(f.loop, 0);
	CHECK_STR(f.log, "t");
	teardown(&f);
}

static void on_timer_again(void *arg)
{
	struct fixture *f = arg;

	on_timer(f);
	loop_timer_set(f->loop, &f->timers[0], clock_mono());
}

TEST(timer_that_is_always_due_lets_others_run)
{
	struct fixture f;

	setup(&f);
	clock_fake(1000, 0);
	loop_timer_init(&f.timers[0], on_timer_again, &f);
	loop_timer_set(f.loop, &f.timers[0], 1000);
	watch(&f, 0, on_fd);
	loop_once(f.loop, CLOCK_NEVER);
	loop_once(f.loop, CLOCK_NEVER);
	CHECK_STR(f.log, "rtrt");
	teardown(&f);
}

TEST(tasks_run_once_in_order_after_the_rest)
{
	struct fixture f;

	setup(&f);
	clock_fake(1000, 0);
	watch(&f, 0, on_fd);
	loop_timer_init(&f.timers[0], on_timer, &f);
	loop_timer_set(f.loop, &f.timers[0], 1000);
	for (int i = 0; i < 2; i++) {
		loop_task_init(&f.tasks[i], on_task, &f);
		loop_task_queue(f.loop, &f.tasks[i]);
		loop_task_queue(f.loop, &f.tasks[i]);
	}
	loop_once(f.loop, CLOCK_NEVER);
	CHECK_STR(f.log, "rtkk");
	CHECK(!f.tasks[0].queued);
	loop_once(f.loop, 0);
	CHECK_STR(f.log, "rtkkr");
	teardown(&f);
}

static void on_task_again(void *arg)
{
	struct fixture *f = arg;

	on_task(f);
	loop_task_queue(f->loop, &f->tasks[0]);
	loop_task_cancel(f->loop, &f->tasks[1]);
}

TEST(task_may_queue_itself_and_cancel_others)
{
	struct fixture f;

	setup(&f);
	loop_task_init(&f.tasks[0], on_task_again, &f);
	loop_task_init(&f.tasks[1], on_task, &f);
	loop_task_queue(f.loop, &f.tasks[0]);
	loop_task_queue(f.loop, &f.tasks[1]);
	loop_once(f.loop, 0);
	CHECK_STR(f.log, "k");
	/* It is queued again, so this does not sleep. */
	loop_once(f.loop, CLOCK_NEVER);
	CHECK_STR(f.log, "kk");
	loop_task_cancel(f.loop, &f.tasks[0]);
	loop_task_cancel(f.loop, &f.tasks[0]);
	teardown(&f);
}

TEST(cancelling_a_task_that_is_not_queued_does_nothing)
{
	struct fixture f;

	setup(&f);
	for (int i = 0; i < 2; i++)
		loop_task_init(&f.tasks[i], on_task, &f);
	loop_task_queue(f.loop, &f.tasks[0]);
	loop_task_cancel(f.loop, &f.tasks[1]);
	loop_once(f.loop, 0);
	CHECK_STR(f.log, "k");
	teardown(&f);
}

static void on_task_inner_round(void *arg)
{
	struct fixture *f = arg;

	note(f, '(');
	/* The other task first; then there is nothing left but the pipe. */
	loop_once(f->loop, CLOCK_NEVER);
	watch(f, 0, on_fd);
	loop_once(f->loop, CLOCK_NEVER);
	note(f, ')');
}

TEST(task_may_run_an_inner_round)
{
	struct fixture f;

	setup(&f);
	loop_task_init(&f.tasks[0], on_task_inner_round, &f);
	loop_task_init(&f.tasks[1], on_task, &f);
	loop_task_queue(f.loop, &f.tasks[0]);
	loop_task_queue(f.loop, &f.tasks[1]);
	loop_once(f.loop, CLOCK_NEVER);
	CHECK_STR(f.log, "(kr)");
	teardown(&f);
}

/* The mark of a walk through the tasks must not pass for work. */
static void on_task_inner_sleep(void *arg)
{
	struct fixture *f = arg;
	uint64_t before = loop_wakeups(f->loop);

	loop_once(f->loop, 30 * NS_PER_MS);
	loop_once(f->loop, 30 * NS_PER_MS);
	CHECK_INT(loop_wakeups(f->loop) - before, 2);
	note(f, 'k');
}

TEST(inner_round_of_a_task_sleeps)
{
	struct fixture f;
	struct timespec from, to;

	setup(&f);
	loop_task_init(&f.tasks[0], on_task_inner_sleep, &f);
	loop_task_queue(f.loop, &f.tasks[0]);
	clock_gettime(CLOCK_MONOTONIC, &from);
	loop_once(f.loop, 0);
	clock_gettime(CLOCK_MONOTONIC, &to);
	CHECK_STR(f.log, "k");
	CHECK((to.tv_sec - from.tv_sec) * NS_PER_S + to.tv_nsec - from.tv_nsec >=
		60 * NS_PER_MS);
	teardown(&f);
}

static void on_task_stop(void *arg)
{
	struct fixture *f = arg;

	on_task(f);
	loop_stop(f->loop);
}

TEST(runs_until_stopped_and_can_run_again)
{
	struct fixture f;

	setup(&f);
	loop_task_init(&f.tasks[0], on_task_stop, &f);
	for (int i = 0; i < 2; i++) {
		loop_task_queue(f.loop, &f.tasks[0]);
		CHECK_INT(loop_run(f.loop), 0);
	}
	CHECK_STR(f.log, "kk");
	teardown(&f);
}

TEST(stopped_before_it_runs_returns_at_once)
{
	struct fixture f;

	setup(&f);
	loop_stop(f.loop);
	CHECK_INT(loop_run(f.loop), 0);
	CHECK_INT(loop_wakeups(f.loop), 0);
	teardown(&f);
}

TEST(one_sleep_is_one_wakeup)
{
	struct fixture f;

	setup(&f);
	clock_fake(1000, 0);
	loop_timer_init(&f.timers[0], on_timer, &f);
	/* Far away: only the limit can end this sleep. */
	loop_timer_set(f.loop, &f.timers[0], 1000 * NS_PER_S);
	loop_once(f.loop, NS_PER_MS);
	CHECK_INT(loop_wakeups(f.loop), 1);
	CHECK_STR(f.log, "");
	teardown(&f);
}

static void on_signal(int number)
{
	(void)number;
}

TEST(signal_ends_a_sleep_without_error)
{
	const struct sigaction act = {.sa_handler = on_signal};
	/* Again and again: the first might come before the sleep begins. */
	const struct itimerval every_ms = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};
	struct fixture f;

	setup(&f);
	CHECK_INT(sigaction(SIGALRM, &act, NULL), 0);
	CHECK_INT(setitimer(ITIMER_REAL, &every_ms, NULL), 0);
	CHECK_INT(loop_once(f.loop, CLOCK_NEVER), 0);
	CHECK_INT(setitimer(ITIMER_REAL, &off, NULL), 0);
	CHECK_INT(loop_wakeups(f.loop), 1);
	teardown(&f);
}

TEST(destroying_nothing_is_allowed)
{
	loop_destroy(NULL);
}
