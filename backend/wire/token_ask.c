/* SPDX-License-Identifier: MIT */
/*
 * Errors are told apart by what helps: who is away or busy is asked again soon,
 * who says no says it for longer. The instance metadata service answers 404 and
 * 410 while it is being moved.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "account_conn.h"
#include "account_file.h"
#include "encode.h"
#include "token_int.h"

#define SCOPE       "https%3A%2F%2Fstorage.azure.com%2F.default"
#define RESOURCE    "https%3A%2F%2Fstorage.azure.com%2F"
#define ASSERTION   "urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer"
#define LIFE_MAX_NS (INT64_C(366) * 24 * 3600 * NS_PER_S)

/* ---- asking ----------------------------------------------------------------- */

/* Room for what SECRET becomes, at once: a buffer that grows leaves copies. */
static int add_secret(struct buf *out, const char *name, const char *secret)
{
	int err = buf_reserve(out, out->len + 3 * strlen(secret) + strlen(name) + 2);

	if (!err)
		err = buf_printf(out, "&%s=", name);
	return err ? err : percent_encode(secret, out);
}

/* The assertion is read for each time: it is replaced every hour or so. */
static int add_assertion(struct token *t)
{
	struct buf text = {0};
	int err = account_file_read(
		t->file, ACCOUNT_FILE_TOKEN, &text, t->detail, sizeof(t->detail));

	if (!err)
		text.p[strcspn(text.p, " \t\r\n")] = '\0';
	if (!err)
		err = buf_addstr(&t->body, "&client_assertion_type=" ASSERTION);
	if (!err)
		err = add_secret(&t->body, "client_assertion", text.p);
	account_buf_wipe(&text);
	return err == -EINVAL ? -EACCES : err;
}

static int ask_entra(struct token *t)
{
	struct buf *url = &t->req.url;
	int err = buf_printf(url, "%s/", t->authority);

	if (!err)
		err = percent_encode(t->tenant, url);
	if (!err)
		err = buf_addstr(url, "/oauth2/v2.0/token");
	if (!err)
		err = buf_addstr(&t->req.headers,
			"Content-Type: application/x-www-form-urlencoded\n"
			"Accept: application/json\n");
	if (!err)
		err = buf_addstr(&t->body,
			"grant_type=client_credentials&scope=" SCOPE "&client_id=");
	if (!err)
		err = percent_encode(t->client, &t->body);
	if (!err)
		err = t->kind == TOKEN_SECRET
			      ? add_secret(&t->body, "client_secret", t->secret)
			      : add_assertion(t);
	t->req.method = "POST";
	t->req.body = t->body.p;
	t->req.body_len = t->body.len;
	return err;
}

static int ask_machine(struct token *t)
{
	bool imds = t->kind == TOKEN_IMDS;
	struct buf *url = &t->req.url;
	int err = buf_printf(url, "%s%s?api-version=%s&resource=%s", t->authority,
		imds ? "/metadata/identity/oauth2/token" : "",
		imds ? "2018-02-01" : "2019-08-01", RESOURCE);

	if (!err && t->client)
		err = buf_addstr(url, "&client_id=");
	if (!err && t->client)
		err = percent_encode(t->client, url);
	if (!err)
		err = imds ? buf_addstr(&t->req.headers, "Metadata: true\n")
			   : buf_printf(&t->req.headers, "X-IDENTITY-HEADER: %s\n",
				     t->header);
	t->req.method = "GET";
	return err;
}

int token_ask(struct token *t)
{
	bool machine = t->kind == TOKEN_IMDS || t->kind == TOKEN_ENDPOINT;
	int err = machine ? ask_machine(t) : ask_entra(t);

	return err == -EFBIG ? -ENOMEM : err;
}

/* ---- answers ---------------------------------------------------------------- */

static const char *string(const cJSON *json, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, name));
}

/* Seconds, as a number or as a string that has one; -1 when there are none. */
static double seconds(const cJSON *json, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, name);
	const char *text = cJSON_GetStringValue(item);
	char *end;
	double s;

	if (cJSON_IsNumber(item))
		return item->valuedouble;
	if (!text || text[strspn(text, "0123456789")] != '\0')
		return -1;
	s = strtod(text, &end);
	return end == text ? -1 : s;
}

/* An end is told by the clock of who tells it. */
static int64_t life_of(const cJSON *json, const struct http_req *req)
{
	int64_t date = http_date_ns(req), now = date < 0 ? clock_wall() : date;
	double s = seconds(json, "expires_in");

	if (s < 0)
		s = seconds(json, "expires_on") - (double)(now / NS_PER_S);
	if (!(s > 0))
		return 0;
	return s < (double)(LIFE_MAX_NS / NS_PER_S) ? (int64_t)(s * (double)NS_PER_S)
						    : LIFE_MAX_NS;
}

/* It goes into a header line. */
static bool is_token(const char *s)
{
	const char *c = s;

	while (*c > ' ' && *c < 0x7f)
		c++;
	return c > s && *c == '\0';
}

static void read_token(
	const cJSON *json, const struct http_req *req, struct token_answer *out)
{
	char *value = (char *)string(json, "access_token");

	out->life_ns = life_of(json, req);
	if (value && is_token(value) && out->life_ns > 0)
		out->value = strdup(value);
	if (out->value)
		return;
	out->err = -EAGAIN;
	snprintf(out->detail, sizeof(out->detail), "the answer is no token");
}

/* Nobody should, but somebody may repeat what was sent to him. */
static bool repeats_secret(const struct token *t, const char *text)
{
	return (t->secret && *t->secret && strstr(text, t->secret)) ||
	       (t->header && *t->header && strstr(text, t->header)) ||
	       strstr(text, "eyJ");
}

/* The first line of what is said for people. */
static void read_error(const struct token *t, const cJSON *json, struct token_answer *out)
{
	const char *code = string(json, "error");
	const char *text = string(json, "error_description");
	size_t n;

	if (!text)
		text = string(json, "message");
	if (code && repeats_secret(t, code))
		code = NULL;
	if (!text || repeats_secret(t, text))
		text = "";
	n = strcspn(text, "\r\n");
	snprintf(out->detail, sizeof(out->detail), "HTTP %d%s%s%s%.*s", t->req.status,
		code ? " " : "", code ? code : "", n ? ": " : "",
		(int)(n < 120 ? n : 120), text);
	for (char *c = out->detail; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = ' ';
	}
	if (code && strcmp(code, "temporarily_unavailable") == 0)
		out->err = -EAGAIN;
}

static bool is_away(const struct token *t)
{
	int s = t->req.status;

	return s < 400 || s == 408 || s == 429 || s >= 500 ||
	       (t->kind == TOKEN_IMDS && (s == 404 || s == 410));
}

/* cJSON frees what it has copied as it is. */
static void forget(cJSON *json)
{
	char *value = (char *)string(json, "access_token");

	if (value)
		OPENSSL_cleanse(value, strlen(value));
	cJSON_Delete(json);
}

static void read_answer(const struct token *t, struct token_answer *out)
{
	const struct buf *b = &t->req.answer;
	cJSON *json = b->len ? cJSON_ParseWithLength(b->p, b->len) : NULL;

	if (t->req.status == 200) {
		read_token(json, &t->req, out);
	} else {
		out->err = is_away(t) ? -EAGAIN : -EACCES;
		out->wait_ns = http_retry_after_ns(&t->req);
		read_error(t, json, out);
	}
	forget(json);
}

void token_read(const struct token *t, struct token_answer *out)
{
	int err = t->req.err;

	*out = (struct token_answer){0};
	if (!err) {
		read_answer(t, out);
		return;
	}
	out->nobody = true;
	out->err = err == -EACCES || err == -EINVAL ? -EACCES : -EAGAIN;
	snprintf(out->detail, sizeof(out->detail), "%s", t->req.detail);
}
