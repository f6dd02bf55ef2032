/* SPDX-License-Identifier: MIT */
/*
 * Two forms of the text that is signed. Queue and Blob sign nearly everything
 * that is sent, so whatever a library adds on its own (a Content-Type!) makes
 * the signature wrong; Table signs a date and a path only.
 */
#include "sign.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *header(const struct sign_request *r, const char *name)
{
	for (size_t i = 0; i < r->n_headers; i++) {
		if (strcasecmp(r->headers[i].name, name) == 0)
			return r->headers[i].value;
	}
	return "";
}

/* VALUE without the blanks around it. */
static int add_trimmed(struct buf *out, const char *value)
{
	size_t n;

	value += strspn(value, " \t");
	n = strlen(value);
	while (n > 0 && strchr(" \t", value[n - 1]))
		n--;
	return buf_add(out, value, n);
}

static int add_lower(struct buf *out, const char *name)
{
	int err = 0;

	for (; *name && !err; name++) {
		char c = *name;

		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		err = buf_add(out, &c, 1);
	}
	return err;
}

static int by_name(const void *x, const void *y)
{
	const struct sign_param *a = x, *b = y;
	int order = strcasecmp(a->name, b->name);

	return order ? order : strcmp(a->value, b->value);
}

/* A sorted copy of those whose name begins with PREFIX; free() it. */
static struct sign_param *sorted(
	const struct sign_param *params, size_t n, const char *prefix, size_t *n_out)
{
	struct sign_param *copy = calloc(n + 1, sizeof(*copy));
	size_t kept = 0;

	for (size_t i = 0; i < n && copy; i++) {
		if (strncasecmp(params[i].name, prefix, strlen(prefix)) == 0)
			copy[kept++] = params[i];
	}
	*n_out = kept;
	if (copy)
		qsort(copy, kept, sizeof(*copy), by_name);
	return copy;
}

static int add_ms_headers(struct buf *out, const struct sign_request *r)
{
	size_t n;
	struct sign_param *h = sorted(r->headers, r->n_headers, "x-ms-", &n);
	int err = h ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !err; i++) {
		err = add_lower(out, h[i].name);
		if (!err)
			err = buf_addstr(out, ":");
		if (!err)
			err = add_trimmed(out, h[i].value);
		if (!err)
			err = buf_addstr(out, "\n");
	}
	free(h);
	return err;
}

/* A name that is there several times: one line, the values with commas. */
static int add_query(struct buf *out, const struct sign_request *r)
{
	size_t n;
	struct sign_param *q = sorted(r->query, r->n_query, "", &n);
	int err = q ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !err; i++) {
		if (i > 0 && strcasecmp(q[i].name, q[i - 1].name) == 0) {
			err = buf_printf(out, ",%s", q[i].value);
			continue;
		}
		err = buf_addstr(out, "\n");
		if (!err)
			err = add_lower(out, q[i].name);
		if (!err)
			err = buf_printf(out, ":%s", q[i].value);
	}
	free(q);
	return err;
}

static int add_line(struct buf *out, const char *value)
{
	int err = add_trimmed(out, value);

	return err ? err : buf_addstr(out, "\n");
}

/* The headers that are signed without their names. */
static int add_plain_headers(struct buf *out, const struct sign_request *r)
{
	static const char *const names[] = {"Content-Encoding", "Content-Language",
		"Content-Length", "Content-MD5", "Content-Type", "Date",
		"If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since",
		"Range"};
	bool dated = *header(r, "x-ms-date") != '\0';
	int err = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !err; i++) {
		if (strcmp(names[i], "Content-Length") == 0)
			err = r->body_len ? buf_printf(out, "%zu\n", r->body_len)
					  : buf_addstr(out, "\n");
		else if (strcmp(names[i], "Date") == 0 && dated)
			err = buf_addstr(out, "\n");
		else
			err = add_line(out, header(r, names[i]));
	}
	return err;
}

static int queue_blob_text(const struct sign_request *r, struct buf *out)
{
	int err = add_line(out, r->method);

	if (!err)
		err = add_plain_headers(out, r);
	if (!err)
		err = add_ms_headers(out, r);
	if (!err)
		err = buf_printf(out, "/%s%s", r->account, r->path);
	return err ? err : add_query(out, r);
}

static int add_comp(struct buf *out, const struct sign_request *r)
{
	for (size_t i = 0; i < r->n_query; i++) {
		if (strcasecmp(r->query[i].name, "comp") == 0)
			return buf_printf(out, "?comp=%s", r->query[i].value);
	}
	return 0;
}

static int table_text(const struct sign_request *r, struct buf *out)
{
	const char *date = header(r, "x-ms-date");
	int err = add_line(out, r->method);

	if (!err)
		err = add_line(out, header(r, "Content-MD5"));
	if (!err)
		err = add_line(out, header(r, "Content-Type"));
	if (!err)
		err = add_line(out, *date ? date : header(r, "Date"));
	if (!err)
		err = buf_printf(out, "/%s%s", r->account, r->path);
	return err ? err : add_comp(out, r);
}

int sign_text(const struct sign_request *r, struct buf *out)
{
	int err = r->form == SIGN_TABLE ? table_text(r, out) : queue_blob_text(r, out);

	return err ? -ENOMEM : 0;
}

int sign_shared_key(
	const struct sign_request *r, const void *key, size_t key_len, struct buf *out)
{
	unsigned char mac[EVP_MAX_MD_SIZE];
	unsigned mac_len = 0;
	struct buf text = {0};
	int err = sign_text(r, &text);

	if (!err && !HMAC(EVP_sha256(), key, (int)key_len, (const unsigned char *)text.p,
			    text.len, mac, &mac_len))
		err = -ENOMEM;
	if (!err)
		err = buf_printf(out, "SharedKey %s:", r->account);
	if (!err)
		err = base64_encode(mac, mac_len, out);
	buf_fini(&text);
	return err ? -ENOMEM : 0;
}
