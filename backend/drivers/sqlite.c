/* SPDX-License-Identifier: MIT */
/* The SQLite driver, the loop's side: open, close, submit, answers. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "sqlite.h"
#include "sqlite_int.h"

static struct sq *sq_of(struct driver *d)
{
	return (struct sq *)(void *)d;
}

/* Callbacks may submit further requests, but not close the driver. */
static void on_answers(void *arg, uint32_t events)
{
	struct sq_reqs answered = TAILQ_HEAD_INITIALIZER(answered);
	struct sq *s = arg;
	struct driver_req *req;
	uint64_t count;
	bool changed;

	(void)events;
	if (read(s->event_fd, &count, sizeof(count)) < 0)
		return;
	pthread_mutex_lock(&s->lock);
	TAILQ_CONCAT(&answered, &s->answered, link);
	changed = s->changed;
	s->changed = false;
	pthread_mutex_unlock(&s->lock);
	while ((req = TAILQ_FIRST(&answered))) {
		TAILQ_REMOVE(&answered, req, link);
		s->submitted--;
		driver_complete(req);
	}
	if (changed && s->on_change)
		s->on_change(s->arg);
}

static void sq_submit(struct driver *d, struct driver_req *req)
{
	struct sq *s = sq_of(d);

	s->submitted++;
	pthread_mutex_lock(&s->lock);
	TAILQ_INSERT_TAIL(&s->queue, req, link);
	s->urgent += req->op != DRIVER_DRAFT_SEND;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
}

/* The log is merged into the file: another mount may have it open for long.
 * SQLite does the same itself when this was the last connection. */
static void close_db(struct sq *s)
{
	if (!s->db)
		return;
	for (int i = 0; i < SQ_STMTS; i++)
		sqlite3_finalize(s->stmt[i]);
	(void)sqlite3_wal_checkpoint_v2(
		s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	sqlite3_close(s->db);
}

/* Takes a half-built one. */
static void destroy(struct sq *s)
{
	sq_worker_stop(s);
	sq_watch_stop(s);
	if (s->event_fd >= 0) {
		loop_fd_del(s->loop, &s->event);
		close(s->event_fd);
	}
	close_db(s);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s->path);
	free(s);
}

static void sq_close(struct driver *d)
{
	struct sq *s = sq_of(d);
	struct pollfd p = {.fd = s->event_fd, .events = POLLIN};

	s->on_change = NULL;
	while (s->submitted > 0)
		if (poll(&p, 1, -1) > 0)
			on_answers(s, EPOLLIN);
	destroy(s);
}

static struct sq *create(const struct driver_params *p)
{
	struct sq *s = calloc(1, sizeof(*s));
	pthread_condattr_t wake;

	if (!s)
		return NULL;
	s->base.ops = &sqlite_driver_ops;
	s->base.max_body = SQ_MAX_BODY;
	s->loop = p->loop;
	s->on_change = p->on_change;
	s->arg = p->arg;
	s->no_drafts = p->no_drafts;
	s->event_fd = s->lock_fd = s->watch.fd = -1;
	TAILQ_INIT(&s->queue);
	TAILQ_INIT(&s->answered);
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&wake);
	pthread_condattr_setclock(&wake, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &wake);
	pthread_condattr_destroy(&wake);
	return s;
}

/* Byte 0 of the lock file: who opens a queue does it alone. */
static int enter(struct sq *s, const char *identity)
{
	int r = sq_file_lock_wait(s, 0, 5000);

	if (r < 0)
		return r;
	r = sq_schema_init(s);
	if (r == 0)
		r = sq_mount_enter(s, identity);
	sq_file_unlock(s, 0);
	return r;
}

static int start(struct sq *s)
{
	int r;

	s->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (s->event_fd < 0)
		return sq_say(s, -EIO, "eventfd: %s", strerrordesc_np(errno));
	r = loop_fd_add(s->loop, &s->event, s->event_fd, EPOLLIN, on_answers, s);
	if (r < 0)
		return sq_say(s, -EIO, "epoll: %s", strerrordesc_np(-r));
	r = sq_watch_start(s);
	return r < 0 ? r : sq_worker_start(s);
}

static int sq_open(
	const struct driver_params *p, struct driver **out, char *err, size_t err_len)
{
	struct sq *s = create(p);
	int r;

	if (!s) {
		snprintf(err, err_len, "out of memory");
		return -ENOMEM;
	}
	r = sq_file_find(s, p->source, p->create);
	if (r == 0)
		r = sq_schema_open(s);
	if (r == 0)
		r = sq_file_lock_open(s);
	if (r == 0)
		r = enter(s, p->identity);
	if (r == 0)
		r = start(s);
	if (r < 0) {
		snprintf(err, err_len, "%s", s->why);
		destroy(s);
		return r;
	}
	*out = (struct driver *)(void *)s;
	return 0;
}

const struct driver_ops sqlite_driver_ops = {
	.name = "sqlite",
	.caps = DRIVER_STORE | DRIVER_ATTEMPTS | DRIVER_DEAD | DRIVER_NOTIFIES |
		DRIVER_PEERS_KNOWN | DRIVER_NAMES | DRIVER_KEEPER,
	.max_receive = SQ_MAX_RECEIVE,
	.open = sq_open,
	.close = sq_close,
	.submit = sq_submit,
	.help = "PATH or sqlite:PATH   an embedded queue: one SQLite file",
};
