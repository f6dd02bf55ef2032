/* SPDX-License-Identifier: MIT */
/* The driver for Azure Storage queues against Microsoft's emulator: messages. */
#include "azure_bed.h"

TEST(a_message_arrives_whole)
{
	struct driver_req send = {.op = DRIVER_SEND}, got;
	int64_t before = clock_mono(), wall = clock_wall();
	struct azure_bed a;
	struct driver_msg *m;

	azure_bed_init(&a, DRIVER_TEXT);
	send.u.send.given = "a name that it cannot carry";
	send.u.send.body = ask_blob("hello");
	CHECK_INT(ask(&a.b, &send), 0);
	CHECK_INT(send.u.send.body->refs, 1);
	CHECK(llabs(send.u.send.enqueued_ns - wall) < 60 * NS_PER_S);
	got = ask_receive(&a.b, 10);
	CHECK_INT(got.u.receive.n, 1);
	CHECK_INT(got.u.receive.next_due_ns, CLOCK_NEVER);
	m = &got.u.receive.msgs[0];
	CHECK_STR(m->id, send.u.send.id);
	CHECK(m->receipt && !m->given && !m->reason && !m->record);
	ask_body(m->body, "hello");
	CHECK_INT(m->size, 5);
	CHECK_INT(m->enqueued_ns, send.u.send.enqueued_ns);
	CHECK(m->lease_until_ns >= before + LEASE_NS);
	CHECK(m->lease_until_ns <= clock_mono() + LEASE_NS);
	CHECK_INT(m->attempts, 0);
	CHECK_INT(m->dequeue_count, 1);
	ask_depth(&a.b, 1, 0, 0); /* it counts the leased ones too */
	CHECK_INT(azure_settle_as(&a, SETTLE_DELETE, m, 0), 0);
	ask_depth(&a.b, 0, 0, 0);
	blob_unref(send.u.send.body);
	driver_req_fini(&send);
	driver_req_fini(&got);
	azure_bed_fini(&a);
}

TEST(a_missing_queue_is_made_when_it_is_needed)
{
	static const enum driver_op first[] = {DRIVER_RECEIVE, DRIVER_SEND, DRIVER_DEPTH};

	for (int i = 0; i < 3; i++) {
		struct driver_req req = {.op = first[i]};
		struct blob *body = ask_blob("x");
		struct azure_bed a;

		azure_bed_init(&a, DRIVER_TEXT);
		if (first[i] == DRIVER_RECEIVE) {
			req.u.receive.max = 1;
			req.u.receive.lease_ns = NS_PER_S;
		}
		if (first[i] == DRIVER_SEND)
			req.u.send.body = body;
		CHECK_INT(driver_requests(a.b.d), 0); /* open asks nothing */
		CHECK_INT(ask(&a.b, &req), 0);
		CHECK_INT(driver_requests(a.b.d), first[i] == DRIVER_DEPTH ? 4 : 3);
		driver_req_fini(&req);
		blob_unref(body);
		azure_bed_fini(&a);
	}
}

static void count_done(struct driver_req *req)
{
	(*(unsigned *)req->arg)++;
}

/* All miss the queue, one makes it, none is lost. */
TEST(many_may_miss_the_queue_at_once)
{
	struct driver_req reqs[8] = {0};
	struct blob *body = ask_blob("x");
	unsigned done = 0;
	struct azure_bed a;

	azure_bed_init(&a, DRIVER_TEXT);
	for (int i = 0; i < 8; i++) {
		reqs[i] = (struct driver_req){
			.op = DRIVER_SEND, .done = count_done, .arg = &done};
		reqs[i].u.send.body = body;
		driver_submit(a.b.d, &reqs[i]);
	}
	CHECK_INT(done, 0);
	CHECK(bed_wait(&a.b, &done, 8));
	for (int i = 0; i < 8; i++) {
		CHECK_INT(reqs[i].err, 0);
		driver_req_fini(&reqs[i]);
	}
	ask_depth(&a.b, 8, 0, 0);
	blob_unref(body);
	azure_bed_fini(&a);
}

TEST(without_create_a_missing_queue_stays_missing)
{
	struct driver_req receive = {.op = DRIVER_RECEIVE};
	struct driver_req depth = {.op = DRIVER_DEPTH};
	struct azure_bed a;

	azure_bed_init(&a, DRIVER_TEXT);
	driver_close(a.b.d);
	a.p.create = false;
	a.b.d = azure_open(&a);
	receive.u.receive.max = 1;
	CHECK_INT(ask(&a.b, &receive), -ENOENT);
	CHECK(strstr(receive.detail, "QueueNotFound"));
	CHECK_INT(ask(&a.b, &depth), -ENOENT);
	CHECK_INT(azure_try_send(&a, "x", 1), -ENOENT);
	azure_bed_fini(&a);
}

/* A body goes through and is deleted. */
static void through(struct azure_bed *a, const void *data, size_t len)
{
	struct driver_req got;

	CHECK(driver_carries(a->b.d, data, len));
	CHECK_INT(azure_try_send(a, data, len), 0);
	got = ask_receive(&a->b, 2);
	CHECK_INT(got.u.receive.n, 1);
	CHECK_INT(got.u.receive.msgs[0].size, len);
	CHECK_INT(got.u.receive.msgs[0].body->len, len);
	CHECK(len == 0 || memcmp(got.u.receive.msgs[0].body->data, data, len) == 0);
	CHECK_INT(azure_settle_as(a, SETTLE_DELETE, &got.u.receive.msgs[0], 0), 0);
	driver_req_fini(&got);
}

static void fill(char *data, size_t len, const char *with)
{
	for (size_t i = 0; i < len; i++)
		data[i] = with[i % strlen(with)];
}

TEST(text_of_all_kinds_and_sizes)
{
	static const char odd[] =
		" <a>&amp;]]>&\t\r\n\r\r\n\n \xc3\xa4\xf0\x9f\x90\xb8 \r";
	struct azure_bed a;
	char *data;
	size_t max;

	azure_bed_init(&a, DRIVER_TEXT);
	max = driver_max_body(a.b.d);
	CHECK_INT(max, 65536);
	data = malloc(max + 1);
	CHECK(data);
	through(&a, "", 0);
	through(&a, "x", 1);
	through(&a, "\r", 1);
	through(&a, odd, strlen(odd));
	fill(data, max + 1, "abcdefg");
	through(&a, data, max);
	CHECK_INT(azure_try_send(&a, data, max + 1), -EMSGSIZE);
	free(data);
	azure_bed_fini(&a);
}

TEST(bytes_of_all_kinds_and_sizes_in_base64)
{
	struct azure_bed a;
	char *data;
	size_t max;

	azure_bed_init(&a, DRIVER_BASE64);
	max = driver_max_body(a.b.d);
	CHECK_INT(max, 49152);
	data = malloc(max + 1);
	CHECK(data);
	for (size_t i = 0; i <= max; i++)
		data[i] = (char)(i * 7 + i / 251);
	for (size_t len = 0; len < 5; len++)
		through(&a, data, len);
	through(&a, data, 4096);
	through(&a, data, max);
	CHECK_INT(azure_try_send(&a, data, max + 1), -EMSGSIZE);
	free(data);
	azure_bed_fini(&a);
}

TEST(what_text_cannot_carry_is_refused_without_asking)
{
	static const char *const bad[] = {
		"\x01", "\xff", "\xc3", "\xed\xa0\x80", "\xef\xbf\xbf"};
	struct azure_bed a;

	azure_bed_init(&a, DRIVER_TEXT);
	for (int i = 0; i < 5; i++) {
		CHECK(!driver_carries(a.b.d, bad[i], strlen(bad[i])));
		CHECK_INT(azure_try_send(&a, bad[i], strlen(bad[i])), -EILSEQ);
	}
	CHECK_INT(azure_try_send(&a, "a\0b", 3), -EILSEQ);
	CHECK_INT(driver_requests(a.b.d), 0);
	azure_bed_fini(&a);
}

/* Others put what they like into the queue. */
TEST(a_text_that_is_no_base64_is_handed_on_as_it_is)
{
	struct driver_req got;
	struct azure_bed a;

	azure_bed_init(&a, DRIVER_TEXT);
	CHECK_INT(azure_try_send(&a, "not base64!", 11), 0);
	driver_close(a.b.d);
	a.p.encoding = DRIVER_BASE64;
	a.b.d = azure_open(&a);
	got = ask_receive(&a.b, 1);
	CHECK_INT(got.u.receive.n, 1);
	ask_body(got.u.receive.msgs[0].body, "not base64!");
	driver_req_fini(&got);
	azure_bed_fini(&a);
}

TEST(as_many_as_asked_for_and_no_more_than_there_are)
{
	struct driver_req got, bytes = {.op = DRIVER_RECEIVE};
	struct driver_req none = {.op = DRIVER_RECEIVE};
	struct azure_bed a;

	azure_bed_init(&a, DRIVER_TEXT);
	azure_send_n(&a, 38);
	CHECK_INT(ask(&a.b, &none), -EINVAL);
	got = ask_receive(&a.b, 3);
	CHECK_INT(got.u.receive.n, 3);
	driver_req_fini(&got);
	got = ask_receive(&a.b, 100);
	CHECK_INT(got.u.receive.n, 32);
	driver_req_fini(&got);
	bytes.u.receive.max = 10;
	bytes.u.receive.max_bytes = 1;
	bytes.u.receive.lease_ns = LEASE_NS;
	CHECK_INT(ask(&a.b, &bytes), 0);
	CHECK_INT(bytes.u.receive.n, 1);
	driver_req_fini(&bytes);
	got = ask_receive(&a.b, 32);
	CHECK_INT(got.u.receive.n, 2);
	driver_req_fini(&got);
	got = ask_receive(&a.b, 32);
	CHECK_INT(got.u.receive.n, 0);
	driver_req_fini(&got);
	azure_bed_fini(&a);
}

TEST(released_it_comes_again)
{
	struct driver_req got, again;
	struct azure_bed a;

	azure_bed_init(&a, DRIVER_TEXT);
	CHECK_INT(azure_try_send(&a, "x", 1), 0);
	got = ask_receive(&a.b, 1);
	CHECK_INT(azure_settle_as(&a, SETTLE_RELEASE, &got.u.receive.msgs[0], 0), 0);
	again = ask_receive(&a.b, 1);
	CHECK_INT(again.u.receive.n, 1);
	CHECK_STR(again.u.receive.msgs[0].id, got.u.receive.msgs[0].id);
	CHECK_INT(again.u.receive.msgs[0].dequeue_count, 2);
	CHECK_INT(
		azure_settle_as(&a, SETTLE_RELEASE, &got.u.receive.msgs[0], 0), -ESTALE);
	CHECK_INT(azure_settle_as(
			  &a, SETTLE_RELEASE, &again.u.receive.msgs[0], 700 * NS_PER_MS),
		0);
	driver_req_fini(&got);
	got = ask_receive(&a.b, 1);
	CHECK_INT(got.u.receive.n, 0); /* a second, rounded up */
	driver_req_fini(&got);
	got = azure_await(&a, 1);
	CHECK_STR(got.u.receive.msgs[0].id, again.u.receive.msgs[0].id);
	driver_req_fini(&got);
	driver_req_fini(&again);
	azure_bed_fini(&a);
}

TEST(a_renewed_lease_has_another_receipt)
{
	struct settle it = {.op = SETTLE_RENEW, .delay_ns = LEASE_NS};
	struct driver_req got;
	struct driver_msg *m;
	struct azure_bed a;
	int64_t before;

	azure_bed_init(&a, DRIVER_TEXT);
	CHECK_INT(azure_try_send(&a, "x", 1), 0);
	got = ask_receive(&a.b, 1);
	m = &got.u.receive.msgs[0];
	it.id = m->id;
	it.receipt = m->receipt;
	before = clock_mono();
	CHECK_INT(azure_settle_one(&a, &it), 0);
	CHECK(it.new_receipt && strcmp(it.new_receipt, m->receipt) != 0);
	CHECK(it.lease_until_ns >= before + LEASE_NS);
	CHECK(it.lease_until_ns <= clock_mono() + LEASE_NS);
	CHECK_INT(azure_settle_as(&a, SETTLE_RENEW, m, LEASE_NS), -ESTALE);
	CHECK_INT(azure_settle_as(&a, SETTLE_DELETE, m, 0), -ESTALE);
	free(m->receipt);
	m->receipt = it.new_receipt;
	CHECK_INT(azure_settle_as(&a, SETTLE_DELETE, m, 0), 0);
	CHECK_INT(azure_settle_as(&a, SETTLE_DELETE, m, 0), -ENOENT);
	CHECK_INT(azure_settle_as(&a, SETTLE_RENEW, m, LEASE_NS), -ESTALE);
	driver_req_fini(&got);
	azure_bed_fini(&a);
}

TEST(a_lease_that_ran_out_is_lost_when_others_have_it)
{
	struct driver_req old = {.op = DRIVER_RECEIVE}, new;
	struct azure_bed a;

	azure_bed_init(&a, DRIVER_TEXT);
	CHECK_INT(azure_try_send(&a, "x", 1), 0);
	old.u.receive.max = 1;
	old.u.receive.max_bytes = 1 << 20;
	old.u.receive.lease_ns = 1; /* a second, rounded up */
	CHECK_INT(ask(&a.b, &old), 0);
	CHECK_INT(old.u.receive.n, 1);
	CHECK(old.u.receive.msgs[0].lease_until_ns > clock_mono());
	new = azure_await(&a, 1);
	CHECK(old.u.receive.msgs[0].lease_until_ns <= clock_mono() + NS_PER_S);
	CHECK_INT(azure_settle_as(&a, SETTLE_DELETE, &old.u.receive.msgs[0], 0), -ESTALE);
	CHECK_INT(azure_settle_as(&a, SETTLE_BURY, &old.u.receive.msgs[0], 0), -ESTALE);
	CHECK_INT(azure_settle_as(&a, SETTLE_DELETE, &new.u.receive.msgs[0], 0), 0);
	ask_depth(&a.b, 0, 0, 0); /* nor was it buried */
	driver_req_fini(&old);
	driver_req_fini(&new);
	azure_bed_fini(&a);
}

TEST(a_whole_batch)
{
	struct driver_req req = {.op = DRIVER_SETTLE}, got[4];
	struct settle items[4 * 32] = {0};
	struct azure_bed a;

	azure_bed_init(&a, DRIVER_TEXT);
	azure_send_n(&a, 128);
	for (unsigned i = 0; i < 4; i++) {
		got[i] = ask_receive(&a.b, 32);
		CHECK_INT(got[i].u.receive.n, 32);
		for (unsigned k = 0; k < 32; k++)
			items[32 * i + k] = (struct settle){SETTLE_DELETE,
				.id = got[i].u.receive.msgs[k].id,
				.receipt = got[i].u.receive.msgs[k].receipt};
	}
	req.u.settle.items = items;
	req.u.settle.n = 128;
	CHECK_INT(ask(&a.b, &req), 0);
	for (int i = 0; i < 128; i++)
		CHECK_INT(items[i].err, 0);
	ask_depth(&a.b, 0, 0, 0);
	for (int i = 0; i < 4; i++)
		driver_req_fini(&got[i]);
	azure_bed_fini(&a);
}

TEST(items_are_answered_each_and_of_one_message_in_their_order)
{
	struct driver_req req = {.op = DRIVER_SETTLE}, got;
	struct settle it[8] = {0};
	struct driver_msg *m;
	struct azure_bed a;

	azure_bed_init(&a, DRIVER_TEXT);
	azure_send_n(&a, 2);
	got = ask_receive(&a.b, 2);
	m = got.u.receive.msgs;
	it[0] = (struct settle){SETTLE_DELETE, .id = m[0].id, .receipt = m[0].receipt};
	it[1] = it[0];
	it[2] = (struct settle){SETTLE_RELEASE, .id = m[1].id, .receipt = m[1].receipt};
	it[3] = (struct settle){SETTLE_CLAIM, .id = m[1].id, .receipt = m[1].receipt};
	it[4] = (struct settle){SETTLE_DELETE, .id = "../x", .receipt = "1"};
	it[5] = (struct settle){SETTLE_DELETE, .id = "17", .receipt = "1 "};
	it[6] = (struct settle){SETTLE_BURY, .id = "17", .receipt = "1"}; /* no body */
	it[7] = (struct settle){SETTLE_DELETE,
		.id = "b4f03bf0-be68-41ca-bd76-dff55b54a0dd", .receipt = m[0].receipt};
	req.u.settle.items = it;
	req.u.settle.n = 8;
	CHECK_INT(ask(&a.b, &req), 0);
	CHECK_INT(it[0].err, 0);
	CHECK_INT(it[1].err, -ENOENT);
	CHECK_INT(it[2].err, 0);
	for (int i = 3; i < 7; i++)
		CHECK_INT(it[i].err, -EINVAL);
	CHECK_INT(it[7].err, -ENOENT);
	driver_req_fini(&got);
	req.u.settle.n = 0;
	CHECK_INT(ask(&a.b, &req), 0);
	azure_bed_fini(&a);
}

static void note_order(struct driver_req *req)
{
	unsigned *done = req->arg;

	req->retry_after_ns = ++*done;
}

TEST(a_sync_ends_after_what_was_before_it)
{
	struct driver_req reqs[6] = {0}, alone = {.op = DRIVER_SYNC};
	struct blob *body = ask_blob("x");
	unsigned done = 0;
	struct azure_bed a;

	azure_bed_init(&a, DRIVER_TEXT);
	CHECK_INT(ask(&a.b, &alone), 0);
	CHECK_INT(driver_requests(a.b.d), 0);
	for (int i = 0; i < 6; i++) {
		reqs[i] = (struct driver_req){.op = i == 4 ? DRIVER_SYNC : DRIVER_SEND,
			.done = note_order,
			.arg = &done};
		if (i != 4)
			reqs[i].u.send.body = body;
		driver_submit(a.b.d, &reqs[i]);
	}
	CHECK_INT(done, 0);
	CHECK(bed_wait(&a.b, &done, 6));
	for (int i = 0; i < 4; i++)
		CHECK(reqs[i].retry_after_ns < reqs[4].retry_after_ns);
	for (int i = 0; i < 6; i++)
		driver_req_fini(&reqs[i]);
	blob_unref(body);
	azure_bed_fini(&a);
}

TEST(a_wrong_key_is_refused)
{
	struct driver_req req = {.op = DRIVER_RECEIVE};
	struct azure_bed a;

	azure_bed_init(&a, DRIVER_TEXT);
	driver_close(a.b.d);
	setenv("AZURE_STORAGE_CONNECTION_STRING",
		"AccountName=" AZURITE_ACCOUNT ";AccountKey=d3Jvbmc=", 1);
	a.b.d = azure_open(&a);
	req.u.receive.max = 1;
	CHECK_INT(ask(&a.b, &req), -EACCES);
	CHECK(strncmp(req.detail, "403 ", 4) == 0);
	CHECK(!strstr(req.detail, "d3Jvbmc"));
	azure_bed_fini(&a);
}

TEST(what_is_no_such_source_is_not_opened)
{
	struct azure_bed a;
	struct driver *d;
	char err[256];

	azure_bed_prepare(&a, "azure-queue+http://127.0.0.1:1/" AZURITE_ACCOUNT "/No");
	CHECK_INT(driver_open(&azure_queue_driver_ops, &a.p, &d, err, sizeof(err)),
		-EINVAL);
	CHECK(strstr(err, "lower-case"));
	snprintf(a.source, sizeof(a.source), "%s",
		"azure-queue+http://127.0.0.1:1/otheraccount/jobs");
	CHECK(driver_open(&azure_queue_driver_ops, &a.p, &d, err, sizeof(err)) < 0);
	CHECK(err[0] && !strstr(err, "d3Jvbmc"));
	azure_bed_fini(&a);
}
