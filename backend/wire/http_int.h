/* SPDX-License-Identifier: MIT */
/* What http.c (all requests, the loop) and http_try.c (one request) share. */
#ifndef SPOOLFS_WIRE_HTTP_INT_H
#define SPOOLFS_WIRE_HTTP_INT_H

#include <curl/curl.h>

#include "http.h"

/* A request while curl has it. */
struct http_try {
	CURL *easy;
	struct curl_slist *headers;
	char *host, *path; /* of the URL; curl's memory */
	unsigned sendings; /* how often it began to be sent */
	int err;           /* why we ended it, 0: we did not */
	char text[CURL_ERROR_SIZE];
};

/*
 * Sets req->try, ready for a multi handle. 0, -EINVAL or -ENOMEM, with the
 * same in req->err and words in req->detail; req->try may be half built then.
 */
int http_try_create(struct http_req *req, const struct http_config *cfg);
/* Not in a multi handle any more. Takes NULL. */
void http_try_destroy(struct http_try *t);
/* Curl has ended REQ with CODE: fills what http_req has for the outcome. */
void http_try_result(struct http_req *req, CURLcode code);

#endif
