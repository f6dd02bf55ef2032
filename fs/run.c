/* SPDX-License-Identifier: MIT */
/* The life of a run: create, run, destroy in reverse. */
#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "../backend/drivers/registry.h"
#include "policy.h"
#include "run_guard.h"

/* ---- what happens ---- */

static void on_signal(void *arg, uint32_t events)
{
	struct run *r = arg;
	struct signalfd_siginfo si;

	(void)events;
	while (read(r->signal_fd.fd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		if (si.ssi_signo == SIGCHLD)
			run_reap(r);
		else if (r->ending)
			run_end_now(r);
		else
			run_end(r, "a signal", (int)si.ssi_signo,
				clock_add(clock_mono(), r->args.grace_ns));
	}
	run_step_soon(r);
}

static void left(void *arg, struct message *m)
{
	run_left(arg, m);
}

static void changed(void *arg)
{
	struct run *r = arg;

	if (r->engine)
		run_step_soon(r);
}

static void finished(void *arg)
{
	struct run *r = arg;

	r->finished = true;
	run_step_soon(r);
}

static void ready_changed(void *arg, bool ready)
{
	(void)ready;
	run_step_soon(arg);
}

static int arrived(void *arg, struct message *m)
{
	(void)arg;
	(void)m;
	return 0;
}

static void no_message(void *arg, struct message *m)
{
	(void)arg;
	(void)m;
}

static void no_dead(void *arg, struct dead *d)
{
	(void)arg;
	(void)d;
}

static void no_draft(void *arg, struct draft *d)
{
	(void)arg;
	(void)d;
}

static void on_driver_change(void *arg)
{
	struct run *r = arg;

	if (r->engine)
		engine_driver_changed(r->engine);
}

static void engine_started(void *arg, int err)
{
	struct run *r = arg;

	r->answered = true;
	r->denied = err == -EACCES;
	if (r->denied)
		run_end(r, "access denied", SIGTERM, CLOCK_NEVER);
}

/* ---- starting ---- */

/* nohup(1), and a script that starts something behind &, want it so. */
static bool is_ignored(int sig)
{
	struct sigaction now;

	return sigaction(sig, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static int watch_signals(struct run *r)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (!is_ignored(signals[i]))
			sigaddset(&set, signals[i]);
	}
	sigaddset(&set, SIGCHLD);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	return loop_fd_add(r->loop, &r->signal_fd, fd, EPOLLIN, on_signal, r);
}

/* No later run takes over what this one has: its leases end by themselves. */
static int open_driver(struct run *r, char *err, size_t err_len)
{
	char host[256] = "", identity[512];
	struct driver_params p = policy_params(&r->args.cfg);

	p.loop = r->loop;
	p.identity = identity;
	p.no_drafts = true;
	p.on_change = on_driver_change;
	p.arg = r;
	gethostname(host, sizeof(host) - 1);
	snprintf(identity, sizeof(identity), "%s:run:%d:%lld", host, (int)getpid(),
		(long long)clock_wall());
	return registry_open(r->args.cfg.source, &p, &r->driver, err, err_len);
}

static int create_engine(struct run *r)
{
	struct engine_config cfg =
		policy_of(&r->args.cfg, driver_ops_of(r->driver)->max_receive);
	struct engine_events ev = {
		.arrived = arrived,
		.left = left,
		.unclaimed = no_message,
		.dead_added = no_dead,
		.dead_removed = no_dead,
		.draft_found = no_draft,
		.draft_sent = no_draft,
		.draft_gone = no_draft,
		.changed = changed,
		.ready_changed = ready_changed,
		.finished = finished,
		.arg = r,
	};

	r->engine = engine_create(r->loop, r->driver, &cfg, &ev);
	return r->engine ? run_work_init(r) : -errno;
}

/* The guard comes first: it is to inherit nothing, and fork(2) wants one thread. */
static int start(struct run *r, char *err, size_t err_len)
{
	int e = child_kit_init(&r->kit, r->args.path, r->args.command, r->args.cfg.source,
		r->args.wants_file);

	if (e)
		return e;
	r->guard = run_guard_create(r->args.parallel, r->kit.dir);
	r->loop = r->guard ? loop_create() : NULL;
	if (!r->loop)
		return -errno;
	e = watch_signals(r);
	if (!e)
		e = open_driver(r, err, err_len);
	if (!e)
		e = create_engine(r);
	if (e)
		return e;
	engine_start(r->engine, engine_started, r);
	return 0;
}

/* ---- the end ---- */

static void destroy(struct run *r)
{
	driver_close(r->driver);
	run_work_fini(r);
	engine_destroy(r->engine);
	if (r->signal_fd.active) {
		loop_fd_del(r->loop, &r->signal_fd);
		close(r->signal_fd.fd);
	}
	if (r->loop)
		loop_destroy(r->loop);
	run_guard_destroy(r->guard);
	child_kit_fini(&r->kit);
}

static bool is_bounded(const struct run_args *a)
{
	return a->drain || a->cfg.budget.run_for_ns || a->cfg.idle_timeout_ns;
}

static int exit_code(struct run *r)
{
	struct engine_stats st;

	engine_stats(r->engine, &st);
	return r->denied || is_bounded(&r->args) ? policy_end_code(&st)
						 : st.buried_total > 0;
}

static int work(struct run *r)
{
	char err[512] = "";
	int e, code;

	log_set_debug(r->args.cfg.debug);
	r->started_ns = clock_mono();
	e = start(r, err, sizeof(err));
	if (e) {
		fprintf(stderr, "spoolfs run: %s\n", err[0] ? err : strerror(-e));
		destroy(r);
		return policy_exit_code(e);
	}
	run_show_begin(r);
	e = loop_run(r->loop);
	run_show_summary(r);
	code = exit_code(r);
	destroy(r);
	return e ? EX_OSERR : code;
}

int run_main(int argc, char **argv)
{
	struct run r = {0};
	char err[CONFIG_ERR_LEN] = "";
	int code = 0;
	int e = run_args_parse(&r.args, argc, argv, err, sizeof(err));

	if (e) {
		fprintf(stderr, "spoolfs run: %s\n", err[0] ? err : strerror(-e));
		code = e == -EINVAL ? EX_USAGE : EX_OSERR;
	} else if (r.args.help) {
		run_args_help(stdout);
	} else {
		code = work(&r);
	}
	run_args_fini(&r.args);
	return code;
}
