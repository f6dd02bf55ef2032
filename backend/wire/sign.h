/* SPDX-License-Identifier: MIT */
/*
 * What proves to Azure Storage who asks: signatures and shared access
 * signatures. Pure but for OpenSSL: values in, text out.
 *
 * Source of the forms: Microsoft's "Authorize with Shared Key" (REST), and
 * recorded exchanges; see tests/unit/test_sign.c.
 */
#ifndef SPOOLFS_WIRE_SIGN_H
#define SPOOLFS_WIRE_SIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/buf.h"
#include "encode.h"

struct sign_param {
	const char *name, *value; /* not encoded */
};

enum sign_form {
	SIGN_QUEUE_BLOB, /* twelve lines, x-ms- headers, resource with query */
	SIGN_TABLE,      /* five lines, resource with comp only */
};

/* What is signed of a request. */
struct sign_request {
	enum sign_form form;
	const char *account;
	const char *method;
	const char *path; /* as on the wire, encoded; on an emulator it begins
			     with the account, which is then there twice */
	const struct sign_param *query;
	size_t n_query;
	const struct sign_param *headers; /* all that will be sent: x-ms-*,
					     Content-Type, If-Match, ... any case */
	size_t n_headers;
	size_t body_len;
};

/* The text that is signed. 0 or -ENOMEM. */
int sign_text(const struct sign_request *r, struct buf *out);
/* "SharedKey ACCOUNT:SIGNATURE" appended to OUT. KEY is the decoded key. */
int sign_shared_key(
	const struct sign_request *r, const void *key, size_t key_len, struct buf *out);

/*
 * A shared access signature: the query string that was handed out, with or
 * without '?'. -EINVAL and a line in ERR when it cannot be one (no sig=), without
 * a part of it. *EXPIRES_NS: its se=, wall clock, or -1 when it has none; of what
 * the clock cannot show 0 or CLOCK_NEVER.
 */
int sas_check(const char *sas, int64_t *expires_ns, char *err, size_t err_len);
/* Its st=, likewise. */
int64_t sas_start_ns(const char *sas);

/* RFC 1123 date: "Fri, 20 Nov 2026 04:17:41 GMT". Wall clock ns. */
#define SIGN_DATE_LEN 30
void sign_date(int64_t wall_ns, char out[SIGN_DATE_LEN]);
/* The same back: -1 when it is none, or later than 2262-04-11. */
int64_t sign_date_parse(const char *text);

#endif
