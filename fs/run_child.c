/* SPDX-License-Identifier: MIT */
#include "run_child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../backend/base/clock.h"
#include "../backend/engine/message.h"
#include "run_guard.h"

/* What the environment of a handler has of its message. */
enum { VAR_ID, VAR_NAME, VAR_GIVEN, VAR_ATTEMPTS, VAR_ENQUEUED, VAR_SOURCE, N_VARS };
static const char *const vars[N_VARS] = {"SPOOLFS_ID", "SPOOLFS_NAME", "SPOOLFS_GIVEN",
	"SPOOLFS_ATTEMPTS", "SPOOLFS_ENQUEUED", "SPOOLFS_SOURCE"};

/* ---- what all have in common ---- */

static bool is_ours(const char *entry)
{
	for (unsigned i = 0; i < N_VARS; i++) {
		size_t n = strlen(vars[i]);

		if (strncmp(entry, vars[i], n) == 0 && entry[n] == '=')
			return true;
	}
	return false;
}

static int copy_environ(struct child_kit *k)
{
	size_t n = 0;

	while (environ[n])
		n++;
	k->environ_base = calloc(n + 1, sizeof(char *));
	if (!k->environ_base)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (!is_ours(environ[i]))
			k->environ_base[k->n_environ++] = environ[i];
	}
	return 0;
}

static int make_dir(struct child_kit *k)
{
	const char *tmp = getenv("TMPDIR");
	int n = snprintf(k->dir, sizeof(k->dir), "%s/spoolfs-run.XXXXXX",
		tmp && *tmp ? tmp : "/tmp");

	if (n < 0 || (size_t)n >= sizeof(k->dir) || !mkdtemp(k->dir)) {
		k->dir[0] = '\0';
		return n < 0 || (size_t)n >= sizeof(k->dir) ? -ENAMETOOLONG : -errno;
	}
	return 0;
}

int child_kit_init(struct child_kit *k, const char *path, char **command,
	const char *source, bool wants_file)
{
	int err;

	*k = (struct child_kit){
		.path = path, .command = command, .source = source, .self = getpid()};
	sigprocmask(SIG_SETMASK, NULL, &k->mask);
	err = copy_environ(k);
	return !err && wants_file ? make_dir(k) : err;
}

void child_kit_fini(struct child_kit *k)
{
	run_guard_remove(k->dir);
	free(k->environ_base);
	*k = (struct child_kit){0};
}

/* ---- the body ---- */

static int write_all(int fd, const void *data, size_t n)
{
	const char *p = data;
	size_t at = 0;

	while (at < n) {
		ssize_t done = pwrite(fd, p + at, n - at, (off_t)at);

		if (done < 0 && errno != EINTR)
			return -errno;
		at += done > 0 ? (size_t)done : 0;
	}
	return 0;
}

/* The descriptor, at its beginning, or -errno. */
static int body_fd(const struct message *m)
{
	int fd = memfd_create("spoolfs-message", MFD_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = m->d.body ? write_all(fd, m->d.body->data, m->d.body->len) : 0;
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* Each place has a directory: a message whose lease was lost may be back while its
 * old handler has not ended yet. */
static int name_file(const struct child_kit *k, struct child *c, const char *name)
{
	char *dir;
	int err = 0;

	if (asprintf(&dir, "%s/%u", k->dir, c->place) < 0)
		return -ENOMEM;
	if (mkdir(dir, 0700) && errno != EEXIST)
		err = -errno;
	else if (asprintf(&c->file, "%s/%s", dir, name) < 0)
		err = -ENOMEM;
	if (err)
		c->file = NULL;
	free(dir);
	return err;
}

static int body_file(const struct child_kit *k, struct child *c, const struct message *m,
	const char *name)
{
	int fd, err = name_file(k, c, name);

	if (err)
		return err;
	fd = open(c->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = m->d.body ? write_all(fd, m->d.body->data, m->d.body->len) : 0;
	close(fd);
	return err;
}

static void forget_file(struct child *c)
{
	if (c->file)
		unlink(c->file);
	free(c->file);
	c->file = NULL;
}

/* ---- arguments and environment ---- */

/* ARG with each "{}" replaced by FILE. NULL: out of memory. */
static char *replace(const char *arg, const char *file)
{
	size_t n = 0, len = strlen(file);
	const char *at, *from = arg;
	char *out, *to;

	for (at = strstr(arg, "{}"); at; at = strstr(at + 2, "{}"))
		n++;
	out = to = malloc(strlen(arg) + n * len + 1);
	if (!out)
		return NULL;
	while ((at = strstr(from, "{}"))) {
		to = mempcpy(to, from, (size_t)(at - from));
		to = mempcpy(to, file, len);
		from = at + 2;
	}
	strcpy(to, from);
	return out;
}

static void free_strings(char **list)
{
	for (char **s = list; s && *s; s++)
		free(*s);
	free(list);
}

static char **arguments(const struct child_kit *k, const char *file)
{
	size_t n = 0;
	char **out;

	while (k->command[n])
		n++;
	out = calloc(n + 1, sizeof(char *));
	for (size_t i = 0; out && i < n; i++) {
		out[i] = i ? replace(k->command[i], file) : strdup(k->command[i]);
		if (!out[i]) {
			free_strings(out);
			return NULL;
		}
	}
	return out;
}

static void time_text(char *text, size_t len, int64_t wall_ns)
{
	time_t s = (time_t)(wall_ns / NS_PER_S);
	char date[32];
	struct tm tm;

	gmtime_r(&s, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, len, "%s.%06dZ", date, (int)(wall_ns % NS_PER_S / NS_PER_US));
}

static bool set_vars(char *out[N_VARS], const struct child_kit *k,
	const struct message *m, const char *name)
{
	char attempts[16], enqueued[64];
	const char *values[N_VARS] = {m->d.id, name, m->d.given ? m->d.given : "",
		attempts, enqueued, k->source};

	snprintf(attempts, sizeof(attempts), "%u", m->d.attempts);
	time_text(enqueued, sizeof(enqueued), m->d.enqueued_ns);
	for (unsigned i = 0; i < N_VARS; i++) {
		if (asprintf(&out[i], "%s=%s", vars[i], values[i]) < 0) {
			out[i] = NULL;
			return false;
		}
	}
	return true;
}

/* ---- starting ---- */

struct start {
	const char *path;
	char **argv, **envp;
	int in;
	pid_t *published;
	pid_t self;
	sigset_t mask;
};

/*
 * In the memory of its parent, which sleeps until this has become another
 * program: nothing is copied, and little may be done here. What it publishes is
 * therefore there before the program runs, whenever the parent is killed.
 */
__attribute__((noreturn)) static void become(const struct start *s)
{
	setpgid(0, 0);
	*s->published = getpid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != s->self || dup2(s->in, 0) < 0)
		_exit(126);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &s->mask, NULL);
	execvpe(s->path, s->argv, s->envp);
	_exit(errno == ENOENT ? 127 : 126);
}

__attribute__((noinline)) static pid_t spawn(const struct start *s)
{
	pid_t pid = vfork();

	if (pid == 0)
		become(s);
	return pid;
}

static int start_with(
	const struct child_kit *k, struct child *c, char **argv, char **envp, int in)
{
	struct start s = {.path = k->path,
		.argv = argv,
		.envp = envp,
		.in = in,
		.published = c->published,
		.self = k->self,
		.mask = k->mask};

	c->pid = spawn(&s);
	if (c->pid > 0)
		return 0;
	c->pid = 0;
	return -errno;
}

/* With standard input: argv and the environment. */
static int start_on(const struct child_kit *k, struct child *c, const struct message *m,
	const char *name, int in)
{
	char **argv = c->file ? arguments(k, c->file) : k->command;
	char **envp = calloc(k->n_environ + N_VARS + 1, sizeof(char *));
	char *mine[N_VARS] = {0};
	int err = -ENOMEM;

	if (argv && envp && set_vars(mine, k, m, name)) {
		memcpy(envp, k->environ_base, k->n_environ * sizeof(char *));
		memcpy(envp + k->n_environ, mine, sizeof(mine));
		err = start_with(k, c, argv, envp, in);
	}
	for (unsigned i = 0; i < N_VARS; i++)
		free(mine[i]);
	free(envp);
	if (c->file)
		free_strings(argv);
	return err;
}

int child_start(const struct child_kit *k, struct child *c, const struct message *m,
	const char *name)
{
	int err = k->dir[0] ? body_file(k, c, m, name) : 0;
	int in = err ? err : body_fd(m);

	err = in < 0 ? in : start_on(k, c, m, name, in);
	if (in >= 0)
		close(in);
	if (err)
		forget_file(c);
	return err;
}

/* ---- ending ---- */

void child_signal(const struct child *c, int sig)
{
	if (c->pid)
		kill(-c->pid, sig);
}

void child_reap(struct child *c, bool all)
{
	if (all)
		kill(-c->pid, SIGKILL);
	*c->published = 0;
	waitpid(c->pid, NULL, 0);
	c->pid = 0;
	forget_file(c);
}
