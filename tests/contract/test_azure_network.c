/* SPDX-License-Identifier: MIT */
/* The driver for Azure Storage queues where answers are lost, or none at all come. */
#include "azure_service.h"

/* ---- burials whose second half fails ---- */

#define PUT_DONE                                                              \
	"<QueueMessagesList><QueueMessage><MessageId>dead-1</MessageId>" WHEN \
	"<PopReceipt>put</PopReceipt></QueueMessage></QueueMessagesList>"

static int bury(struct service *s, char **new_id)
{
	struct settle it = {SETTLE_BURY, .id = ID, .receipt = RECEIPT};
	struct driver_req req = {.op = DRIVER_SETTLE};

	it.body = ask_blob("x");
	req.u.settle.items = &it;
	req.u.settle.n = 1;
	(void)ask(&s->a.b, &req);
	blob_unref(it.body);
	*new_id = it.new_id;
	return it.err;
}

TEST(a_burial_asked_for_anew_makes_no_second_letter)
{
	char put[512], *id;
	struct rule rules[] = {
		{"POST " POISON "/messages?", 1,
			service_says(put, sizeof(put), "201 Created", PUT_DONE)},
		{"DELETE " JOBS "/messages/" ID, 1, BUSY},
		/* the deletion was carried out, though the answer said otherwise */
		{"DELETE " JOBS "/messages/" ID, 1,
			ANSWER("404 Not Found", CODE("MessageNotFound"))},
		{0}};
	struct service s;

	service_init(&s, rules);
	CHECK_INT(bury(&s, &id), -EAGAIN);
	CHECK(!id);
	CHECK_INT(bury(&s, &id), 0);
	CHECK_STR(id, "dead-1");
	free(id);
	service_fini(&s);
}

TEST(a_burial_of_what_others_have_by_now_is_undone)
{
	char put[512], *id;
	struct rule rules[] = {{"POST " POISON "/messages?", 1, NO_QUEUE},
		{"PUT " POISON " ", 1, CREATED},
		{"POST " POISON "/messages?", 1,
			service_says(put, sizeof(put), "201 Created", PUT_DONE)},
		{"DELETE " JOBS "/messages/" ID, 1,
			ANSWER("400 Bad Request", CODE("PopReceiptMismatch"))},
		{"DELETE " POISON "/messages/dead-1?popreceipt=put ", 1, DELETED}, {0}};
	struct service s;

	service_init(&s, rules);
	CHECK_INT(bury(&s, &id), -ESTALE);
	CHECK(!id);
	service_fini(&s);
}

/* ---- a queue that several miss ---- */

static void count_answers(struct driver_req *req)
{
	(*(unsigned *)req->arg)++;
}

TEST(one_makes_the_queue_for_all)
{
	char put[512], none[256];
	struct rule rules[] = {{"POST ", 2, NO_QUEUE}, {"PUT " JOBS " ", 1, NULL},
		{"GET " POISON, 1,
			service_says(
				none, sizeof(none), "200 OK", "<QueueMessagesList/>")},
		{"POST ", 2, service_says(put, sizeof(put), "201 Created", PUT_DONE)},
		{0}};
	struct driver_req list = {.op = DRIVER_DEAD_LIST}, reqs[2] = {0};
	struct blob *body = ask_blob("x");
	unsigned done = 0;
	struct service s;

	service_init(&s, rules);
	for (unsigned i = 0; i < 2; i++) {
		reqs[i].op = DRIVER_SEND;
		reqs[i].u.send.body = body;
		reqs[i].done = count_answers;
		reqs[i].arg = &done;
		driver_submit(s.a.b.d, &reqs[i]);
		CHECK(bed_wait(&s.a.b, &s.hs.requests, 2 + i));
	}
	list.u.dead.max = 1; /* when this is answered, what was before has come */
	CHECK_INT(ask(&s.a.b, &list), 0);
	CHECK_INT(done, 0);
	hs_say(s.silent, CREATED);
	CHECK(bed_wait(&s.a.b, &done, 2));
	CHECK_INT(reqs[0].err + reqs[1].err, 0);
	for (int i = 0; i < 2; i++)
		driver_req_fini(&reqs[i]);
	driver_req_fini(&list);
	blob_unref(body);
	service_fini(&s);
}

/* ---- networks ---- */

TEST(a_deletion_that_was_sent_twice_is_done)
{
	struct rule rules[] = {{"DELETE ", 1, DELETED}, {"DELETE ", 1, RESET},
		{"DELETE ", 1, ANSWER("404 Not Found", CODE("MessageNotFound"))}, {0}};
	struct service s;

	service_init(&s, rules);
	CHECK_INT(service_settle(&s, SETTLE_DELETE), 0);
	CHECK_INT(service_settle(&s, SETTLE_DELETE), 0);
	service_fini(&s);
}

TEST(a_release_that_was_sent_twice_is_done)
{
	struct rule rules[] = {{"DELETE ", 1, DELETED}, {"PUT ", 1, RESET},
		{"PUT ", 1, ANSWER("404 Not Found", CODE("MessageNotFound"))},
		{"PUT ", 1, RESET},
		{"PUT ", 1, ANSWER("404 Not Found", CODE("MessageNotFound"))}, {0}};
	struct service s;

	service_init(&s, rules);
	CHECK_INT(service_settle(&s, SETTLE_DELETE), 0);
	CHECK_INT(service_settle(&s, SETTLE_RELEASE), 0);
	/* Whose renewal that was, has no receipt any more. */
	CHECK_INT(service_settle(&s, SETTLE_RENEW), -ESTALE);
	service_fini(&s);
}

TEST(what_is_no_answer_of_the_service)
{
	char page[512], message[512];
	struct rule rules[] = {{"GET ", 1,
				       service_says(page, sizeof(page), "200 OK",
					       "<html>Sign in</html>")},
		{"GET ", 1,
			service_says(message, sizeof(message), "200 OK",
				"<QueueMessagesList><QueueMessage><MessageId>a</MessageId>" WHEN
				"</QueueMessage></QueueMessagesList>")},
		{"GET ", 1, ANSWER("302 Found", "Location: http://127.0.0.1/\r\n")},
		{"GET ", 1, "SSH-2.0-x\r\n\r\n"}, {"HEAD ", 1, ANSWER("200 OK", "")},
		{0}};
	struct driver_req depth = {.op = DRIVER_DEPTH}, got;
	struct service s;

	service_init(&s, rules);
	for (int i = 0; i < 4; i++) {
		got = service_receive(&s);
		CHECK_INT(got.err, -EPROTO);
		CHECK(got.detail[0] && !got.u.receive.msgs);
	}
	CHECK_INT(ask(&s.a.b, &depth), -EPROTO);
	service_fini(&s);
}

TEST(nobody_is_there)
{
	struct rule rules[] = {{0}};
	struct service s;
	struct driver_req got, depth = {.op = DRIVER_DEPTH};

	service_init(&s, rules);
	hs_refuse(&s.hs);
	got = service_receive(&s);
	CHECK_INT(got.err, -EAGAIN);
	CHECK(got.detail[0]);
	CHECK_INT(ask(&s.a.b, &depth), -EAGAIN);
	CHECK_INT(azure_try_send(&s.a, "x", 1), -EAGAIN);
	service_fini(&s);
}

static void count_done(struct driver_req *req)
{
	CHECK_INT(req->err, -EAGAIN);
	(*(unsigned *)req->arg)++;
}

/* Everything is under way when it is closed: in whatever step. */
TEST(close_answers_all_though_nobody_else_does)
{
	static const enum driver_op ops[] = {DRIVER_RECEIVE, DRIVER_SEND, DRIVER_DEPTH,
		DRIVER_SETTLE, DRIVER_DEAD_LIST, DRIVER_DEAD_READ, DRIVER_SEND};
	struct rule rules[] = {{"POST " JOBS "/messages", 1, NO_QUEUE},
		{"POST " JOBS "/messages", 1, NULL}, {"PUT " JOBS " ", 1, NULL},
		{"GET ", 4, NULL}, {"HEAD ", 1, NULL}, {"DELETE ", 1, NULL}, {0}};
	struct settle it[4] = {{SETTLE_DELETE, .id = "1", .receipt = "r"},
		{SETTLE_RELEASE, .id = "1", .receipt = "r"}, /* waits for the first */
		{SETTLE_DISCARD, .id = "2"}, {SETTLE_REVIVE, .id = "2"}};
	struct blob *body = ask_blob("x");
	struct driver_req reqs[7] = {0};
	unsigned done = 0;
	struct service s;
	int64_t start;

	service_init(&s, rules);
	for (int i = 0; i < 7; i++) {
		reqs[i].op = ops[i];
		reqs[i].done = count_done;
		reqs[i].arg = &done;
	}
	reqs[0].u.receive.max = 1;
	reqs[1].u.send.body = reqs[6].u.send.body = body;
	reqs[3].u.settle.items = it;
	reqs[3].u.settle.n = 4;
	reqs[4].u.dead.max = 1;
	reqs[5].u.dead_read.id = "2";
	for (int i = 0; i < 7; i++)
		driver_submit(s.a.b.d, &reqs[i]);
	CHECK(bed_wait(&s.a.b, &s.hs.requests, 9));
	CHECK_INT(done, 0);
	start = bed_now();
	driver_close(s.a.b.d);
	CHECK_INT(done, 7);
	CHECK(bed_now() - start < NS_PER_S);
	for (int i = 0; i < 4; i++)
		CHECK_INT(it[i].err, -EAGAIN);
	for (int i = 0; i < 7; i++)
		driver_req_fini(&reqs[i]);
	blob_unref(body);
	s.a.b.d = NULL;
	service_fini(&s);
}
