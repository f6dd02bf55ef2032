/* SPDX-License-Identifier: MIT */
/*
 * The driver for Azure Storage queues against answers of the service itself that
 * the emulator does not give.
 */
#include <sys/stat.h>

#include "azure_service.h"

/* ---- what the service itself answers ---- */

#define PAGE                                                                        \
	"\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList>" \
	"<QueueMessage><MessageId>" ID "</MessageId>" WHEN "<PopReceipt>" RECEIPT   \
	"</PopReceipt><DequeueCount>1</DequeueCount><MessageText>a</MessageText>"   \
	"</QueueMessage><QueueMessage><MessageId>0-1</MessageId>" WHEN              \
	"<PopReceipt>" RECEIPT                                                      \
	"</PopReceipt><DequeueCount>9</DequeueCount><MessageText />"                \
	"</QueueMessage></QueueMessagesList>"

TEST(messages_of_one_answer_share_a_receipt_that_must_be_encoded)
{
	char text[2048];
	struct rule rules[] = {{"GET " JOBS "/messages?", 1,
				       service_says(text, sizeof(text), "200 OK", PAGE)},
		{"DELETE " JOBS "/messages/" ID
		 "?popreceipt=AgAAAAMAAAAAAAAAnsNZ%2FzYp1QE%2B%3D ",
			1, DELETED},
		{0}};
	struct driver_req got;
	struct service s;

	service_init(&s, rules);
	got = service_receive(&s);
	CHECK_INT(got.err, 0);
	CHECK_INT(got.u.receive.n, 2);
	CHECK_STR(got.u.receive.msgs[0].receipt, RECEIPT);
	CHECK_STR(got.u.receive.msgs[1].receipt, RECEIPT);
	ask_body(got.u.receive.msgs[1].body, "");
	CHECK_INT(got.u.receive.msgs[1].dequeue_count, 9);
	CHECK_INT(azure_settle_as(&s.a, SETTLE_DELETE, &got.u.receive.msgs[0], 0), 0);
	driver_req_fini(&got);
	service_fini(&s);
}

TEST(stale_receipts_in_all_dialects)
{
	char format[512];
	struct rule rules[] = {
		{"PUT ", 1, ANSWER("404 Not Found", CODE("MessageNotFound"))},
		{"PUT ", 1, ANSWER("400 Bad Request", CODE("PopReceiptMismatch"))},
		{"PUT ", 1,
			service_says(format, sizeof(format), "400 Bad Request",
				"\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"utf-8\"?><Error>"
				"<Code>InvalidQueryParameterValue</Code><Message>Value for one "
				"of the query parameters is invalid.\nTime:1</Message>"
				"<QueryParameterName>popreceipt</QueryParameterName></Error>")},
		{"DELETE ", 1, ANSWER("404 Not Found", CODE("MessageNotFound"))},
		{"DELETE ", 1, ANSWER("400 Bad Request", CODE("PopReceiptMismatch"))},
		{"PUT ", 1, DELETED}, {0}};
	struct service s;

	service_init(&s, rules);
	CHECK_INT(service_settle(&s, SETTLE_RENEW), -ESTALE);
	CHECK_INT(service_settle(&s, SETTLE_RELEASE), -ESTALE);
	CHECK_INT(service_settle(&s, SETTLE_RENEW), -ESTALE);
	CHECK_INT(service_settle(&s, SETTLE_DELETE), -ENOENT);
	CHECK_INT(service_settle(&s, SETTLE_DELETE), -ESTALE);
	CHECK_INT(service_settle(&s, SETTLE_RENEW), -EPROTO); /* without a receipt */
	service_fini(&s);
}

TEST(busy_is_passed_on_with_its_hint)
{
	char timed_out[512];
	struct rule rules[] = {{"GET ", 1, BUSY},
		{"GET ", 1,
			service_says(timed_out, sizeof(timed_out),
				"500 Internal Server Error",
				"<Error><Code>OperationTimedOut</Code><Message>Operation could "
				"not be completed.\nRequestId:1</Message></Error>")},
		{"GET ", 1, ANSWER("503 Busy", "Retry-After: 99999999999\r\n")}, {0}};
	struct driver_req got;
	struct service s;

	service_init(&s, rules);
	got = service_receive(&s);
	CHECK_INT(got.err, -EAGAIN);
	CHECK_INT(got.retry_after_ns, 7 * NS_PER_S);
	CHECK_STR(got.detail, "503 ServerBusy");
	got = service_receive(&s);
	CHECK_INT(got.err, -EAGAIN);
	CHECK_INT(got.retry_after_ns, 0);
	CHECK_STR(got.detail, "500 OperationTimedOut: Operation could not be completed.");
	got = service_receive(&s);
	CHECK_INT(got.retry_after_ns, 3600 * NS_PER_S); /* for ever is no answer */
	CHECK_INT(s.hs.requests, 3);                    /* nothing is retried */
	service_fini(&s);
}

TEST(a_batch_that_came_nowhere_has_failed_as_a_whole)
{
	struct rule rules[] = {
		{"DELETE ", 3, BUSY}, {"DELETE ", 1, BUSY}, {"DELETE ", 1, DELETED}, {0}};
	struct settle it[3] = {{SETTLE_DELETE, .id = "1", .receipt = "r"},
		{SETTLE_DELETE, .id = "2", .receipt = "r"},
		{SETTLE_DELETE, .id = "3", .receipt = "r"}};
	struct driver_req req = {.op = DRIVER_SETTLE};
	struct service s;

	service_init(&s, rules);
	req.u.settle.items = it;
	req.u.settle.n = 3;
	CHECK_INT(ask(&s.a.b, &req), -EAGAIN);
	for (int i = 0; i < 3; i++)
		CHECK_INT(it[i].err, -EAGAIN);
	CHECK_INT(req.retry_after_ns, 7 * NS_PER_S);
	CHECK_STR(req.detail, "503 ServerBusy");
	req.u.settle.n = 2;
	CHECK_INT(ask(&s.a.b, &req), 0);
	CHECK_INT(it[0].err + it[1].err, -EAGAIN);
	CHECK_INT(req.retry_after_ns, 7 * NS_PER_S);
	service_fini(&s);
}

TEST(a_queue_that_is_being_deleted)
{
	struct rule rules[] = {{"GET ", 1, NO_QUEUE},
		{"PUT " JOBS " ", 1, ANSWER("409 Conflict", CODE("QueueBeingDeleted"))},
		/* and one that others do not see yet */
		{"GET ", 2, NO_QUEUE}, {"PUT " JOBS " ", 1, CREATED}, {0}};
	struct driver_req got;
	struct service s;

	service_init(&s, rules);
	got = service_receive(&s);
	CHECK_INT(got.err, -EAGAIN);
	CHECK_INT(got.retry_after_ns, 5 * NS_PER_S);
	CHECK(strstr(got.detail, "QueueBeingDeleted"));
	got = service_receive(&s);
	CHECK_INT(got.err, -EAGAIN);
	CHECK(got.retry_after_ns > 0);
	service_fini(&s);
}

/* ---- clocks and credentials ---- */

#define REFUSED(date)                      \
	"HTTP/1.1 403 Forbidden\r\n" CODE( \
		"AuthenticationFailed") "Date: " date "\r\nContent-Length: 0\r\n\r\n"

TEST(a_wrong_clock_is_corrected_and_the_request_made_once_more)
{
	char empty[256];
	struct rule rules[] = {{"GET ", 1, REFUSED("Fri, 20 Nov 2037 04:17:41 GMT")},
		{"x-ms-date: Fri, 20 Nov 2037 04:1", 1,
			service_says(
				empty, sizeof(empty), "200 OK", "<QueueMessagesList />")},
		/* right by now: it must be the key */
		{"GET ", 1, REFUSED("Fri, 20 Nov 2037 04:17:41 GMT")}, {0}};
	struct driver_req got;
	struct service s;

	service_init(&s, rules);
	got = service_receive(&s);
	CHECK_INT(got.err, 0);
	driver_req_fini(&got);
	got = service_receive(&s);
	CHECK_INT(got.err, -EACCES);
	CHECK_INT(s.hs.requests, 3);
	service_fini(&s);
}

/* The second is answered when the clock is right already. */
TEST(of_two_under_way_both_are_made_once_more)
{
	struct rule rules[] = {{"DELETE ", 2, REFUSED("Fri, 20 Nov 2037 04:17:41 GMT")},
		{"x-ms-date: Fri, 20 Nov 2037 04:1", 2, DELETED}, {0}};
	struct settle it[2] = {{SETTLE_DELETE, .id = "1", .receipt = "r"},
		{SETTLE_DELETE, .id = "2", .receipt = "r"}};
	struct driver_req req = {.op = DRIVER_SETTLE};
	struct service s;

	service_init(&s, rules);
	req.u.settle.items = it;
	req.u.settle.n = 2;
	CHECK_INT(ask(&s.a.b, &req), 0);
	CHECK_INT(it[0].err, 0);
	CHECK_INT(it[1].err, 0);
	CHECK_INT(s.hs.requests, 4);
	service_fini(&s);
}

TEST(but_only_once)
{
	struct rule rules[] = {{"GET ", 1, REFUSED("Fri, 20 Nov 2037 04:17:41 GMT")},
		{"GET ", 1, REFUSED("Fri, 20 Nov 2038 04:17:41 GMT")}, {0}};
	struct driver_req got;
	struct service s;

	service_init(&s, rules);
	got = service_receive(&s);
	CHECK_INT(got.err, -EACCES);
	CHECK_STR(got.detail, "403 AuthenticationFailed");
	service_fini(&s);
}

TEST(a_refusal_says_no_secret)
{
	char text[1024];
	struct rule rules[] = {
		{"GET ", 1,
			service_says(text, sizeof(text), "403 Forbidden",
				"<Error><Code>AuthenticationFailed</Code><Message>Server failed "
				"to authenticate the request.\nRequestId:1</Message>"
				"<AuthenticationErrorDetail>SECRET</AuthenticationErrorDetail>"
				"</Error>")},
		{0}};
	struct driver_req got;
	struct service s;

	service_init(&s, rules);
	got = service_receive(&s);
	CHECK_INT(got.err, -EACCES);
	CHECK_STR(got.detail,
		"403 AuthenticationFailed: Server failed to authenticate the request.");
	service_fini(&s);
}

static void write_key(const char *path, char letter)
{
	FILE *f = fopen(path, "w");

	CHECK(f);
	fchmod(fileno(f), 0600);
	fprintf(f, "AZURE_STORAGE_KEY=%c%.85s==\n", letter,
		"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
		"AAAAAAAAAAAA");
	CHECK_INT(fclose(f), 0);
}

TEST(mended_credentials_are_told)
{
	struct rule rules[] = {{"GET ", 1, ANSWER("403 Forbidden", CODE("x"))}, {0}};
	struct service s;
	char path[128];
	struct driver_req got;

	service_init(&s, rules);
	driver_close(s.a.b.d);
	snprintf(path, sizeof(path), "%s/key", s.a.b.dir);
	write_key(path, 'A');
	s.a.p.credentials = path;
	s.a.b.d = azure_open(&s.a);
	got = service_receive(&s);
	CHECK_INT(got.err, -EACCES);
	CHECK_INT(s.a.b.changes, 0);
	write_key(path, 'B');
	CHECK(bed_wait(&s.a.b, &s.a.b.changes, 1));
	service_fini(&s);
}
