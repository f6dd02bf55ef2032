/* SPDX-License-Identifier: MIT */
#include "poller.h"

#include "../base/clock.h"

/* A message that was due already and yet not received may be so at the next
 * moment; a backend whose clock is wrong must not make the loop spin. */
#define DUE_MIN_NS (10 * NS_PER_MS)

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

void poller_init(
	struct poller *p, const struct backoff_config *cfg, bool receives, int64_t now_ns)
{
	*p = (struct poller){
		.receives = receives,
		.next_ns = now_ns,
		.not_before_ns = now_ns,
	};
	backoff_init(&p->backoff, cfg);
	p->slept_ns = p->backoff.interval_ns;
}

static int64_t due_ns(const struct poller *p)
{
	return later(p->next_ns, p->not_before_ns);
}

int64_t poller_next(const struct poller *p, int64_t now_ns)
{
	if (!p->receives || p->busy || p->full || p->paused || p->draining || p->stopped)
		return CLOCK_NEVER;
	return later(due_ns(p), now_ns);
}

enum poller_state poller_state(const struct poller *p, int64_t now_ns)
{
	if (p->stopped)
		return POLLER_STOPPED;
	if (p->draining)
		return POLLER_DRAINING;
	if (p->paused)
		return POLLER_PAUSED;
	if (p->offline)
		return POLLER_OFFLINE;
	if (p->full)
		return POLLER_FULL;
	if (p->receives && (p->busy || due_ns(p) <= now_ns))
		return POLLER_POLLING;
	return POLLER_WAITING;
}

const char *poller_state_name(enum poller_state s)
{
	static const char *const names[] = {
		[POLLER_POLLING] = "polling",
		[POLLER_WAITING] = "waiting",
		[POLLER_FULL] = "full",
		[POLLER_PAUSED] = "paused",
		[POLLER_DRAINING] = "draining",
		[POLLER_OFFLINE] = "offline",
		[POLLER_STOPPED] = "stopped",
	};

	return names[s];
}

void poller_begin(struct poller *p)
{
	p->busy = true;
	p->again = false;
	p->polls_total++;
}

static void sleep_empty(struct poller *p, int64_t due_ns, int64_t now_ns, double random)
{
	int64_t earliest = later(due_ns, clock_add(now_ns, DUE_MIN_NS));

	p->slept_ns = p->backoff.interval_ns;
	p->next_ns = clock_add(now_ns, backoff_empty(&p->backoff, random));
	if (earliest < p->next_ns)
		p->next_ns = earliest;
}

void poller_result(struct poller *p, unsigned n, bool more, int64_t due_ns,
	int64_t now_ns, double random)
{
	p->busy = false;
	p->offline = false;
	p->next_ns = now_ns;
	p->not_before_ns = now_ns;
	if (n > 0) {
		p->empty_in_a_row = 0;
		backoff_hit(&p->backoff);
		p->slept_ns = p->backoff.interval_ns;
		return;
	}
	p->polls_empty++;
	p->empty_in_a_row++;
	if (!more && !p->again)
		sleep_empty(p, due_ns, now_ns, random);
}

/* What woke it while it was busy is no reason to knock again at once. */
void poller_failed(
	struct poller *p, int64_t retry_after_ns, int64_t now_ns, double random)
{
	p->busy = false;
	p->offline = true;
	p->slept_ns = p->backoff.interval_ns;
	p->next_ns = clock_add(now_ns, backoff_empty(&p->backoff, random));
	p->not_before_ns = clock_add(now_ns, later(retry_after_ns, 0));
}

void poller_wake(struct poller *p, int64_t now_ns)
{
	if (p->paused || p->draining || p->stopped)
		return;
	if (p->busy)
		p->again = true;
	else
		p->next_ns = now_ns;
}

void poller_set_full(struct poller *p, bool full)
{
	p->full = full;
}

/* Whoever resumes wants to see what there is, not the rest of an old sleep. */
void poller_pause(struct poller *p, bool paused)
{
	if (p->paused && !paused)
		p->next_ns = INT64_MIN;
	p->paused = paused;
}

void poller_drain(struct poller *p)
{
	p->draining = true;
}

void poller_stop(struct poller *p)
{
	p->stopped = true;
}
