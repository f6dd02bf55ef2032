/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "account_int.h"
#include "token.h"

/* What is sent: the call's headers, and two more. */
struct headers {
	struct sign_param *p;
	size_t n;
	char date[SIGN_DATE_LEN];
};

static bool is_text(const char *s)
{
	for (; *s; s++) {
		if ((unsigned char)*s < ' ' && *s != '\t')
			return false;
	}
	return true;
}

static int collect(
	const struct account *a, const struct account_call *call, struct headers *h)
{
	h->p = calloc(call->n_headers + 2, sizeof(*h->p));
	if (!h->p)
		return -ENOMEM;
	for (size_t i = 0; i < call->n_headers; i++) {
		if (!is_text(call->headers[i].name) || !is_text(call->headers[i].value))
			return -EINVAL;
		h->p[h->n++] = call->headers[i];
	}
	sign_date(account_now_ns(a), h->date);
	h->p[h->n++] = (struct sign_param){"x-ms-date", h->date};
	h->p[h->n++] = (struct sign_param){"x-ms-version", ACCOUNT_API_VERSION};
	return 0;
}

/* A Content-Type that curl adds would not be signed. */
static int add_headers(const struct headers *h, struct buf *out)
{
	bool typed = false;
	int err = 0;

	for (size_t i = 0; i < h->n && !err; i++) {
		typed = typed || strcasecmp(h->p[i].name, "Content-Type") == 0;
		err = buf_printf(out, "%s: %s\n", h->p[i].name, h->p[i].value);
	}
	return err || typed ? err : buf_addstr(out, "Content-Type:\n");
}

static int add_url(
	const struct account *a, const struct account_call *call, struct buf *out)
{
	const char *between = "?";
	int err = buf_printf(out, "%s%s", call->origin, call->path);

	for (size_t i = 0; i < call->n_query && !err; i++) {
		err = buf_addstr(out, between);
		if (!err)
			err = percent_encode(call->query[i].name, out);
		if (!err)
			err = buf_addstr(out, "=");
		if (!err)
			err = percent_encode(call->query[i].value, out);
		between = "&";
	}
	if (!err && a->creds.kind == CREDS_SAS)
		err = buf_printf(out, "%s%s", between, a->creds.sas);
	return err;
}

static int add_signature(const struct account *a, const struct account_call *call,
	const struct headers *h, struct buf *out)
{
	const struct sign_request r = {
		.form = call->form,
		.account = a->name,
		.method = call->method,
		.path = call->path,
		.query = call->query,
		.n_query = call->n_query,
		.headers = h->p,
		.n_headers = h->n,
		.body_len = call->body_len,
	};
	int err = buf_addstr(out, "Authorization: ");

	if (!err)
		err = sign_shared_key(&r, a->creds.key, a->creds.key_len, out);
	return err ? err : buf_addstr(out, "\n");
}

/* -EAGAIN and -EACCES with words in REQ->detail. */
static int add_token(
	const struct account *a, const struct account_call *call, struct http_req *req)
{
	char why[HTTP_DETAIL] = "";
	const char *token;
	int err;

	if (!creds_safe_url(call->origin)) {
		snprintf(req->detail, sizeof(req->detail),
			"a token does not travel over plain HTTP");
		return -EACCES;
	}
	token = token_get(a->token, &err, why, sizeof(why));
	if (token)
		return buf_printf(&req->headers, "Authorization: Bearer %s\n", token);
	snprintf(req->detail, sizeof(req->detail), "%s%s",
		a->creds.guessed ? "the environment has no credentials; " : "", why);
	return err;
}

static int fill(const struct account *a, const struct account_call *call,
	const struct headers *h, struct http_req *req)
{
	int err = add_url(a, call, &req->url);

	if (!err)
		err = add_headers(h, &req->headers);
	if (!err && a->creds.kind == CREDS_KEY)
		err = add_signature(a, call, h, &req->headers);
	else if (!err && a->token)
		err = add_token(a, call, req);
	return err == -EFBIG ? -ENOMEM : err;
}

int account_prepare(
	struct account *a, const struct account_call *call, struct http_req *req)
{
	struct headers h = {0};
	int err = collect(a, call, &h);

	account_buf_wipe(&req->url);
	account_buf_wipe(&req->headers);
	req->detail[0] = '\0';
	req->method = call->method;
	req->body = call->body;
	req->body_len = call->body_len;
	if (!err)
		err = fill(a, call, &h, req);
	free(h.p);
	if (err == -EINVAL)
		snprintf(req->detail, sizeof(req->detail),
			"a header has a control character");
	return err;
}
