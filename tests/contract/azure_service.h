/* SPDX-License-Identifier: MIT */
/* The driver for Azure Storage queues, and a service that answers as told. */
#ifndef SPOOLFS_TESTS_AZURE_SERVICE_H
#define SPOOLFS_TESTS_AZURE_SERVICE_H

#include "azure_bed.h"
#include "tests/unit/http_server.h"

#define JOBS    "/devstoreaccount1/jobs"
#define POISON  "/devstoreaccount1/jobs-poison"
#define RECEIPT "AgAAAAMAAAAAAAAAnsNZ/zYp1QE+="
#define ID      "b4f03bf0-be68-41ca-bd76-dff55b54a0dd"
#define WHEN    "<InsertionTime>Fri, 20 Nov 2026 04:17:41 GMT</InsertionTime>"
/* An answer; the server closes nothing. */
#define ANSWER(status, headers) \
	"HTTP/1.1 " status "\r\n" headers "Content-Length: 0\r\n\r\n"
#define CODE(code) "x-ms-error-code: " code "\r\n"
#define NO_QUEUE   ANSWER("404 Not Found", CODE("QueueNotFound"))
#define BUSY       ANSWER("503 Busy", CODE("ServerBusy") "Retry-After: 7\r\n")
#define DELETED    ANSWER("204 No Content", "")
#define RESET      "the connection is reset"
#define CREATED    ANSWER("201 Created", "")

/* What is answered to a request that has MATCH in it, so many times. */
struct rule {
	const char *match;
	unsigned times;
	const char *text; /* NULL: nothing at all */
};

struct service {
	struct azure_bed a;
	struct hs hs;
	struct rule *rules; /* ended by match NULL; the first that fits */
	unsigned unexpected;
	struct hs_conn *silent; /* where the last was that got no answer */
};

static inline void service_answer(struct hs_conn *c)
{
	struct service *s = c->server->arg;
	struct rule *r = s->rules;

	while (r->match && (!r->times || !strstr(s->hs.last.p, r->match)))
		r++;
	if (!r->match) {
		printf("# unexpected: %.60s\n", s->hs.last.p);
		s->unexpected++;
		hs_close(c, ANSWER("418 Unexpected", ""));
		return;
	}
	r->times--;
	if (r->text && strcmp(r->text, RESET) == 0)
		hs_reset(c, "");
	else if (r->text)
		hs_say(c, r->text);
	else
		s->silent = c;
}

static inline void service_init(struct service *s, struct rule *rules)
{
	char source[160];

	*s = (struct service){.rules = rules};
	setenv("AZURE_STORAGE_CONNECTION_STRING", "UseDevelopmentStorage=true", 1);
	azure_bed_prepare(&s->a, "");
	s->hs.answer = service_answer;
	s->hs.arg = s;
	CHECK_INT(hs_start(&s->hs, s->a.b.loop), 0);
	snprintf(source, sizeof(source), "azure-queue+http://127.0.0.1:%d" JOBS,
		s->hs.port);
	memcpy(s->a.source, source, sizeof(source));
	s->a.b.d = azure_open(&s->a);
}

/* All that was expected was asked, and nothing else. */
static inline void service_fini(struct service *s)
{
	CHECK_INT(s->unexpected, 0);
	for (struct rule *r = s->rules; r->match; r++)
		if (r->times)
			CHECK_STR(r->match, "asked");
	driver_close(s->a.b.d);
	s->a.b.d = NULL;
	hs_stop(&s->hs);
	azure_bed_fini(&s->a);
}

/* Submits a receive and waits; driver_req_fini() it. */
static inline struct driver_req service_receive(struct service *s)
{
	struct driver_req req = {.op = DRIVER_RECEIVE};

	req.u.receive.max = 32;
	req.u.receive.max_bytes = 64 << 20;
	req.u.receive.lease_ns = LEASE_NS;
	(void)ask(&s->a.b, &req);
	return req;
}

static inline int service_settle(struct service *s, enum settle_op op)
{
	struct driver_msg m = {
		.id = (char *)(uintptr_t)ID, .receipt = (char *)(uintptr_t)RECEIPT};

	return azure_settle_as(&s->a, op, &m, 0);
}

/* A whole answer, written to OUT. */
static inline const char *service_says(
	char *out, size_t len, const char *status, const char *body)
{
	snprintf(out, len, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s", status,
		strlen(body), body);
	return out;
}

#endif
