/* SPDX-License-Identifier: MIT */
/* A token, who gives it, two clocks that stand still, and a log that is looked at:
 * what tests of tokens share. */
#ifndef SPOOLFS_TESTS_UNIT_TOKEN_BED_H
#define SPOOLFS_TESTS_UNIT_TOKEN_BED_H

#include "backend/wire/token.h"
#include "http_bed.h"
#include "log_file.h"

#define SECRET    "s3cr~t/+="
#define TOKEN     "eyJ0eXAiOiJKV1Qi.tok-en_1"
#define WALL_NS   (1795148261 * NS_PER_S)
#define JSON_HEAD "Content-Type: application/json\r\n"

struct token_bed {
	struct bed b;
	struct token_params p;
	struct token *token;
	char authority[64], file[64];
	char answer[2048];
	unsigned changes;
	int err;
	char detail[HTTP_DETAIL];
	struct log_file log;
};

static inline void on_change(void *arg)
{
	((struct token_bed *)arg)->changes++;
}

static inline void check_log(struct token_bed *tb)
{
	CHECK(log_file_count(&tb->log, "debug token: asking") > 0);
	CHECK_INT(log_file_count(&tb->log, "s3cr"), 0);
	CHECK_INT(log_file_count(&tb->log, "eyJ"), 0);
	CHECK_INT(log_file_count(&tb->log, "assert"), 0);
	log_file_stop(&tb->log);
}

/* The clocks stand still until a test moves them. */
static inline void setup(struct token_bed *tb, enum token_kind kind)
{
	*tb = (struct token_bed){0};
	clock_fake(1000 * NS_PER_S, WALL_NS);
	bed_setup(&tb->b);
	log_file_start(&tb->log);
	snprintf(tb->authority, sizeof(tb->authority), "http://127.0.0.1:%d/",
		tb->b.server.port);
	tb->p = (struct token_params){
		.loop = tb->b.loop,
		.http = tb->b.http,
		.kind = kind,
		.authority = tb->authority,
		.changed = on_change,
		.arg = tb,
	};
	if (kind == TOKEN_SECRET || kind == TOKEN_FEDERATED) {
		tb->p.tenant = "ten ant";
		tb->p.client = "cli&ent";
	}
	tb->p.secret = kind == TOKEN_SECRET ? SECRET : NULL;
	tb->p.header = kind == TOKEN_ENDPOINT ? SECRET : NULL;
}

static inline void teardown(struct token_bed *tb)
{
	token_destroy(tb->token);
	check_log(tb);
	bed_teardown(&tb->b);
}

static inline void answer(struct token_bed *tb, const char *status, const char *json)
{
	snprintf(tb->answer, sizeof(tb->answer),
		"HTTP/1.1 %s\r\n" JSON_HEAD "Content-Length: %zu\r\n\r\n%s", status,
		strlen(json), json);
	tb->b.server.text = tb->answer;
}

static inline void answer_token(struct token_bed *tb, const char *value, int life_s)
{
	char json[256];

	snprintf(json, sizeof(json),
		"{\"token_type\":\"Bearer\",\"expires_in\":%d,\"access_token\":\"%s\"}",
		life_s, value);
	answer(tb, "200 OK", json);
}

static inline const char *get(struct token_bed *tb)
{
	if (!tb->token)
		tb->token = token_create(&tb->p);
	CHECK(tb->token);
	tb->detail[0] = '\0';
	return token_get(tb->token, &tb->err, tb->detail, sizeof(tb->detail));
}

static inline void await_change(struct token_bed *tb)
{
	unsigned before = tb->changes;

	AWAIT(&tb->b, tb->changes > before);
}

/* What needs no answer from elsewhere has been done then. */
static inline void settle(struct token_bed *tb)
{
	for (int i = 0; i < 10; i++)
		CHECK_INT(loop_once(tb->b.loop, 0), 0);
}

static inline unsigned asked(const struct token_bed *tb)
{
	return (unsigned)http_requests(tb->b.http);
}

/* Moves the clock until one more is asked for, in steps of a second; how many.
 * The answer is not there yet. */
static inline int seconds_until_asked(struct token_bed *tb)
{
	unsigned before = asked(tb);

	for (int round = 0; round < 1000000; round++) {
		if (asked(tb) > before)
			return round / 10;
		CHECK_INT(loop_once(tb->b.loop, 0), 0);
		if (round % 10 == 9)
			clock_step(NS_PER_S);
	}
	return -1;
}

#endif
