/* SPDX-License-Identifier: MIT */
/*
 * An HTTP client on the loop: libcurl's multi interface, no thread, no blocking
 * call. Connections are kept alive and shared; HTTP/2 is used where the server
 * offers it over TLS. Certificates are always verified.
 *
 * It retries nothing: whoever asks decides; only a request that a kept
 * connection lost is sent once more. Redirects are not followed. The proxy that
 * the environment names is used, but for loopback and link-local addresses.
 */
#ifndef SPOOLFS_WIRE_HTTP_H
#define SPOOLFS_WIRE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "../base/buf.h"

struct loop;
struct http;
struct http_try;

struct http_config {
	const char *ca_file;        /* PEM; NULL: the system's. Copied */
	unsigned max_connections;   /* in all; further requests wait (>= 1) */
	int64_t connect_timeout_ns; /* name look-up, TCP and TLS */
	int64_t stall_timeout_ns;   /* no byte either way for so long */
	int64_t total_timeout_ns;   /* from the submission of a request */
	int64_t idle_ns;            /* an idle connection older is not reused */
};

/* Good for a cloud service: 16 connections, 10 s, 15 s, 30 s, 60 s. */
struct http_config http_config_default(void);

/* NULL and errno. */
struct http *http_create(struct loop *loop, const struct http_config *cfg);
/* Takes NULL. Requests under way are cancelled: their done() is not called. */
void http_destroy(struct http *h);

#define HTTP_DETAIL 160

/*
 * One request. Zero-initialise, fill the inputs, http_submit(). The caller's
 * memory throughout; what it points to must stay until done(). Afterwards
 * http_req_fini(), also when it was never submitted.
 */
struct http_req {
	/* in */
	const char *method; /* a string constant */
	struct buf url;     /* whole, encoded */
	struct buf headers; /* "Name: value\n" lines; "Name:\n" suppresses one of
			       curl's own. May hold secrets: never logged */
	const void *body;   /* NULL: none, and Content-Length: 0 for PUT and POST */
	size_t body_len;
	size_t max_body; /* of the answer; more is -EMSGSIZE. 0: 1 MiB */
	/* Called once, on the loop, never before http_submit() has returned. */
	void (*done)(struct http_req *req);
	void *arg;

	/* out */
	/*
	 * 0: a whole answer came, see status. Else:
	 *   -EAGAIN   unreachable, refused, reset, timed out, a short answer
	 *   -EACCES   the certificate cannot be trusted
	 *   -EMSGSIZE the answer was longer than max_body, or its headers than
	 *             64 KiB
	 *   -EPROTO   what came is not HTTP, or its encoding is broken
	 *   -EINVAL   the URL or a header line makes no sense
	 *   -ENOMEM
	 */
	int err;
	bool in_doubt; /* err: the server may have carried it out */
	/* A kept connection was closed without a byte of an answer and the request
	 * sent anew: the server may have carried out both. With and without err. */
	bool resent;
	char detail[HTTP_DETAIL];  /* err: one line for people: never the query of the
				      URL, it may hold a token */
	int status;                /* 200, 404, ... */
	struct buf answer;         /* its body */
	struct buf answer_headers; /* raw lines of the last answer */
	int64_t took_ns;

	/* http.c's */
	TAILQ_ENTRY(http_req) link;
	struct http_try *try;
	struct http *http;
};

void http_submit(struct http *h, struct http_req *req);
/* Forgets REQ: done() will not be called. Does nothing when it is not under way. */
void http_cancel(struct http_req *req);
/* Frees buffers (and cancels). */
void http_req_fini(struct http_req *req);

/* The value of the answer's (first) header NAME (any case), copied to OUT without
 * blanks around, cut to LEN - 1; false and "" when there is none. */
bool http_header(const struct http_req *req, const char *name, char *out, size_t len);
/* Retry-After as a duration (seconds or a date, which is taken against the
 * answer's own Date header, else clock_wall()); 0 when there is none. */
int64_t http_retry_after_ns(const struct http_req *req);
/* The answer's Date as wall clock ns, or -1. */
int64_t http_date_ns(const struct http_req *req);

/* Requests submitted so far, and connections made for those that have ended. */
uint64_t http_requests(const struct http *h);
uint64_t http_connections(const struct http *h);

#endif
