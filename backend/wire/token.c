/* SPDX-License-Identifier: MIT */
#include "token.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/log.h"
#include "account_conn.h"
#include "account_file.h"
#include "token_int.h"

#define BEFORE_END_NS (5 * 60 * NS_PER_S)
#define MARGIN_NS     (60 * NS_PER_S)
#define AGAIN_MIN_NS  NS_PER_S
#define AGAIN_MAX_NS  (60 * NS_PER_S)
#define WAIT_MAX_NS   (10 * 60 * NS_PER_S)
#define REFUSED_NS    (5 * 60 * NS_PER_S)
#define DOUBTED_NS    (30 * NS_PER_S)
/* A machine without an identity has nobody at that address; neither has one of
 * which the network is not up yet. So many tries tell them apart. */
#define NOBODY_FAILURES 3

static const char *const kinds[] = {
	[TOKEN_SECRET] = "client secret",
	[TOKEN_FEDERATED] = "workload identity",
	[TOKEN_IMDS] = "managed identity",
	[TOKEN_ENDPOINT] = "managed identity",
};

static void ask(void *arg);

/* ---- when ------------------------------------------------------------------- */

/* At half of its life or 5 min before its end; but one that lives for minutes,
 * because it was kept somewhere, must not be asked for in a circle. */
static int64_t renew_after(int64_t life_ns)
{
	int64_t after = life_ns / 2, least = after < DOUBTED_NS ? after : DOUBTED_NS;

	if (life_ns - BEFORE_END_NS < after)
		after = life_ns - BEFORE_END_NS;
	return after > least ? after : least;
}

/* 1 s, 2 s, 4 s ... 60 s; longer when it was asked for. */
static int64_t again_after(unsigned failures, int64_t wait_ns)
{
	unsigned doublings = failures < 7 ? failures - 1 : 6;
	int64_t after = AGAIN_MIN_NS << doublings;

	if (after > AGAIN_MAX_NS)
		after = AGAIN_MAX_NS;
	if (wait_ns > WAIT_MAX_NS)
		wait_ns = WAIT_MAX_NS;
	return wait_ns > after ? wait_ns : after;
}

static bool is_good(const struct token *t)
{
	int64_t margin = t->life_ns / 10 < MARGIN_NS ? t->life_ns / 10 : MARGIN_NS;

	return t->value && clock_mono() < t->end_ns - margin;
}

static void ask_after(struct token *t, int64_t after_ns)
{
	loop_timer_set(t->loop, &t->timer, clock_add(clock_mono(), after_ns));
}

/* ---- what came of it -------------------------------------------------------- */

/* Takes over the value. */
static void succeeded(struct token *t, struct token_answer *answer)
{
	if (t->failures)
		log_info("token", "there is one again kind=\"%s\"", kinds[t->kind]);
	account_wipe(t->value);
	t->value = answer->value;
	t->life_ns = answer->life_ns;
	t->end_ns = clock_add(t->asked_ns, answer->life_ns);
	t->failures = 0;
	t->err = 0;
	t->detail[0] = '\0';
	log_debug("token", "new kind=\"%s\" life_s=%lld", kinds[t->kind],
		(long long)(t->life_ns / NS_PER_S));
	ask_after(t, renew_after(t->life_ns));
	t->changed(t->arg);
}

/* Said when it is news: each time it fails in another way than before. */
static void failed(struct token *t, int err, const char *detail, int64_t after_ns)
{
	bool news = err != t->err;

	t->err = err;
	/* DETAIL may be its own. */
	memmove(t->detail, detail, strnlen(detail, sizeof(t->detail) - 1) + 1);
	t->detail[sizeof(t->detail) - 1] = '\0';
	ask_after(t, after_ns);
	log_debug("token", "none kind=\"%s\" again_s=%lld: %s", kinds[t->kind],
		(long long)(after_ns / NS_PER_S), t->detail);
	if (!news)
		return;
	log_warn("token", "%s kind=\"%s\": %s", err == -EACCES ? "refused" : "none yet",
		kinds[t->kind], t->detail);
	if (err == -EACCES)
		t->changed(t->arg);
}

static void took(struct token *t, struct token_answer *answer)
{
	int64_t after = REFUSED_NS;

	if (!answer->err) {
		succeeded(t, answer);
		return;
	}
	t->failures++;
	if (answer->err == -EAGAIN)
		after = again_after(t->failures, answer->wait_ns);
	if (answer->nobody && t->kind == TOKEN_IMDS && !t->value &&
		t->failures >= NOBODY_FAILURES)
		answer->err = -EACCES;
	failed(t, answer->err, answer->detail, after);
}

static void forget_request(struct token *t)
{
	account_buf_wipe(&t->body);
	account_buf_wipe(&t->req.url);
	account_buf_wipe(&t->req.headers);
	account_buf_wipe(&t->req.answer);
	http_req_fini(&t->req);
	t->req = (struct http_req){0};
}

static void on_done(struct http_req *req)
{
	struct token *t = req->arg;
	struct token_answer answer;

	token_read(t, &answer);
	t->asking = false;
	forget_request(t);
	took(t, &answer);
}

static void ask(void *arg)
{
	struct token *t = arg;
	int err;

	loop_timer_clear(t->loop, &t->timer);
	t->asked_ns = clock_mono();
	t->req = (struct http_req){.done = on_done, .arg = t};
	err = token_ask(t);
	if (err) {
		t->failures++;
		failed(t, err == -EACCES ? err : -EAGAIN,
			err == -EACCES ? t->detail : "out of memory",
			again_after(t->failures, 0));
		forget_request(t);
		return;
	}
	t->asking = true;
	log_debug("token", "asking kind=\"%s\"", kinds[t->kind]);
	http_submit(t->http, &t->req);
}

/* ---- life ------------------------------------------------------------------- */

static bool copied(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return !from || *to;
}

/* Without a '/' at its end: paths begin with one. */
static void trim(char *url)
{
	size_t n = strlen(url);

	while (n > 0 && url[n - 1] == '/')
		url[--n] = '\0';
}

struct token *token_create(const struct token_params *p)
{
	struct token *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->loop = p->loop;
	t->http = p->http;
	t->kind = p->kind;
	t->changed = p->changed;
	t->arg = p->arg;
	loop_timer_init(&t->timer, ask, t);
	if (copied(&t->authority, p->authority) && copied(&t->tenant, p->tenant) &&
		copied(&t->client, p->client) && copied(&t->secret, p->secret) &&
		copied(&t->file, p->file) && copied(&t->header, p->header)) {
		trim(t->authority);
		return t;
	}
	token_destroy(t);
	errno = ENOMEM;
	return NULL;
}

void token_destroy(struct token *t)
{
	if (!t)
		return;
	if (t->asking)
		http_cancel(&t->req);
	loop_timer_clear(t->loop, &t->timer);
	forget_request(t);
	account_wipe(t->value);
	account_wipe(t->authority);
	account_wipe(t->tenant);
	account_wipe(t->client);
	account_wipe(t->secret);
	account_wipe(t->file);
	account_wipe(t->header);
	free(t);
}

const char *token_get(struct token *t, int *err, char *detail, size_t detail_len)
{
	*err = 0;
	if (!t->begun) {
		t->begun = true;
		ask(t);
	}
	if (is_good(t))
		return t->value;
	*err = t->err ? t->err : -EAGAIN;
	snprintf(detail, detail_len, "%s: %s", kinds[t->kind],
		t->detail[0] ? t->detail : "a token is being fetched");
	return NULL;
}

void token_refused(struct token *t)
{
	if (t->begun && !t->asking && clock_mono() - t->asked_ns >= DOUBTED_NS)
		ask(t);
}
