/* SPDX-License-Identifier: MIT */
/* What token.c (when) and token_ask.c (what is asked and answered) share. */
#ifndef SPOOLFS_WIRE_TOKEN_INT_H
#define SPOOLFS_WIRE_TOKEN_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "../base/loop.h"
#include "token.h"

struct token {
	struct loop *loop;
	struct http *http;
	enum token_kind kind;
	char *authority, *tenant, *client, *secret, *file, *header;
	void (*changed)(void *arg);
	void *arg;

	struct http_req req;
	struct buf body; /* of req */
	bool begun, asking;
	int64_t asked_ns;        /* monotonic, as all here: when last */
	struct loop_timer timer; /* to ask again */
	unsigned failures;       /* since the last token */

	char *value; /* or NULL */
	int64_t life_ns, end_ns;
	int err; /* 0, -EAGAIN, -EACCES: what came of asking last */
	char detail[HTTP_DETAIL];
};

/*
 * Fills t->req and t->body. 0, -ENOMEM, or -EACCES with a line in t->detail: the
 * file with the assertion cannot be read.
 */
int token_ask(struct token *t);

struct token_answer {
	int err;         /* 0, -EAGAIN: ask again soon, -EACCES: refused */
	bool nobody;     /* no answer came */
	char *value;     /* the token, the caller's */
	int64_t life_ns; /* > 0 */
	int64_t wait_ns; /* ask not before */
	char detail[HTTP_DETAIL];
};

/* What the answer in t->req says. */
void token_read(const struct token *t, struct token_answer *out);

#endif
