/* SPDX-License-Identifier: MIT */
/*
 * What an answer of the queue service means. Pure.
 *
 * Source: "Queue service error codes", "Common REST API error codes"
 * (Microsoft). The service and its emulator differ in what they answer to a
 * receipt that is not the newest; both are known here.
 */
#ifndef SPOOLFS_DRIVERS_AZURE_ERROR_H
#define SPOOLFS_DRIVERS_AZURE_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "azure_xml.h"

/* What was asked. */
enum azure_verb {
	AZURE_GET,    /* lease messages */
	AZURE_PEEK,   /* look at them */
	AZURE_PUT,    /* a new message */
	AZURE_UPDATE, /* renew or end a lease */
	AZURE_DELETE, /* a message */
	AZURE_COUNT,  /* the queue's metadata */
	AZURE_CREATE, /* the queue */
};

struct azure_verdict {
	int err; /* 0, or of the driver's closed set */
	/* -ENOENT because there is no such queue (it can be made). */
	bool no_queue;
	/* -EACCES perhaps only because our clock is wrong. */
	bool signature;
	int64_t retry_after_ns; /* with -EAGAIN: at least; 0 no hint */
};

/* STATUS was answered, with E; e->code is the x-ms-error-code header where the
 * answer has no body. */
struct azure_verdict azure_judge(
	enum azure_verb verb, int status, const struct azure_error_text *e);
/* "503 ServerBusy: The server is busy." */
void azure_describe(
	int status, const struct azure_error_text *e, char *out, size_t out_len);
/* An http_req's err, where no whole answer came, as one of the closed set. */
int azure_transport(int err);

#endif
