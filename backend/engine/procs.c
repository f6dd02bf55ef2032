/* SPDX-License-Identifier: MIT */
/*
 * A record's life: made at the first look-up, in the table while the process
 * lives, freed once it is in nobody's hands. Three may hold it: the table, those
 * who took a reference, and the records of its children.
 *
 * Its pidfd first says that the process has exited (EPOLLIN). If somebody holds
 * a reference it is watched on, for errors only, until the process is reaped
 * (EPOLLHUP; the kernel wakes a sleeper for that): the exit status is there then
 * and not before.
 *
 * Nothing is freed inside a call: a borrowed record must stay good until the
 * caller returns to the loop. What is to go waits for the sweep, a task.
 *
 * Where there is no pidfd (forbidden by a sandbox, an old kernel, or half of the
 * descriptors taken up already, as /proc needs some too) a record is compared
 * with /proc whenever it is used.
 */
#include "procs.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/log.h"
#include "../base/loop.h"
#include "../base/table.h"
#include "procfs.h"

struct record {
	struct proc p; /* first: the address of one is that of the other */
	struct procs *ps;
	unsigned refs; /* taken by procs_ref() and procs_revive() */
	unsigned children;
	bool in_table;
	bool doomed;
	int pidfd; /* -1: none, or not needed any more */
	struct loop_fd watch;
	UT_hash_handle hh;
	TAILQ_ENTRY(record) link;
};

TAILQ_HEAD(record_list, record);

struct procs {
	struct loop *loop;
	struct procs_events events;
	struct record *table;      /* the living, by pid */
	struct record_list dead;   /* kept for who holds them */
	struct record_list doomed; /* for the sweep */
	struct loop_task sweep;
	struct record unseen;
	unsigned watched, watched_max;
	bool warned;
	char boot_id[40];
};

static struct record *record_of(struct proc *p)
{
	return (struct record *)p;
}

static void unwatch(struct record *r)
{
	if (r->pidfd < 0)
		return;
	loop_fd_del(r->ps->loop, &r->watch);
	close(r->pidfd);
	r->pidfd = -1;
	r->ps->watched--;
}

/* Called whenever one hand less holds R. */
static void let_go(struct record *r)
{
	struct procs *ps = r->ps;

	if (r->in_table || r->refs)
		return;
	unwatch(r);
	if (r->children || r->doomed)
		return;
	r->doomed = true;
	TAILQ_REMOVE(&ps->dead, r, link);
	TAILQ_INSERT_TAIL(&ps->doomed, r, link);
	loop_task_queue(ps->loop, &ps->sweep);
}

static void sweep(void *arg)
{
	struct procs *ps = arg;
	struct record *r;

	while ((r = TAILQ_FIRST(&ps->doomed))) {
		struct proc *parent = r->p.parent;

		TAILQ_REMOVE(&ps->doomed, r, link);
		if (r->refs || r->children) { /* somebody took it up again */
			r->doomed = false;
			TAILQ_INSERT_TAIL(&ps->dead, r, link);
			continue;
		}
		free(r);
		if (parent) {
			record_of(parent)->children--;
			let_go(record_of(parent));
		}
	}
}

/* The process has exited. */
static void retire(struct record *r)
{
	struct procs *ps = r->ps;

	r->p.alive = false;
	r->in_table = false;
	HASH_DELETE(hh, ps->table, r);
	TAILQ_INSERT_TAIL(&ps->dead, r, link);
	if (r->refs) {
		if (r->pidfd >= 0 && loop_fd_mod(ps->loop, &r->watch, 0))
			unwatch(r);
		ps->events.exited(ps->events.arg, &r->p);
	}
	let_go(r);
}

static struct proc_end end_of(int status)
{
	struct proc_end end = {.known = true};

	if (WIFSIGNALED(status))
		end.signal = WTERMSIG(status);
	else
		end.exit_code = WEXITSTATUS(status);
	return end;
}

/*
 * A zombie tells how it ended before its parent reaps it, if it ended badly: 0 is
 * also said to those who may not know. It is the one of the pidfd if that has
 * not been reaped afterwards either.
 */
static bool zombie_status(const struct record *r, int *status)
{
	struct procfs_stat st;

	if (procfs_stat(r->p.pid, &st) || st.state != 'Z' || !st.exit_code)
		return false;
	*status = st.exit_code;
	return !procfs_pidfd_reaped(r->pidfd);
}

static void look_for_end(struct record *r, bool reaped)
{
	struct procs *ps = r->ps;
	struct proc_end end;
	int status;
	int known = procfs_pidfd_status(r->pidfd, &status);

	if (known <= 0 && !reaped && zombie_status(r, &status))
		known = 1;
	/* -ESRCH: it is being reaped at this moment, and then it is known. */
	if ((known == 0 || known == -ESRCH) && !reaped)
		return;
	unwatch(r);
	if (known > 0) {
		end = end_of(status);
		ps->events.ended(ps->events.arg, &r->p, &end);
	}
}

static void on_pidfd(void *arg, uint32_t events)
{
	struct record *r = arg;

	if (r->in_table)
		retire(r);
	if (r->pidfd >= 0)
		look_for_end(r, events & EPOLLHUP);
}

static bool has_exited(const struct record *r)
{
	struct procfs_ident id;

	if (r->pidfd >= 0)
		return procfs_pidfd_exited(r->pidfd);
	return procfs_ident(r->p.pid, -1, &id) || id.start != r->p.start;
}

static struct record *find(struct procs *ps, pid_t pid)
{
	struct record *r;

	HASH_FIND(hh, ps->table, &pid, sizeof(pid), r);
	if (!r || r->pidfd >= 0 || !has_exited(r))
		return r;
	retire(r);
	return NULL;
}

static void warn_once(struct procs *ps, int err)
{
	if (ps->warned)
		return;
	ps->warned = true;
	log_warn(
		"procs", "the end of some processes will be noticed late errno=%d", -err);
}

/* Sets r->pidfd. 0 also when there is none to be had; -ESRCH and -EINVAL as
 * procfs_pidfd_open() has them. */
static int open_pidfd(struct record *r)
{
	int fd = -EMFILE;

	if (r->ps->watched < r->ps->watched_max)
		fd = procfs_pidfd_open(r->p.pid);
	if (fd >= 0) {
		r->pidfd = fd;
		r->ps->watched++;
		return 0;
	}
	if (fd == -ESRCH || fd == -EINVAL)
		return fd;
	warn_once(r->ps, fd);
	return procfs_process_of(r->p.pid) == r->p.pid ? 0 : -EINVAL;
}

static int identify(struct record *r, pid_t *parent)
{
	struct procfs_ident id;
	int err = open_pidfd(r);

	if (!err)
		err = procfs_ident(r->p.pid, r->pidfd, &id);
	if (err)
		return err;
	r->p.session = id.session;
	r->p.start = id.start;
	*parent = id.parent;
	return 0;
}

static int enter(struct record *r)
{
	struct procs *ps = r->ps;
	int err;

	if (r->pidfd >= 0) {
		err = loop_fd_add(ps->loop, &r->watch, r->pidfd, EPOLLIN, on_pidfd, r);
		if (err)
			return err;
	}
	HASH_ADD(hh, ps->table, p.pid, sizeof(r->p.pid), r);
	if (!table_took(hh, r))
		return -ENOMEM;
	r->in_table = true;
	r->p.alive = true;
	return 0;
}

/* A record for a process that is not in the table, and its parent's pid. 0,
 * -ENOMEM, -EINVAL when PID is a thread only, or another error: not visible. */
static int create(struct procs *ps, pid_t pid, struct record **out, pid_t *parent)
{
	struct record *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->ps = ps;
	r->p.pid = pid;
	r->pidfd = -1;
	err = identify(r, parent);
	if (!err)
		err = enter(r);
	if (err) {
		unwatch(r);
		free(r);
		return err;
	}
	*out = r;
	return 0;
}

/* PARENT has ended since it was read, and R was given another. 0: none. */
static pid_t parent_now(const struct record *r, pid_t parent)
{
	struct procfs_ident id;

	if (procfs_ident(r->p.pid, r->pidfd, &id) || id.start != r->p.start ||
		id.parent == parent)
		return 0;
	return id.parent;
}

/* Links R upwards until it meets a record that is linked already. A parent
 * that cannot be seen is none. */
static void link_parents(struct procs *ps, struct record *r, pid_t parent)
{
	while (parent > 0) {
		pid_t grandparent = 0;
		struct record *up = find(ps, parent);

		if (!up && create(ps, parent, &up, &grandparent)) {
			parent = parent_now(r, parent);
			continue;
		}
		/* Nobody is younger than his child: the number was used again. */
		if (up->p.start <= r->p.start) {
			r->p.parent = &up->p;
			up->children++;
		}
		r = up;
		parent = grandparent;
	}
}

/* The record of process PID; errors of create(). */
static int look_up(struct procs *ps, pid_t pid, struct record **out)
{
	pid_t parent;
	int err;

	*out = find(ps, pid);
	if (*out)
		return 0;
	err = create(ps, pid, out, &parent);
	if (!err)
		link_parents(ps, *out, parent);
	return err;
}

struct proc *procs_get(struct procs *ps, pid_t tid)
{
	struct record *r;
	int err = tid > 0 ? look_up(ps, tid, &r) : -ESRCH;

	if (err == -EINVAL) {
		pid_t pid = procfs_process_of(tid);

		err = pid > 0 ? look_up(ps, pid, &r) : -ESRCH;
	}
	if (err == -ENOMEM)
		return NULL;
	return err ? &ps->unseen.p : &r->p;
}

static struct record *create_dead(struct procs *ps, pid_t pid, uint64_t start)
{
	struct record *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->ps = ps;
	r->p.pid = pid;
	r->p.start = start;
	r->pidfd = -1;
	TAILQ_INSERT_TAIL(&ps->dead, r, link);
	return r;
}

struct proc *procs_revive(struct procs *ps, pid_t pid, uint64_t start)
{
	struct record *r;

	if (pid <= 0)
		return &ps->unseen.p;
	if (look_up(ps, pid, &r) || r->p.start != start)
		r = create_dead(ps, pid, start);
	return r ? procs_ref(&r->p) : NULL;
}

struct proc *procs_ref(struct proc *p)
{
	record_of(p)->refs++;
	return p;
}

void procs_unref(struct procs *ps, struct proc *p)
{
	struct record *r = record_of(p);

	if (!p || r == &ps->unseen)
		return;
	assert(r->refs > 0);
	r->refs--;
	let_go(r);
}

bool procs_check_alive(struct procs *ps, struct proc *p)
{
	struct record *r = record_of(p);

	if (r == &ps->unseen || !p->alive)
		return p->alive;
	if (has_exited(r))
		retire(r);
	return p->alive;
}

int procs_exit_signal(pid_t tid)
{
	return tid <= 0 ? 0 : procfs_exit_signal(tid);
}

const char *procs_boot_id(struct procs *ps)
{
	return ps->boot_id;
}

static unsigned watch_limit(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) < 0)
		return 0;
	return lim.rlim_cur / 2 < UINT_MAX ? (unsigned)(lim.rlim_cur / 2) : UINT_MAX;
}

struct procs *procs_create(struct loop *loop, const struct procs_events *events)
{
	struct procs *ps = calloc(1, sizeof(*ps));

	if (!ps)
		return NULL;
	ps->loop = loop;
	ps->events = *events;
	TAILQ_INIT(&ps->dead);
	TAILQ_INIT(&ps->doomed);
	loop_task_init(&ps->sweep, sweep, ps);
	ps->unseen.ps = ps;
	ps->unseen.pidfd = -1;
	ps->unseen.p.alive = true;
	ps->watched_max = watch_limit();
	procfs_boot_id(ps->boot_id, sizeof(ps->boot_id));
	return ps;
}

static void free_list(struct record_list *list)
{
	struct record *r;

	while ((r = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, r, link);
		unwatch(r);
		free(r);
	}
}

void procs_destroy(struct procs *ps)
{
	struct record *r, *next;

	if (!ps)
		return;
	HASH_ITER (hh, ps->table, r, next) {
		HASH_DELETE(hh, ps->table, r);
		TAILQ_INSERT_TAIL(&ps->dead, r, link);
	}
	free_list(&ps->dead);
	free_list(&ps->doomed);
	loop_task_cancel(ps->loop, &ps->sweep);
	free(ps);
}
