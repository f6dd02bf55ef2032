/* SPDX-License-Identifier: MIT */
/*
 * What was just sent: its name answers for 2 s more, since tools go on with it
 * after the last close (chmod, utimens, a rename, reading it back).
 */
#include "store.h"

/* Sent drafts kept for reading: beyond this the oldest is forgotten early. */
#define SENT_MAX       4096
#define SENT_BYTES_MAX ((size_t)8 << 20)

/* Forgets the sent ones whose time is over, or that are too many. */
static void forget_sent(void *arg)
{
	struct engine *e = arg;
	int64_t now = clock_mono();
	struct draft *d;

	while ((d = TAILQ_FIRST(&e->sent)) &&
		(d->until_ns <= now || e->n_sent > SENT_MAX ||
			e->sent_bytes > SENT_BYTES_MAX)) {
		e->ev.draft_gone(e->ev.arg, d);
		draft_unlist(e, d);
		draft_free(e, d);
	}
	loop_timer_set(e->loop, &e->sent_timer, d ? d->until_ns : CLOCK_NEVER);
}

void sent_add(struct engine *e, struct draft *d)
{
	draft_unlist(e, d);
	barrier_leave(e, &d->ticket);
	d->state = DRAFT_SENT;
	d->until_ns = clock_mono() + DRAFT_LINGER_NS;
	buf_fini(&d->data);
	TAILQ_INSERT_TAIL(&e->sent, d, link);
	e->n_sent++;
	e->sent_bytes += draft_size(d);
	e->stats.sent_total++;
	engine_count_own(e, 1);
	if (!loop_timer_is_set(&e->sent_timer))
		loop_timer_set(e->loop, &e->sent_timer, d->until_ns);
	e->ev.draft_sent(e->ev.arg, d);
	if (e->n_sent > SENT_MAX || e->sent_bytes > SENT_BYTES_MAX)
		forget_sent(e);
	engine_poll_soon(e);
	engine_depth_soon(e);
}

void sent_init(struct engine *e)
{
	TAILQ_INIT(&e->sent);
	loop_timer_init(&e->sent_timer, forget_sent, e);
}

void sent_fini(struct engine *e)
{
	struct draft *d;

	loop_timer_clear(e->loop, &e->sent_timer);
	while ((d = TAILQ_FIRST(&e->sent))) {
		draft_unlist(e, d);
		draft_free(e, d);
	}
}
