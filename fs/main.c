/* SPDX-License-Identifier: MIT */
/*
 * spoolfs: a message queue as a spool directory. A map of the files:
 *
 *	fs/		what the kernel asks, what the user sees (fs.h)
 *	backend/engine/	the queue as this process holds it (engine.h)
 *	backend/drivers/ where messages live (driver.h)
 *	backend/base/	loop, clock, heap, buffers, log
 *
 * This file: create, run, destroy in reverse.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "../backend/drivers/registry.h"
#include "announce.h"
#include "background.h"
#include "policy.h"
#include "run.h"
#include "serve.h"

/* How long an end waits for a backend that does not answer. */
#define END_GRACE_NS (10 * NS_PER_S)

/* ---- running ---- */

struct engine_config fs_engine_config(const struct fs *fs)
{
	return policy_of(&fs->cfg, driver_ops_of(fs->driver)->max_receive);
}

void fs_configure(struct fs *fs)
{
	struct engine_config cfg = fs_engine_config(fs);

	log_set_debug(fs->cfg.debug);
	engine_configure(fs->engine, &cfg);
}

static void stopped(void *arg)
{
	struct fs *fs = arg;

	loop_stop(fs->loop);
}

void fs_end(struct fs *fs, const char *reason, int exit_code)
{
	if (fs->ending)
		return;
	fs->ending = true;
	fs->exit_code = exit_code;
	log_info("main", "ending: %s", reason);
	engine_stop(fs->engine, END_GRACE_NS, stopped, fs);
}

int fs_run_exit_code(const struct fs *fs)
{
	bool bounded = fs->cfg.budget.run_for_ns > 0 || fs->cfg.idle_timeout_ns > 0;
	struct engine_stats s;

	engine_stats(fs->engine, &s);
	return bounded ? policy_end_code(&s) : 0;
}

/* One request a round, so that timers and answers are not starved; epoll says
 * at once when there is another. */
static void on_request(void *arg, uint32_t events)
{
	struct fs *fs = arg;
	int n = fuse_session_receive_buf(fs->se, &fs->request);

	(void)events;
	if (n == -EINTR || n == -EAGAIN)
		return;
	if (n > 0)
		fuse_session_process_buf(fs->se, &fs->request);
	if (n > 0 && !fuse_session_exited(fs->se))
		return;
	loop_fd_del(fs->loop, &fs->fuse_fd);
	fs_end(fs, n < 0 ? "unmounted, or the connection was aborted" : "unmounted", 0);
}

static void on_signal(void *arg, uint32_t events)
{
	struct fs *fs = arg;
	struct signalfd_siginfo si;

	(void)events;
	while (read(fs->signal_fd.fd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		if (si.ssi_signo == SIGCHLD)
			announce_reap(fs->announce);
		else
			fs_end(fs, strsignal((int)si.ssi_signo), 0);
	}
}

static void on_driver_change(void *arg)
{
	struct fs *fs = arg;

	if (fs->engine)
		engine_driver_changed(fs->engine);
}

/* ---- starting ---- */

static int watch_signals(struct fs *fs)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD};
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(&set, signals[i]);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	return loop_fd_add(fs->loop, &fs->signal_fd, fd, EPOLLIN, on_signal, fs);
}

/* A pidfd for each process that matters: take what the system allows. */
static void raise_file_limit(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl))
		return;
	rl.rlim_cur = rl.rlim_max;
	setrlimit(RLIMIT_NOFILE, &rl);
}

/* Later, another working directory must not change what the source means. */
static int open_driver(struct fs *fs, char *err, size_t err_len)
{
	char host[256] = "", identity[PATH_MAX + 256];
	struct driver_params p = policy_params(&fs->cfg);

	p.loop = fs->loop;
	p.identity = identity;
	p.on_change = on_driver_change;
	p.arg = fs;
	gethostname(host, sizeof(host) - 1);
	snprintf(identity, sizeof(identity), "%s:%s", host, fs->mountpoint);
	return registry_open(fs->cfg.source, &p, &fs->driver, err, err_len);
}

static int create_engine(struct fs *fs)
{
	struct engine_config cfg = fs_engine_config(fs);
	struct engine_events ev;

	fs->drafts = name_patterns_create(fs->cfg.drafts ? fs->cfg.drafts : "");
	fs->announce = announce_create_keeper(fs);
	if (!fs->drafts || !fs->announce || node_init(fs))
		return -ENOMEM;
	control_init(fs);
	next_init(fs);
	entry_events(fs, &ev);
	fs->engine = engine_create(fs->loop, fs->driver, &cfg, &ev);
	return fs->engine ? 0 : -errno;
}

/* The mount answers: whoever started us may go on. */
static void ready(struct fs *fs, int err)
{
	if (err || !fs->mounted || !fs->engine_started)
		return;
	announce_start(fs->announce);
	background_ready(fs->cfg.foreground, fs->mountpoint);
	log_info("main", "mounted source=%s at=%s control=%s/.control", fs->cfg.source,
		fs->mountpoint, fs->mountpoint);
}

static void engine_started(void *arg, int err)
{
	struct fs *fs = arg;

	fs->engine_started = true;
	if (err)
		log_warn("main", "the backend %s, going on without it",
			err == -EACCES ? "refuses access" : "does not answer yet");
	ready(fs, 0);
}

static int mount_it(struct fs *fs, char *err, size_t err_len)
{
	char *argv[] = {(char *)"spoolfs", (char *)"-o", fs->cfg.fuse_opts, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(3, argv);

	fs->se = fuse_session_new(&args, &fs_ops, sizeof(fs_ops), fs);
	fuse_opt_free_args(&args);
	if (!fs->se || fuse_session_mount(fs->se, fs->mountpoint)) {
		snprintf(err, err_len, "%s: cannot mount", fs->mountpoint);
		return -EIO;
	}
	fcntl(fuse_session_fd(fs->se), F_SETFL,
		fcntl(fuse_session_fd(fs->se), F_GETFL) | O_NONBLOCK);
	fcntl(fuse_session_fd(fs->se), F_SETFD, FD_CLOEXEC);
	return loop_fd_add(
		fs->loop, &fs->fuse_fd, fuse_session_fd(fs->se), EPOLLIN, on_request, fs);
}

static int start(struct fs *fs, char *err, size_t err_len)
{
	int e = watch_signals(fs);

	if (!e)
		e = mount_prepare(fs, err, err_len);
	if (!e)
		e = open_driver(fs, err, err_len);
	if (!e && fs->cfg.adopt)
		e = mount_adopt(fs, err, err_len);
	if (!e)
		e = create_engine(fs);
	if (!e)
		e = mount_it(fs, err, err_len);
	if (e)
		return e;
	fs->ready = ready;
	engine_start(fs->engine, engine_started, fs);
	return 0;
}

/* ---- the end ---- */

static void destroy(struct fs *fs)
{
	loop_fd_del(fs->loop, &fs->fuse_fd);
	if (fs->se)
		fuse_session_unmount(fs->se);
	driver_close(fs->driver);
	if (fs->engine) {
		handle_fini(fs);
		entry_fini(fs);
		control_fini(fs);
		next_fini(fs);
	}
	announce_destroy(fs->announce);
	engine_destroy(fs->engine);
	if (fs->se)
		fuse_session_destroy(fs->se);
	node_fini(fs);
	free(fs->request.mem);
	name_patterns_destroy(fs->drafts);
	if (fs->signal_fd.active) {
		loop_fd_del(fs->loop, &fs->signal_fd);
		close(fs->signal_fd.fd);
	}
	loop_destroy(fs->loop);
	config_fini(&fs->cfg);
	free(fs->mountpoint);
}

static int refuse(void)
{
	perror("spoolfs");
	return EX_OSERR;
}

static int serve(struct fs *fs)
{
	char err[512] = "";
	int e;

	raise_file_limit();
	log_set_debug(fs->cfg.debug);
	fs->started_wall_ns = clock_wall();
	TAILQ_INIT(&fs->nodes);
	TAILQ_INIT(&fs->handles);
	fs->loop = loop_create();
	if (!fs->loop) {
		refuse();
		config_fini(&fs->cfg);
		return EX_OSERR;
	}
	e = start(fs, err, sizeof(err));
	if (e) {
		fprintf(stderr, "spoolfs: %s\n", err[0] ? err : strerror(-e));
		fs->exit_code = policy_exit_code(e);
	} else {
		e = loop_run(fs->loop);
	}
	destroy(fs);
	return e && !fs->exit_code ? EX_OSERR : fs->exit_code;
}

/* What is opened later must not become a standard descriptor: the log is written
 * to one. */
static void fill_standard_fds(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	struct fs fs = {0};
	char err[CONFIG_ERR_LEN] = "";
	int e;

	fill_standard_fds();
	if (argc > 1 && strcmp(argv[1], "run") == 0)
		return run_main(argc - 1, argv + 1);
	if (config_init(&fs.cfg))
		return refuse();
	e = config_args(&fs.cfg, argc, argv, err, sizeof(err));
	if (e) {
		fprintf(stderr, "spoolfs: %s\n", err[0] ? err : strerror(-e));
		config_fini(&fs.cfg);
		return e == -ENOMEM ? EX_OSERR : EX_USAGE;
	}
	if (fs.cfg.action != CONFIG_MOUNT) {
		if (fs.cfg.action == CONFIG_HELP)
			config_help(stdout);
		else
			printf("spoolfs " SPOOLFS_VERSION "\n");
		config_fini(&fs.cfg);
		return 0;
	}
	if (!fs.cfg.foreground)
		background_start();
	return serve(&fs);
}
