/* SPDX-License-Identifier: MIT */
/* What account.c (credentials, time) and account_prepare.c (requests) share. */
#ifndef SPOOLFS_WIRE_ACCOUNT_INT_H
#define SPOOLFS_WIRE_ACCOUNT_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "../base/loop.h"
#include "account.h"
#include "account_creds.h"
#include "account_expiry.h"
#include "account_file.h"

struct account {
	struct loop *loop;
	struct http *http;
	void (*changed)(void *arg);
	void *arg;
	struct loop_task news;

	char *name;
	char *path; /* of the credentials file, or NULL */
	unsigned char digest[32];
	struct account_watch watch;
	bool bad_file;   /* it was said that it cannot be used */
	int64_t look_ns; /* not to be looked at for a refusal before */

	struct creds creds;
	struct token *token; /* or NULL */
	struct expiry expiry;
	struct loop_timer expiry_timer;

	int64_t offset_ns; /* the service's clock less ours */
	bool skew_told;
};

#endif
