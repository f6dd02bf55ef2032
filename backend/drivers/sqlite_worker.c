/* SPDX-License-Identifier: MIT */
/*
 * The thread that waits for the disk.
 *
 * It takes all that is queued and runs it in one transaction, so that a busy
 * moment costs one commit and, if anything in it must be durable, one fsync.
 * What only leases, settles or sends a stored draft is not waited for: losing
 * it in a power cut costs a second delivery and no data.
 *
 * One request that SQLite cannot carry out (a draft that the disk has no room
 * for) must not fail the others. Savepoints would make every good batch pay
 * for that; instead the batch is rolled back, its answers are forgotten, and
 * each request runs again in a transaction of its own. A lock that was not to
 * be had, or a failing disk, would only fail again: then all fail at once.
 *
 * Checkpoints run after the answers have gone out.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../base/clock.h"
#include "../base/log.h"
#include "sqlite_int.h"

#define LINGER_NS (300 * NS_PER_US)

static bool op_writes(enum driver_op op)
{
	return op != DRIVER_DEPTH && op != DRIVER_DEAD_LIST && op != DRIVER_DEAD_READ;
}

static bool op_is_durable(enum driver_op op)
{
	return op == DRIVER_SEND || op == DRIVER_DRAFT_PUT || op == DRIVER_DRAFT_SEAL ||
	       op == DRIVER_SYNC;
}

/* The id of a new draft is negative until its transaction has been committed:
 * so one that has to run again is known to be new. */
static void forget_answer(struct driver_req *req)
{
	driver_req_fini(req);
	if (req->op == DRIVER_DRAFT_PUT && req->u.draft.id < 0)
		req->u.draft.id = 0;
}

static void give_answer(struct driver_req *req)
{
	if (req->op == DRIVER_DRAFT_PUT && req->u.draft.id < 0)
		req->u.draft.id = -req->u.draft.id;
}

static void fail(struct sq *s, struct driver_req *req)
{
	forget_answer(req);
	req->err = s->err;
	driver_detail(req, "%s", s->why);
}

static int begin(struct sq *s, struct sq_reqs *batch)
{
	bool write = false, durable = false;
	struct driver_req *req;

	TAILQ_FOREACH (req, batch, link) {
		write = write || op_writes(req->op);
		durable = durable || op_is_durable(req->op);
	}
	return sq_begin(s, write, durable);
}

static int run_ops(struct sq *s, struct sq_reqs *batch)
{
	struct driver_req *req;

	TAILQ_FOREACH (req, batch, link) {
		req->err = sq_op(s, req);
		if (s->broken)
			return s->err;
	}
	return 0;
}

static void finish(struct sq *s, struct sq_reqs *batch)
{
	struct driver_req *req;

	TAILQ_FOREACH (req, batch, link)
		give_answer(req);
	if (s->ring && s->mounts > 1)
		sq_file_ring(s);
}

static void undo(struct sq *s, struct sq_reqs *batch)
{
	struct driver_req *req;

	sq_rollback(s);
	TAILQ_FOREACH (req, batch, link)
		forget_answer(req);
}

/* 1: done, every answer is in place. 0: nothing has happened, but each request
 * alone may do better. -errno: nothing has happened, and that is no use. */
static int try_batch(struct sq *s, struct sq_reqs *batch)
{
	bool each = false;
	int r = begin(s, batch);

	if (r == 0) {
		r = run_ops(s, batch);
		each = r != -EAGAIN;
	}
	if (r == 0) {
		r = sq_commit(s);
		each = r == -ENOSPC;
	}
	if (r == 0) {
		finish(s, batch);
		return 1;
	}
	undo(s, batch);
	return each ? 0 : r;
}

static void checkpoint(struct sq *s)
{
	(void)sqlite3_wal_checkpoint_v2(
		s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	s->wal_frames = 0;
}

static void run_alone(struct sq *s, struct driver_req *req)
{
	struct sq_reqs one = TAILQ_HEAD_INITIALIZER(one);

	TAILQ_INSERT_TAIL(&one, req, link);
	if (try_batch(s, &one) <= 0)
		fail(s, req);
}

static void run_each(struct sq *s, struct sq_reqs *batch)
{
	struct sq_reqs after = TAILQ_HEAD_INITIALIZER(after);
	struct driver_req *req;

	log_debug("sqlite", "batch failed, one by one: %s", s->why);
	if (s->err == -ENOSPC)
		checkpoint(s); /* may make room in the log */
	while ((req = TAILQ_FIRST(batch))) {
		TAILQ_REMOVE(batch, req, link);
		run_alone(s, req);
		TAILQ_INSERT_TAIL(&after, req, link);
	}
	TAILQ_CONCAT(batch, &after, link);
}

static void run_batch(struct sq *s, struct sq_reqs *batch)
{
	struct driver_req *req = TAILQ_FIRST(batch);
	int r = try_batch(s, batch);

	if (r == 0 && TAILQ_NEXT(req, link)) {
		run_each(s, batch);
		return;
	}
	if (r == 1)
		return;
	TAILQ_FOREACH (req, batch, link)
		fail(s, req);
}

/* Whether another connection has committed since the last look. */
static bool others_committed(struct sq *s)
{
	int64_t version;

	s->broken = false;
	if (sq_int(s, SQ_VERSION, &version, 0) < 0 || version == s->version)
		return false;
	s->version = version;
	return true;
}

/* Fails otherwise only when the counter is full: then the loop is told already. */
static void tell_loop(const struct sq *s)
{
	static const uint64_t one = 1;
	ssize_t n;

	do
		n = write(s->event_fd, &one, sizeof(one));
	while (n < 0 && errno == EINTR);
}

static void answer(struct sq *s, struct sq_reqs *batch, bool changed)
{
	pthread_mutex_lock(&s->lock);
	TAILQ_CONCAT(&s->answered, batch, link);
	s->changed = s->changed || changed;
	pthread_mutex_unlock(&s->lock);
	tell_loop(s);
}

/*
 * What sends a stored draft is put off for a moment: a writer in a loop closes
 * the next file soon, and both go into one transaction. Nobody waits for it but
 * the readers of other mounts, who are told a moment later.
 */
static void linger(struct sq *s)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += LINGER_NS;
	if (until.tv_nsec >= NS_PER_S) {
		until.tv_nsec -= NS_PER_S;
		until.tv_sec++;
	}
	while (!s->stop && !s->look && !s->urgent && !TAILQ_EMPTY(&s->queue))
		if (pthread_cond_timedwait(&s->wake, &s->lock, &until) == ETIMEDOUT)
			return;
}

/* False: stop; nothing is queued then. */
static bool take(struct sq *s, struct sq_reqs *batch, bool *look)
{
	bool go;

	pthread_mutex_lock(&s->lock);
	while (!s->stop && !s->look && TAILQ_EMPTY(&s->queue))
		pthread_cond_wait(&s->wake, &s->lock);
	linger(s);
	TAILQ_CONCAT(batch, &s->queue, link);
	s->urgent = 0;
	*look = s->look;
	s->look = false;
	go = !s->stop;
	pthread_mutex_unlock(&s->lock);
	return go;
}

static void *work(void *arg)
{
	struct sq_reqs batch = TAILQ_HEAD_INITIALIZER(batch);
	struct sq *s = arg;
	bool look;

	while (take(s, &batch, &look)) {
		bool changed = look && others_committed(s);
		bool done = !TAILQ_EMPTY(&batch);

		if (done)
			run_batch(s, &batch);
		if (done || changed)
			answer(s, &batch, changed);
		if (s->wal_frames >= SQ_CHECKPOINT_FRAMES)
			checkpoint(s);
	}
	return NULL;
}

static int note_frames(void *arg, sqlite3 *db, const char *name, int frames)
{
	struct sq *s = arg;

	(void)db;
	(void)name;
	s->wal_frames = frames;
	return SQLITE_OK;
}

int sq_worker_start(struct sq *s)
{
	sigset_t all, old;
	int64_t version;
	int r = sq_int(s, SQ_VERSION, &version, 0);

	if (r < 0)
		return r;
	s->version = version;
	sqlite3_wal_hook(s->db, note_frames, s);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&s->thread, NULL, work, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r != 0)
		return sq_say(s, -ENOMEM, "no thread: %s", strerrordesc_np(r));
	s->running = true;
	return 0;
}

void sq_worker_stop(struct sq *s)
{
	if (!s->running)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	s->running = false;
}
