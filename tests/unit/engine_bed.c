/* SPDX-License-Identifier: MIT */
#include "engine_bed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine_bed_queue.h"

/* A test that never comes to rest ends here. */
#define ROUNDS_MAX  100000
#define PATIENCE_MS 10000

/* ---- what the engine tells ---- */

static void say(struct eb *b, const char *what, const char *who)
{
	b->activity++;
	if (buf_printf(&b->told, "%s%s ", what, who))
		abort();
}

static int arrived(void *arg, struct message *m)
{
	struct eb *b = arg;

	say(b, "+", m->d.id);
	return b->not_shown > 0 ? (b->not_shown--, -ENOMEM) : 0;
}

static void left(void *arg, struct message *m)
{
	say(arg, "-", m->d.id);
}

static void unclaimed(void *arg, struct message *m)
{
	say(arg, "~", m->d.id);
}

static void dead_added(void *arg, struct dead *d)
{
	say(arg, "dead:", d->d.id);
}

static void dead_removed(void *arg, struct dead *d)
{
	say(arg, "undead:", d->d.id);
}

static void draft_found(void *arg, struct draft *d)
{
	say(arg, "found:", d->name);
}

static void draft_sent(void *arg, struct draft *d)
{
	say(arg, "sent:", d->name);
}

static void draft_gone(void *arg, struct draft *d)
{
	say(arg, "gone:", d->name);
}

static void changed(void *arg)
{
	((struct eb *)arg)->changed++;
}

static void ready_changed(void *arg, bool ready)
{
	say(arg, "ready:", ready ? "1" : "0");
}

static void finished(void *arg)
{
	say(arg, "finished", "");
}

static void started(void *arg, int err)
{
	struct eb *b = arg;

	b->started++;
	b->start_err = err;
}

/* ---- life ---- */

void eb_init(struct eb *b)
{
	memset(b, 0, sizeof(*b));
	clock_fake(1000 * NS_PER_S, 1800000000 * NS_PER_S);
	b->loop = eb_need(loop_create());
	eb_queue_init(b);
	b->cfg = (struct engine_config){
		.lease = {.visibility_ns = 30 * NS_PER_S,
			.max_lease_ns = 3600 * NS_PER_S,
			.inherit_ns = 900 * NS_PER_S,
			.retry_delay_ns = 30 * NS_PER_S,
			.max_attempts = 5},
		.backoff = {.floor_ns = NS_PER_S,
			.ceiling_ns = 60 * NS_PER_S,
			.factor = 2},
		.window = 8,
		.window_bytes = 10000,
		.receives = true,
		.owned = true,
	};
}

static void create(struct eb *b)
{
	struct engine_events ev = {
		.arrived = arrived,
		.left = left,
		.unclaimed = unclaimed,
		.dead_added = dead_added,
		.dead_removed = dead_removed,
		.draft_found = draft_found,
		.draft_sent = draft_sent,
		.draft_gone = draft_gone,
		.changed = changed,
		.ready_changed = ready_changed,
		.finished = finished,
		.arg = b,
	};

	b->e = eb_need(engine_create(b->loop, (struct driver *)b, &b->cfg, &ev));
}

void eb_start(struct eb *b)
{
	create(b);
	engine_start(b->e, started, b);
	eb_run(b);
}

static void end(struct eb *b)
{
	driver_close((struct driver *)b);
	engine_destroy(b->e);
	b->e = NULL;
}

void eb_crash(struct eb *b)
{
	end(b);
	eb_forget(b);
	eb_start(b);
}

void eb_close(struct eb *b)
{
	end(b);
	eb_queue_fini(b);
	loop_destroy(b->loop);
	free(b->settles);
	buf_fini(&b->sent);
	buf_fini(&b->told);
}

/* Quiet is when some rounds brought nothing: an answer takes one of its own. */
void eb_run(struct eb *b)
{
	unsigned rounds = 0, quiet = 0;

	while (quiet < 3) {
		uint64_t before = b->activity;

		if (loop_once(b->loop, 0) || ++rounds > ROUNDS_MAX)
			abort();
		quiet = b->activity == before ? quiet + 1 : 0;
	}
}

void eb_pass(struct eb *b, int64_t ns)
{
	int64_t slice = ns / 100;

	slice = slice < NS_PER_MS ? NS_PER_MS : slice;
	slice = slice > 100 * NS_PER_MS ? 100 * NS_PER_MS : slice;
	for (; ns > 0; ns -= slice) {
		clock_step(ns < slice ? ns : slice);
		eb_run(b);
	}
}

bool eb_await_told(struct eb *b, const char *word)
{
	const struct timespec ms = {.tv_nsec = 1000000};

	for (int i = 0; i < PATIENCE_MS; i++) {
		eb_run(b);
		if (strstr(eb_told(b), word))
			return true;
		(void)nanosleep(&ms, NULL);
	}
	return false;
}

/* ---- asking ---- */

struct eb_message *eb_put(struct eb *b, const char *id)
{
	struct blob *body = eb_need(blob_create(id, strlen(id)));
	struct eb_message *m = eb_insert(b, id, NULL, body);

	blob_unref(body);
	return m;
}

void eb_put_many(struct eb *b, unsigned from, unsigned to)
{
	char id[16];

	for (unsigned i = from; i <= to; i++) {
		snprintf(id, sizeof(id), "%03u", i);
		eb_put(b, id);
	}
}

struct eb_message *eb_stored(struct eb *b, const char *id)
{
	struct eb_message *m;

	TAILQ_FOREACH (m, &b->messages, link) {
		if (strcmp(m->id, id) == 0)
			return m;
	}
	return NULL;
}

void eb_resize(struct eb_message *m, size_t size)
{
	blob_unref(m->body);
	m->body = eb_need(blob_create(NULL, size));
	memset(m->body->data, 'x', size);
	m->size = size;
}

void eb_hold(struct eb *b, enum driver_op op)
{
	b->fault[op].hold = true;
}

void eb_let(struct eb *b, enum driver_op op)
{
	b->fault[op].hold = false;
	eb_queue_let(b);
}

void eb_fail(struct eb *b, enum driver_op op, int err, unsigned times)
{
	b->fault[op].err = err;
	b->fault[op].times = times;
}

void eb_fail_item(
	struct eb *b, enum settle_op op, const char *id, int err, unsigned times)
{
	b->item_fault = (struct eb_item_fault){.op = op, .err = err, .times = times};
	snprintf(b->item_fault.id, sizeof(b->item_fault.id), "%s", id);
}

void eb_forget(struct eb *b)
{
	memset(b->asked, 0, sizeof(b->asked));
	b->n_settles = b->batches = 0;
	b->changed = 0;
	buf_clear(&b->sent);
	buf_clear(&b->told);
}

static bool matches(const struct eb_settle *s, enum settle_op op, const char *id)
{
	return s->op == op && (!id || strcmp(s->id, id) == 0);
}

unsigned eb_settled(const struct eb *b, enum settle_op op, const char *id)
{
	unsigned n = 0;

	for (unsigned i = 0; i < b->n_settles; i++)
		n += matches(&b->settles[i], op, id);
	return n;
}

const struct eb_settle *eb_last(const struct eb *b, enum settle_op op, const char *id)
{
	for (unsigned i = b->n_settles; i-- > 0;)
		if (matches(&b->settles[i], op, id))
			return &b->settles[i];
	return NULL;
}

const char *eb_told(const struct eb *b)
{
	return b->told.p ? b->told.p : "";
}

const char *eb_sent(const struct eb *b)
{
	return b->sent.p ? b->sent.p : "";
}

static struct message *find_in(const struct message_list *list, const char *id)
{
	struct message *m;

	TAILQ_FOREACH (m, list, link) {
		if (strcmp(m->d.id, id) == 0)
			return m;
	}
	return NULL;
}

struct message *eb_find(struct eb *b, const char *id)
{
	struct message *m = find_in(engine_ready(b->e), id);

	return m ? m : find_in(engine_in_flight(b->e), id);
}

static const char *ids(struct eb *b, const struct message_list *list)
{
	struct message *m;
	size_t n = 0;

	b->text[0] = '\0';
	TAILQ_FOREACH (m, list, link)
		n += (size_t)snprintf(b->text + n, sizeof(b->text) - n, "%s ", m->d.id);
	return b->text;
}

const char *eb_ready(struct eb *b)
{
	return ids(b, engine_ready(b->e));
}

const char *eb_in_flight(struct eb *b)
{
	return ids(b, engine_in_flight(b->e));
}
