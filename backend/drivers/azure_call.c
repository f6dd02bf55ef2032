/* SPDX-License-Identifier: MIT */
#include "azure_call.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../wire/encode.h"
#include "azure_int.h"

/* A full page of the longest texts, each byte a reference of six, and what
 * stands around them. */
#define PAGE_MAX ((size_t)AZURE_PAGE_MAX * (65536 * 6 + 2048))
#define ELSE_MAX ((size_t)65536)
/* Refused signatures are worth a second try when the clocks differ by more; the
 * service takes a quarter of an hour. */
#define SKEW_NS (60 * NS_PER_S)
/* After a queue was made that is missing all the same. */
#define MADE_WAIT_NS NS_PER_S
/* Who asks for more patience is asked again all the same. */
#define PATIENCE_NS (3600 * NS_PER_S)
#define QUERY_MAX   2

static const char *const methods[] = {
	[AZURE_GET] = "GET",
	[AZURE_PEEK] = "GET",
	[AZURE_PUT] = "POST",
	[AZURE_UPDATE] = "PUT",
	[AZURE_DELETE] = "DELETE",
	[AZURE_COUNT] = "HEAD",
	[AZURE_CREATE] = "PUT",
};

/* ---- asking ---- */

/* "/QUEUE", "/QUEUE/messages" or "/QUEUE/messages/ID". */
static int write_path(const struct azure_call *c, struct buf *path)
{
	const char *prefix = c->az->source.prefix, *queue = c->queue->name;
	int r;

	if (c->verb == AZURE_COUNT || c->verb == AZURE_CREATE)
		return buf_printf(path, "%s/%s", prefix, queue);
	r = buf_printf(path, "%s/%s/messages", prefix, queue);
	if (r == 0 && c->id) {
		r = buf_addstr(path, "/");
		if (r == 0)
			r = percent_encode(c->id, path);
	}
	return r;
}

/* NUMBER has room for a number. Returns how many. */
static size_t write_query(const struct azure_call *c, struct sign_param q[QUERY_MAX],
	char number[QUERY_MAX][24])
{
	snprintf(number[0], sizeof(number[0]), "%u", c->max);
	snprintf(number[1], sizeof(number[1]), "%" PRId64, c->visible_s);
	switch (c->verb) {
	case AZURE_GET:
		q[0] = (struct sign_param){"numofmessages", number[0]};
		q[1] = (struct sign_param){"visibilitytimeout", number[1]};
		return 2;
	case AZURE_PEEK:
		q[0] = (struct sign_param){"numofmessages", number[0]};
		q[1] = (struct sign_param){"peekonly", "true"};
		return 2;
	case AZURE_PUT:
		q[0] = (struct sign_param){"messagettl", "-1"};
		q[1] = (struct sign_param){"visibilitytimeout", "0"};
		return 2;
	case AZURE_UPDATE:
		q[0] = (struct sign_param){"popreceipt", c->receipt};
		q[1] = (struct sign_param){"visibilitytimeout", number[1]};
		return 2;
	case AZURE_DELETE:
		q[0] = (struct sign_param){"popreceipt", c->receipt};
		return 1;
	case AZURE_COUNT:
		q[0] = (struct sign_param){"comp", "metadata"};
		return 1;
	case AZURE_CREATE:
		break;
	}
	return 0;
}

static int prepare(struct azure_call *c)
{
	static const struct sign_param xml = {"Content-Type", "application/xml"};
	char number[QUERY_MAX][24];
	struct sign_param query[QUERY_MAX];
	struct buf path = {0};
	struct account_call call = {
		.method = methods[c->verb],
		.origin = c->az->source.origin,
		.query = query,
		.n_query = write_query(c, query, number),
		.headers = &xml,
		.n_headers = c->verb == AZURE_PUT ? 1 : 0,
		.body = c->verb == AZURE_PUT ? c->document.p : NULL,
		.body_len = c->document.len,
	};
	int r = write_path(c, &path);

	call.path = path.p;
	r = r ? -ENOMEM : account_prepare(c->az->account, &call, &c->http);
	buf_fini(&path);
	return r;
}

static void on_answer(struct http_req *h);

/* 0, or an error with c->detail: then nothing was sent. */
static int try_now(struct azure_call *c)
{
	bool page = c->verb == AZURE_GET || c->verb == AZURE_PEEK;
	struct azure *az = c->az;
	int r;

	http_req_fini(&c->http);
	c->http = (struct http_req){
		.done = on_answer, .arg = c, .max_body = page ? PAGE_MAX : ELSE_MAX};
	r = prepare(c);
	if (r) {
		snprintf(c->detail, sizeof(c->detail), "%s",
			c->http.detail[0] ? c->http.detail
			: r == -EAGAIN    ? "waiting for an access token"
					  : strerrordesc_np(-r));
		return r;
	}
	c->sent_ns = clock_mono();
	c->signed_ns = account_now_ns(az->account);
	TAILQ_INSERT_TAIL(&az->calls, c, link);
	http_submit(az->http, &c->http);
	return 0;
}

static void fail_later(struct azure_call *c, int err)
{
	c->err = err;
	TAILQ_INSERT_TAIL(&c->az->failed, c, link);
	loop_task_queue(c->az->loop, &c->az->task);
}

static void begin(struct azure_call *c)
{
	int r = -EAGAIN;

	if (c->az->closing)
		snprintf(c->detail, sizeof(c->detail), "closed");
	else
		r = try_now(c);
	if (r)
		fail_later(c, r);
}

void azure_call_start(struct azure_call *c)
{
	c->err = 0;
	c->made = c->resign = false;
	begin(c);
}

void azure_call_fini(struct azure_call *c)
{
	http_req_fini(&c->http);
	c->http = (struct http_req){0};
	buf_fini(&c->document);
	azure_page_fini(&c->page);
	free(c->new_receipt);
	c->new_receipt = NULL;
	c->detail[0] = '\0';
	c->retry_after_ns = 0;
}

/* ---- a missing queue ---- */

/* All that waited for it go on, or fail as its making did. */
static void queue_made(struct azure_call *maker)
{
	struct azure_calls waiting = TAILQ_HEAD_INITIALIZER(waiting);
	struct azure_queue *q = maker->queue;
	struct azure_call *c;

	q->maker = NULL;
	TAILQ_CONCAT(&waiting, &q->waiting, link);
	while ((c = TAILQ_FIRST(&waiting))) {
		TAILQ_REMOVE(&waiting, c, link);
		if (!maker->err) {
			begin(c);
			continue;
		}
		memcpy(c->detail, maker->detail, sizeof(c->detail));
		c->retry_after_ns = maker->retry_after_ns;
		fail_later(c, maker->err);
	}
	azure_call_fini(maker);
	free(maker);
}

/* Of several calls that miss it at once, the first has it made. */
static int wait_for_queue(struct azure_call *c)
{
	struct azure_queue *q = c->queue;

	c->made = true;
	if (!q->maker) {
		q->maker = calloc(1, sizeof(*q->maker));
		if (!q->maker)
			return -ENOMEM;
		q->maker->az = c->az;
		q->maker->verb = AZURE_CREATE;
		q->maker->queue = q;
		q->maker->done = queue_made;
		azure_call_start(q->maker);
	}
	TAILQ_INSERT_TAIL(&q->waiting, c, link);
	return 0;
}

/* Nobody makes the queue of the dead letters by looking at it. */
static bool needs_queue(const struct azure_call *c)
{
	if (!c->queue->create || c->az->closing)
		return false;
	if (c->verb == AZURE_PUT)
		return true;
	return c->queue == &c->az->queue &&
	       (c->verb == AZURE_GET || c->verb == AZURE_COUNT);
}

/* ---- the answer ---- */

static int no_list(struct azure_call *c)
{
	snprintf(c->detail, sizeof(c->detail), "the answer is no list of messages");
	return -EPROTO;
}

static int take_page(struct azure_call *c)
{
	int r = azure_xml_page(c->http.answer.p, c->http.answer.len, &c->page);

	if (r == -EPROTO || (r == 0 && c->verb == AZURE_PUT && c->page.n != 1))
		return no_list(c);
	for (unsigned i = 0; r == 0 && i < c->page.n; i++) {
		const struct azure_message *m = &c->page.items[i];

		if ((!m->receipt && c->verb != AZURE_PEEK) ||
			(!m->text && c->verb != AZURE_PUT))
			return no_list(c);
	}
	return r;
}

static int take_count(struct azure_call *c)
{
	char text[24], *end;

	(void)http_header(
		&c->http, "x-ms-approximate-messages-count", text, sizeof(text));
	c->count = strtoull(text, &end, 10);
	if (text[0] >= '0' && text[0] <= '9' && !*end)
		return 0;
	snprintf(c->detail, sizeof(c->detail), "the answer has no count of messages");
	return -EPROTO;
}

static int take_receipt(struct azure_call *c)
{
	char text[1024];

	if (!http_header(&c->http, "x-ms-popreceipt", text, sizeof(text)) || !text[0]) {
		snprintf(c->detail, sizeof(c->detail), "the answer has no receipt");
		return -EPROTO;
	}
	c->new_receipt = strdup(text);
	return c->new_receipt ? 0 : -ENOMEM;
}

static int take(struct azure_call *c)
{
	switch (c->verb) {
	case AZURE_GET:
	case AZURE_PEEK:
	case AZURE_PUT:
		return take_page(c);
	case AZURE_UPDATE:
		return take_receipt(c);
	case AZURE_COUNT:
		return take_count(c);
	case AZURE_DELETE:
	case AZURE_CREATE:
		break;
	}
	return 0;
}

static int64_t hint(const struct http_req *h)
{
	int64_t ns = http_retry_after_ns(h);

	return ns < PATIENCE_NS ? ns : PATIENCE_NS;
}

static struct azure_verdict judge(struct azure_call *c)
{
	const struct http_req *h = &c->http;
	struct azure_error_text e = {0};
	struct azure_verdict v;

	if (h->err) {
		snprintf(c->detail, sizeof(c->detail), "%s", h->detail);
		return (struct azure_verdict){.err = azure_transport(h->err)};
	}
	if (h->status >= 400) {
		azure_xml_error(h->answer.p, h->answer.len, &e);
		if (!e.code[0])
			(void)http_header(h, "x-ms-error-code", e.code, sizeof(e.code));
	}
	v = azure_judge(c->verb, h->status, &e);
	if (!v.err) {
		v.err = take(c);
		return v;
	}
	azure_describe(h->status, &e, c->detail, sizeof(c->detail));
	if (v.err == -EAGAIN && hint(h) > v.retry_after_ns)
		v.retry_after_ns = hint(h);
	/* The first of the two times it was there. */
	if (c->verb == AZURE_DELETE && v.err == -ENOENT && h->resent)
		v.err = 0;
	return v;
}

/* Whether the clock that C was signed by is far from that of the answer. It may
 * have been corrected since, by the answer to another call. */
static bool clock_was_wrong(const struct azure_call *c)
{
	int64_t theirs = http_date_ns(&c->http);
	int64_t ours = clock_add(c->signed_ns, clock_mono() - c->sent_ns);

	return theirs >= 0 && (theirs > ours + SKEW_NS || theirs < ours - SKEW_NS);
}

/* What comes before C is done. True: something does. */
static bool another_step(struct azure_call *c, struct azure_verdict *v, bool wrong_clock)
{
	if (v->signature && wrong_clock && !c->resign && !c->az->closing) {
		c->resign = true;
		begin(c);
		return true;
	}
	if (!v->no_queue || !needs_queue(c))
		return false;
	if (!c->made) {
		v->err = wait_for_queue(c);
		return v->err == 0;
	}
	*v = (struct azure_verdict){.err = -EAGAIN, .retry_after_ns = MADE_WAIT_NS};
	return false;
}

static void on_answer(struct http_req *h)
{
	struct azure_call *c = h->arg;
	bool wrong_clock = false;
	struct azure_verdict v;

	TAILQ_REMOVE(&c->az->calls, c, link);
	v = judge(c);
	if (!h->err) {
		wrong_clock = clock_was_wrong(c);
		account_answered(c->az->account, h);
	}
	if (another_step(c, &v, wrong_clock))
		return;
	c->err = v.err;
	c->retry_after_ns = v.retry_after_ns;
	c->done(c);
}

void azure_calls_cancel(struct azure *az)
{
	struct azure_call *c;

	while ((c = TAILQ_FIRST(&az->calls))) {
		TAILQ_REMOVE(&az->calls, c, link);
		http_cancel(&c->http);
		snprintf(c->detail, sizeof(c->detail), "closed");
		fail_later(c, -EAGAIN);
	}
}
