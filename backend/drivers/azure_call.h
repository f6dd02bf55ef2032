/* SPDX-License-Identifier: MIT */
/*
 * One request to the service, and what it may take: making the queue when it is
 * missing, asking once more when a wrong clock was the reason of a refusal. These
 * are steps of one request; nothing is retried here.
 */
#ifndef SPOOLFS_DRIVERS_AZURE_CALL_H
#define SPOOLFS_DRIVERS_AZURE_CALL_H

#include <sys/queue.h>

#include "../wire/http.h"
#include "azure_error.h"
#include "azure_xml.h"

struct azure;
struct azure_call;
TAILQ_HEAD(azure_calls, azure_call);

/* One queue of the service. */
struct azure_queue {
	const char *name;
	bool create;                /* it may be made when something needs it */
	struct azure_call *maker;   /* it is being made */
	struct azure_calls waiting; /* for that */
};

/* One request to the service. Zero-initialise, set the inputs, start. Strings
 * stay the caller's and must stay until done(). */
struct azure_call {
	struct azure *az;
	enum azure_verb verb;
	struct azure_queue *queue;
	const char *id, *receipt; /* UPDATE, DELETE */
	int64_t visible_s;        /* GET, UPDATE */
	unsigned max;             /* GET, PEEK */
	struct buf document;      /* PUT; the call's own */
	void (*done)(struct azure_call *c);
	void *arg;
	/* answers */
	int err; /* of the closed set */
	char detail[160];
	int64_t retry_after_ns;
	int64_t sent_ns;        /* monotonic, before it was sent */
	int64_t signed_ns;      /* as account_now_ns() had it then */
	struct azure_page page; /* GET, PEEK, PUT: whole, as the verb has them */
	char *new_receipt;      /* UPDATE */
	uint64_t count;         /* COUNT */
	/* azure_call.c's */
	struct http_req http;
	bool made;   /* for the sake of this, its queue */
	bool resign; /* it was refused for our wrong clock */
	TAILQ_ENTRY(azure_call) link;
};

/* Always calls done(), later. */
void azure_call_start(struct azure_call *c);
/* Not of one under way. It can be used again. */
void azure_call_fini(struct azure_call *c);
/* Ends all that are under way, for good: done() of each is called. */
void azure_calls_cancel(struct azure *az);

#endif
