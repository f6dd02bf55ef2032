/* SPDX-License-Identifier: MIT */
/* What spoolfs run tells people: a line a message, progress, a summary. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"

#define PROGRESS_NS (250 * NS_PER_MS)

void run_show_end(
	struct run *r, const struct run_slot *s, const siginfo_t *status, bool counts)
{
	bool exited = status->si_code == CLD_EXITED;
	int64_t ms = (clock_mono() - s->started_ns) / NS_PER_MS;

	if (r->args.verbose)
		log_info("run", "%s name=%s %s=%d ms=%lld%s",
			exited && !status->si_status ? "handled" : "failed", s->name,
			exited ? "exit" : "signal", status->si_status, (long long)ms,
			s->lost  ? " lost"
			: counts ? ""
				 : " outage");
}

static double seconds(const struct run *r)
{
	return (double)(clock_mono() - r->started_ns) / (double)NS_PER_S;
}

/* Messages in a second, over the whole run. */
static double rate(const struct run *r)
{
	double s = seconds(r);

	return s > 0 ? (double)r->counts.handled / s : 0;
}

/* Seconds until nothing waits, or the run has to end; below 0: cannot be told. */
static double left(const struct run *r, const struct engine_stats *st)
{
	double per_s = rate(r), s = per_s > 0 ? (double)st->depth / per_s : -1;
	double stop = (double)st->stop_in_ns / (double)NS_PER_S;

	return st->stop_in_ns >= 0 && (s < 0 || stop < s) ? stop : s;
}

/* The cursor goes back to the left margin: what is logged next writes over it. */
static void progress(void *arg)
{
	struct run *r = arg;
	struct engine_stats st;
	char line[128];
	double s;
	int n;

	engine_stats(r->engine, &st);
	s = left(r, &st);
	n = snprintf(line, sizeof(line),
		"%llu handled, %llu failed, %llu waiting, %.0f/s",
		(unsigned long long)r->counts.handled,
		(unsigned long long)r->counts.failed, (unsigned long long)st.depth,
		rate(r));
	if (s >= 0 && n > 0 && (size_t)n < sizeof(line))
		snprintf(line + n, sizeof(line) - (size_t)n, ", %.0f s left", s);
	dprintf(STDERR_FILENO, "\r%s\033[K\r", line);
	loop_timer_set(r->loop, &r->progress, clock_mono() + PROGRESS_NS);
}

void run_show_begin(struct run *r)
{
	loop_timer_init(&r->progress, progress, r);
	if (isatty(STDERR_FILENO) && !r->args.verbose)
		progress(r);
}

void run_show_summary(struct run *r)
{
	bool terminal = loop_timer_is_set(&r->progress);
	struct engine_stats st;

	loop_timer_clear(r->loop, &r->progress);
	engine_stats(r->engine, &st);
	dprintf(STDERR_FILENO,
		"%sspoolfs run: %llu handled, %llu failed, %llu buried in %.1f s (%.1f/s)\n",
		terminal ? "\r\033[K" : "", (unsigned long long)r->counts.handled,
		(unsigned long long)r->counts.failed, (unsigned long long)st.buried_total,
		seconds(r), rate(r));
}
