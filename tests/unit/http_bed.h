/* SPDX-License-Identifier: MIT */
/* A loop, a server and a client on it, and requests: what tests of http share. */
#ifndef SPOOLFS_TESTS_UNIT_HTTP_BED_H
#define SPOOLFS_TESTS_UNIT_HTTP_BED_H

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "backend/base/clock.h"
#include "backend/wire/http.h"
#include "http_server.h"
#include "tests/test.h"

#define BED_REQS 12
/* In every URL, and never to be seen outside of the request. */
#define BED_QUERY "sig=secret%2Bword"

struct bed {
	struct loop *loop;
	struct hs server;
	struct http_config cfg;
	struct http *http;
	struct http_req reqs[BED_REQS];
	unsigned told[BED_REQS]; /* calls of done() */
	unsigned done;
	bool submitting;
	int fds;
	/* What done() does besides. */
	void (*also)(struct bed *b, struct http_req *req);
};

static inline int bed_count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static inline int64_t bed_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/* Runs the loop until COND, 20 s at most. */
#define AWAIT(b, cond)                                                       \
	for (int64_t until_ = bed_now_ns() + 20 * NS_PER_S; !(cond);) {      \
		if (bed_now_ns() > until_)                                   \
			test_fail(__FILE__, __LINE__, "%s", "never " #cond); \
		CHECK_INT(loop_once((b)->loop, 100 * NS_PER_MS), 0);         \
	}

static inline void bed_setup(struct bed *b)
{
	*b = (struct bed){.fds = bed_count_fds()};
	b->loop = loop_create();
	CHECK(b->loop);
	CHECK_INT(hs_start(&b->server, b->loop), 0);
	b->cfg = http_config_default();
	b->http = http_create(b->loop, &b->cfg);
	CHECK(b->http);
}

/* Another client, after a change of b->cfg. */
static inline void bed_reconfigure(struct bed *b)
{
	http_destroy(b->http);
	b->http = http_create(b->loop, &b->cfg);
	CHECK(b->http);
}

static inline void bed_teardown(struct bed *b)
{
	for (int i = 0; i < BED_REQS; i++)
		http_req_fini(&b->reqs[i]);
	http_destroy(b->http);
	hs_stop(&b->server);
	loop_destroy(b->loop);
	CHECK_INT(bed_count_fds(), b->fds);
}

static inline void bed_on_done(struct http_req *req)
{
	struct bed *b = req->arg;

	CHECK(!b->submitting);
	b->told[req - b->reqs]++;
	b->done++;
	if (b->also)
		b->also(b, req);
}

/* Request I, with an URL of its own unless it has one; reqs[I] may be filled. */
static inline struct http_req *bed_submit(struct bed *b, int i, const char *method)
{
	struct http_req *req = &b->reqs[i];

	if (!req->url.len)
		CHECK_INT(buf_printf(&req->url, "http://127.0.0.1:%d/r%d?%s",
				  b->server.port, i, BED_QUERY),
			0);
	req->method = method;
	req->done = bed_on_done;
	req->arg = b;
	b->submitting = true;
	http_submit(b->http, req);
	b->submitting = false;
	return req;
}

static inline struct http_req *bed_run(struct bed *b, int i, const char *method)
{
	struct http_req *req = bed_submit(b, i, method);
	unsigned before = b->told[i];

	AWAIT(b, b->told[i] > before);
	CHECK_INT(b->told[i], before + 1);
	CHECK(!strstr(req->detail, "secret"));
	CHECK(!req->err || req->detail[0]);
	CHECK(req->err || !req->in_doubt);
	return req;
}

static inline void bed_check(const struct http_req *req, int err, int status)
{
	if (req->err != err)
		printf("# %s\n", req->detail);
	CHECK_INT(req->err, err);
	if (!err)
		CHECK_INT(req->status, status);
}

#endif
