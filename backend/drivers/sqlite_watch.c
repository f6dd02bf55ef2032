/* SPDX-License-Identifier: MIT */
/*
 * Noticing the commits of other mounts.
 *
 * Problem: inotify on the write-ahead log speaks when frames are written, and
 * a durable commit counts only after the fsync behind that: whoever looks at
 * the event looks too early, and no second event comes. Rule: a mount whose
 * transaction concerns the others writes to the lock file once the commit is
 * visible; all watch that file. PRAGMA data_version then tells the worker
 * whether it was another connection, so the own bell is not heard.
 *
 * Looking is limited to once a millisecond, by leaving events unread until a
 * timer has passed. Nothing runs while nothing rings.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "../base/clock.h"
#include "../base/log.h"
#include "sqlite_int.h"

static void look(struct sq *s)
{
	pthread_mutex_lock(&s->lock);
	s->look = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
}

static void on_timer(void *arg)
{
	struct sq *s = arg;
	int r = loop_fd_mod(s->loop, &s->watch.w, EPOLLIN);

	if (r < 0)
		log_error("sqlite", "no longer notified: %s", strerrordesc_np(-r));
}

static void on_event(void *arg, uint32_t events)
{
	struct sq *s = arg;
	int64_t now = clock_mono();
	char skipped[4096];

	(void)events;
	if (now < s->watch.next_ns) {
		loop_timer_set(s->loop, &s->watch.timer, s->watch.next_ns);
		(void)loop_fd_mod(s->loop, &s->watch.w, 0);
		return;
	}
	while (read(s->watch.fd, skipped, sizeof(skipped)) > 0)
		continue;
	s->watch.next_ns = clock_add(now, NS_PER_MS);
	look(s);
}

int sq_watch_start(struct sq *s)
{
	char *path = sq_file_lock_path(s);
	int r;

	if (!path)
		return sq_oom(s);
	loop_timer_init(&s->watch.timer, on_timer, s);
	s->watch.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (s->watch.fd >= 0 && inotify_add_watch(s->watch.fd, path, IN_MODIFY) >= 0)
		r = loop_fd_add(s->loop, &s->watch.w, s->watch.fd, EPOLLIN, on_event, s);
	else
		r = -errno;
	free(path);
	return r < 0 ? sq_say(s, -EIO, "inotify: %s", strerrordesc_np(-r)) : 0;
}

void sq_watch_stop(struct sq *s)
{
	if (s->watch.fd < 0)
		return;
	if (s->watch.timer.fn)
		loop_timer_clear(s->loop, &s->watch.timer);
	loop_fd_del(s->loop, &s->watch.w);
	close(s->watch.fd);
	s->watch.fd = -1;
}
