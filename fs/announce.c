/* SPDX-License-Identifier: MIT */
#include "announce.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "serve.h"

/* No answer to anything for so long: it hangs, and is replaced. */
#define STUCK_NS (5 * NS_PER_S)
/* A killed announcer's last call is known as such for so long. */
#define LATE_CALL_NS   (5 * NS_PER_S)
#define RESTART_MIN_NS (100 * NS_PER_MS)
#define RESTART_MAX_NS (30 * NS_PER_S)
/* More waiting than this and names are listed without it. */
#define QUEUE_MAX ((size_t)4 << 20)

extern char **environ;

struct announce {
	struct fs *fs;
	pid_t pid;      /* 0: not running */
	pid_t last_pid; /* of one that was killed: a call of it may come yet */
	int64_t last_until_ns;
	bool failed; /* something asked of it was not done */
	int to, from;
	struct loop_fd to_fd, from_fd;
	struct buf queue; /* records not yet written */
	size_t sent;      /* of the queue */
	uint64_t asked, answered;
	struct loop_timer restart, stuck;
	int64_t restart_ns;
	struct entry *departing; /* uthash hh_departing, by name; referenced */
	bool on;
};

static void start(void *arg);

static void hang(void *arg);

struct announce *announce_create_keeper(struct fs *fs)
{
	struct announce *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->fs = fs;
	a->to = a->from = -1;
	a->queue.max = QUEUE_MAX;
	a->restart_ns = RESTART_MIN_NS;
	loop_timer_init(&a->restart, start, a);
	loop_timer_init(&a->stuck, hang, a);
	return a;
}

bool announce_is(const struct announce *a, pid_t tid)
{
	if (a->pid && tid == a->pid)
		return true;
	return a->last_pid && tid == a->last_pid && clock_mono() < a->last_until_ns;
}

const char *announce_state(const struct announce *a)
{
	if (!a->on)
		return "off";
	return a->pid ? "up" : "down";
}

static void forget_departing(struct announce *a)
{
	struct entry *en, *next;

	HASH_ITER (hh_departing, a->departing, en, next) {
		HASH_DELETE(hh_departing, a->departing, en);
		entry_unref(en);
	}
}

/* What could not be announced is listed all the same. */
static void list_hidden(struct announce *a)
{
	struct entry *en, *next;

	a->failed = false;
	HASH_ITER (hh, a->fs->messages, en, next) {
		entry_list(en);
	}
}

/* Nobody announces what was asked of it. */
static void give_up_queue(struct announce *a)
{
	buf_clear(&a->queue);
	a->sent = 0;
	a->asked = a->answered = 0;
	forget_departing(a);
	list_hidden(a);
}

static void close_pipes(struct announce *a)
{
	loop_fd_del(a->fs->loop, &a->to_fd);
	loop_fd_del(a->fs->loop, &a->from_fd);
	if (a->to >= 0)
		close(a->to);
	if (a->from >= 0)
		close(a->from);
	a->to = a->from = -1;
}

static void restart_later(struct announce *a)
{
	loop_timer_set(a->fs->loop, &a->restart, clock_mono() + a->restart_ns);
	a->restart_ns *= 2;
	if (a->restart_ns > RESTART_MAX_NS)
		a->restart_ns = RESTART_MAX_NS;
}

static void down(struct announce *a)
{
	if (!a->pid)
		return;
	close_pipes(a);
	kill(a->pid, SIGKILL);
	a->last_pid = a->pid;
	a->last_until_ns = clock_mono() + LATE_CALL_NS;
	a->pid = 0;
	loop_timer_clear(a->fs->loop, &a->stuck);
	give_up_queue(a);
	if (a->fs->ending)
		return;
	log_warn("announce", "announcer is gone, starting another");
	restart_later(a);
	control_changed(a->fs);
}

static void hang(void *arg)
{
	log_warn("announce", "announcer hangs");
	down(arg);
}

void announce_reap(struct announce *a)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		if (pid == a->pid)
			down(a);
}

/* ---- the pipes ---- */

/* The loop calls again. */
static bool is_for_now(int err)
{
	return err == EAGAIN || err == EINTR;
}

static void pump(struct announce *a)
{
	ssize_t n;

	while (a->sent < a->queue.len) {
		n = write(a->to, a->queue.p + a->sent, a->queue.len - a->sent);
		if (n < 0 && is_for_now(errno))
			break;
		if (n < 0) {
			down(a);
			return;
		}
		a->sent += (size_t)n;
	}
	if (a->sent == a->queue.len) {
		buf_clear(&a->queue);
		a->sent = 0;
	}
	loop_fd_mod(a->fs->loop, &a->to_fd, a->queue.len ? EPOLLOUT : 0);
}

static void writable(void *arg, uint32_t events)
{
	struct announce *a = arg;

	if (events & (EPOLLERR | EPOLLHUP))
		down(a);
	else
		pump(a);
}

static void readable(void *arg, uint32_t events)
{
	struct announce *a = arg;
	char answers[4096];
	ssize_t n = read(a->from, answers, sizeof(answers));

	(void)events;
	if (n < 0 && is_for_now(errno))
		return;
	if (n <= 0) {
		down(a);
		return;
	}
	a->answered += (uint64_t)n;
	a->failed |= memchr(answers, '!', (size_t)n) != NULL;
	if (a->failed && a->answered == a->asked)
		list_hidden(a);
	a->restart_ns = RESTART_MIN_NS;
	loop_timer_set(a->fs->loop, &a->stuck,
		a->answered < a->asked ? clock_mono() + STUCK_NS : CLOCK_NEVER);
}

static bool ask(struct announce *a, char kind, const char *name)
{
	size_t len = strlen(name);
	unsigned char head[3] = {(unsigned char)kind, (unsigned char)(len & 0xff),
		(unsigned char)(len >> 8)};

	if (!a->pid || buf_reserve(&a->queue, a->queue.len + sizeof(head) + len))
		return false;
	buf_add(&a->queue, head, sizeof(head));
	buf_add(&a->queue, name, len);
	a->asked++;
	if (!loop_timer_is_set(&a->stuck))
		loop_timer_set(a->fs->loop, &a->stuck, clock_mono() + STUCK_NS);
	pump(a);
	return a->pid != 0;
}

/* ---- starting and ending ---- */

/* Beside this program where it was built, else where it was installed. */
static const char *program(char buf[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", buf, PATH_MAX - 32);
	char *slash;

	if (n > 0) {
		buf[n] = '\0';
		slash = strrchr(buf, '/');
		strcpy(slash ? slash + 1 : buf, "spoolfs-announcer");
		if (!access(buf, X_OK))
			return buf;
	}
	return SPOOLFS_LIBEXECDIR "/spoolfs-announcer";
}

static int spawn(struct announce *a, int in, int out)
{
	char path[PATH_MAX];
	char *argv[] = {(char *)"spoolfs-announcer", a->fs->mountpoint, NULL};
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	sigset_t none;
	int err;

	sigemptyset(&none);
	posix_spawn_file_actions_init(&fa);
	posix_spawnattr_init(&attr);
	posix_spawn_file_actions_adddup2(&fa, in, 0);
	posix_spawn_file_actions_adddup2(&fa, out, 1);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &none);
	err = posix_spawn(&a->pid, program(path), &fa, &attr, argv, environ);
	if (err) {
		a->pid = 0;
		log_warn("announce", "cannot start the announcer: %s", strerror(err));
	}
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&fa);
	return err ? -err : 0;
}

static void watch(struct announce *a, int to, int from)
{
	a->to = to;
	a->from = from;
	fcntl(to, F_SETFL, O_NONBLOCK);
	fcntl(from, F_SETFL, O_NONBLOCK);
	if (loop_fd_add(a->fs->loop, &a->to_fd, to, 0, writable, a) ||
		loop_fd_add(a->fs->loop, &a->from_fd, from, EPOLLIN, readable, a))
		down(a);
}

static void start(void *arg)
{
	struct announce *a = arg;
	int in[2] = {-1, -1}, out[2] = {-1, -1};

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || spawn(a, in[0], out[1])) {
		close(in[1]);
		close(out[0]);
		restart_later(a);
	} else {
		watch(a, in[1], out[0]);
	}
	close(in[0]);
	close(out[1]);
	control_changed(a->fs);
}

void announce_start(struct announce *a)
{
	a->on = a->fs->cfg.announce != CONFIG_ANNOUNCE_OFF && !a->fs->cfg.ro;
	if (a->on)
		start(a);
}

void announce_destroy(struct announce *a)
{
	if (!a)
		return;
	loop_timer_clear(a->fs->loop, &a->restart);
	loop_timer_clear(a->fs->loop, &a->stuck);
	close_pipes(a);
	if (a->pid)
		kill(a->pid, SIGKILL);
	forget_departing(a);
	buf_fini(&a->queue);
	free(a);
}

/* ---- what is announced ---- */

bool announce_create(struct announce *a, const char *name)
{
	bool rename = a->fs->cfg.announce == CONFIG_ANNOUNCE_RENAME;

	return ask(a, rename ? 'R' : 'C', name);
}

struct entry *announce_departing(struct announce *a, const char *name)
{
	struct entry *en = NULL;

	HASH_FIND(hh_departing, a->departing, name, strlen(name), en);
	return en;
}

void announce_delete(struct announce *a, struct entry *en)
{
	if (announce_departing(a, en->name) || !ask(a, 'D', en->name))
		return;
	HASH_ADD_KEYPTR(hh_departing, a->departing, en->name, strlen(en->name), en);
	if (!table_took(hh_departing, en))
		return; /* the announcer finds nothing to remove: no IN_DELETE */
	en->departing = true;
	entry_ref(en);
}

void announce_departed(struct announce *a, const char *name)
{
	struct entry *en = announce_departing(a, name);

	if (!en)
		return;
	HASH_DELETE(hh_departing, a->departing, en);
	en->departing = false;
	entry_unref(en);
}

void announce_touch(struct announce *a, const char *name)
{
	ask(a, 'T', name);
}
