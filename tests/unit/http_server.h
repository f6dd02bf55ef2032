/* SPDX-License-Identifier: MIT */
/*
 * A server on 127.0.0.1 for tests of what speaks HTTP: it runs on the loop of
 * the test, answers as told, and can be as bad as servers get. Prefix hs_.
 */
#ifndef SPOOLFS_TESTS_UNIT_HTTP_SERVER_H
#define SPOOLFS_TESTS_UNIT_HTTP_SERVER_H

#include "backend/base/buf.h"
#include "backend/base/loop.h"

struct hs_conn {
	TAILQ_ENTRY(hs_conn) link;
	struct hs *server;
	struct loop_fd w;
	struct buf in, out;
	bool close_after; /* what is in out */
	bool endless;     /* goes on sending for ever */
	unsigned requests;
};

/* Zero-initialise; set answer or text at any time. */
struct hs {
	/* A whole request came over C, it is in last: hs_say(), hs_close(),
	 * hs_reset(), or nothing for now. NULL: TEXT is said. */
	void (*answer)(struct hs_conn *c);
	const char *text; /* NULL: 200 and "hello" */
	void *arg;

	struct buf last; /* the last request, whole */
	unsigned requests, accepted, open, most_open;
	TAILQ_HEAD(, hs_conn) conns; /* in the order of their coming */

	struct loop *loop;
	struct loop_fd w;
	int port;
};

/* 0 or -errno. */
int hs_start(struct hs *s, struct loop *loop);
/* Refuses connections from now on; those that are there stay. */
void hs_refuse(struct hs *s);
/* Also when it was never started. */
void hs_stop(struct hs *s);

/* Sends TEXT as it is, and reads on. */
void hs_say(struct hs_conn *c, const char *text);
/* Sends TEXT, then bytes without end. */
void hs_say_endless(struct hs_conn *c, const char *text);
/* Sends TEXT and closes. */
void hs_close(struct hs_conn *c, const char *text);
/* Sends TEXT and resets the connection; C is gone. */
void hs_reset(struct hs_conn *c, const char *text);

/* "HTTP/1.1 200 OK", its length, and "hello". */
extern const char hs_hello[];

#endif
