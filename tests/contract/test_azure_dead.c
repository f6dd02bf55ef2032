/* SPDX-License-Identifier: MIT */
/* The driver for Azure Storage queues against Microsoft's emulator: dead letters. */
#include "azure_bed.h"

/* Sends TEXT and buries it; the id of the dead letter is the caller's to free. */
static char *send_and_bury(struct azure_bed *a, const char *text)
{
	struct settle it = {.op = SETTLE_BURY, .reason = "why"};
	struct driver_req got;

	CHECK_INT(azure_try_send(a, text, strlen(text)), 0);
	got = azure_await(a, 1);
	it.id = got.u.receive.msgs[0].id;
	it.receipt = got.u.receive.msgs[0].receipt;
	it.body = got.u.receive.msgs[0].body;
	CHECK_INT(azure_settle_one(a, &it), 0);
	CHECK(it.new_id && strcmp(it.new_id, it.id) != 0);
	driver_req_fini(&got);
	return it.new_id;
}

static struct driver_req list(struct azure_bed *a, unsigned max)
{
	struct driver_req req = {.op = DRIVER_DEAD_LIST};

	req.u.dead.max = max;
	CHECK_INT(ask(&a->b, &req), 0);
	return req;
}

static unsigned count(struct azure_bed *a)
{
	struct driver_req req = list(a, 100);
	unsigned n = req.u.dead.n;

	driver_req_fini(&req);
	return n;
}

static int settle_dead(struct azure_bed *a, enum settle_op op, const char *id)
{
	struct settle it = {.op = op, .id = id};

	return azure_settle_one(a, &it);
}

static int read_dead(struct azure_bed *a, const char *id, const char *text)
{
	struct driver_req req = {.op = DRIVER_DEAD_READ};

	req.u.dead_read.id = id;
	if (ask(&a->b, &req) == 0)
		ask_body(req.u.dead_read.body, text);
	driver_req_fini(&req);
	return req.err;
}

TEST(no_burial_no_dead_letters)
{
	struct azure_bed a;

	azure_bed_init(&a, DRIVER_TEXT);
	CHECK_INT(count(&a), 0);
	CHECK_INT(read_dead(&a, "17", ""), -ENOENT);
	CHECK_INT(settle_dead(&a, SETTLE_DISCARD, "17"), -ENOENT);
	CHECK_INT(settle_dead(&a, SETTLE_REVIVE, "17"), -ENOENT);
	CHECK_INT(settle_dead(&a, SETTLE_REVIVE, "../17"), -EINVAL);
	ask_depth(&a.b, 0, 0, 0);
	azure_bed_fini(&a);
}

TEST(the_buried_are_listed_and_read)
{
	struct driver_req dead;
	struct azure_bed a;
	char *first, *second;

	azure_bed_init(&a, DRIVER_BASE64);
	first = send_and_bury(&a, "one\x01");
	second = send_and_bury(&a, "two");
	ask_depth(&a.b, 0, 0, 2);
	dead = list(&a, 1);
	CHECK_INT(dead.u.dead.n, 1);
	CHECK_STR(dead.u.dead.msgs[0].id, first);
	CHECK(!dead.u.dead.msgs[0].receipt && !dead.u.dead.msgs[0].body);
	CHECK_INT(dead.u.dead.msgs[0].size, 4);
	driver_req_fini(&dead);
	CHECK_INT(read_dead(&a, second, "two"), 0); /* not among those listed */
	CHECK_INT(read_dead(&a, first, "one\x01"), 0);
	free(first);
	free(second);
	azure_bed_fini(&a);
}

TEST(what_was_listed_is_read_without_asking)
{
	struct azure_bed a;
	uint64_t requests;
	char *id;

	azure_bed_init(&a, DRIVER_TEXT);
	id = send_and_bury(&a, "body");
	CHECK_INT(count(&a), 1);
	requests = driver_requests(a.b.d);
	CHECK_INT(read_dead(&a, id, "body"), 0);
	CHECK_INT(driver_requests(a.b.d), requests);
	free(id);
	azure_bed_fini(&a);
}

TEST(discarded_it_is_gone_for_good)
{
	struct azure_bed a;
	char *id;

	azure_bed_init(&a, DRIVER_TEXT);
	id = send_and_bury(&a, "body");
	CHECK_INT(count(&a), 1);
	CHECK_INT(settle_dead(&a, SETTLE_DISCARD, id), 0);
	CHECK_INT(settle_dead(&a, SETTLE_DISCARD, id), -ENOENT);
	CHECK_INT(read_dead(&a, id, "body"), -ENOENT);
	CHECK_INT(count(&a), 0);
	ask_depth(&a.b, 0, 0, 0);
	free(id);
	azure_bed_fini(&a);
}

TEST(revived_it_waits_again)
{
	struct driver_req got;
	struct azure_bed a;
	char *id;

	azure_bed_init(&a, DRIVER_TEXT);
	id = send_and_bury(&a, " <body>\r\n");
	CHECK_INT(settle_dead(&a, SETTLE_REVIVE, id), 0);
	CHECK_INT(settle_dead(&a, SETTLE_REVIVE, id), -ENOENT);
	ask_depth(&a.b, 1, 0, 0);
	got = ask_receive(&a.b, 2);
	CHECK_INT(got.u.receive.n, 1);
	ask_body(got.u.receive.msgs[0].body, " <body>\r\n");
	CHECK_INT(got.u.receive.msgs[0].dequeue_count, 1);
	driver_req_fini(&got);
	free(id);
	azure_bed_fini(&a);
}

TEST(a_message_that_is_gone_is_not_buried)
{
	struct driver_req got;
	struct azure_bed a;

	azure_bed_init(&a, DRIVER_TEXT);
	CHECK_INT(azure_try_send(&a, "x", 1), 0);
	got = ask_receive(&a.b, 1);
	CHECK_INT(azure_settle_as(&a, SETTLE_DELETE, &got.u.receive.msgs[0], 0), 0);
	CHECK_INT(azure_settle_as(&a, SETTLE_BURY, &got.u.receive.msgs[0], 0), -ENOENT);
	CHECK_INT(count(&a), 0);
	driver_req_fini(&got);
	azure_bed_fini(&a);
}

/* Too long to be base64: it must not become that on its way. */
TEST(a_long_text_of_others_is_buried_as_it_is)
{
	struct driver_req got, dead;
	struct azure_bed a;
	char text[60001];

	azure_bed_init(&a, DRIVER_TEXT);
	memset(text, '!', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	CHECK_INT(azure_try_send(&a, text, sizeof(text) - 1), 0);
	driver_close(a.b.d);
	a.p.encoding = DRIVER_BASE64;
	a.b.d = azure_open(&a);
	got = ask_receive(&a.b, 1);
	CHECK_INT(azure_settle_as(&a, SETTLE_BURY, &got.u.receive.msgs[0], 0), 0);
	dead = list(&a, 1);
	CHECK_INT(dead.u.dead.n, 1);
	CHECK_INT(read_dead(&a, dead.u.dead.msgs[0].id, text), 0);
	driver_req_fini(&dead);
	driver_req_fini(&got);
	azure_bed_fini(&a);
}

#define MANY 40
/* Of so many: what a hunt must go through pages for. */
#define BURIED 50

/* Those not wanted are there at once, and nothing is found twice or not at all. */
TEST(many_at_once)
{
	struct driver_req req = {.op = DRIVER_SETTLE};
	struct settle items[MANY + 1] = {0};
	char *ids[BURIED];
	struct azure_bed a;
	int64_t start;

	azure_bed_init(&a, DRIVER_TEXT);
	for (int i = 0; i < BURIED; i++)
		ids[i] = send_and_bury(&a, "x");
	for (int i = 0; i < MANY; i++) /* not the first ones */
		items[i] = (struct settle){i % 2 ? SETTLE_DISCARD : SETTLE_REVIVE,
			.id = ids[BURIED - 1 - i]};
	items[MANY] = (struct settle){SETTLE_DISCARD, .id = "17"};
	req.u.settle.items = items;
	req.u.settle.n = MANY + 1;
	CHECK_INT(ask(&a.b, &req), 0);
	for (int i = 0; i < MANY; i++)
		CHECK_INT(items[i].err, 0);
	CHECK_INT(items[MANY].err, -ENOENT);
	for (int i = 0; i < BURIED; i++)
		free(ids[i]);
	CHECK_INT(settle_dead(&a, SETTLE_DISCARD, "17"), -ENOENT);
	start = bed_now();
	while (count(&a) != BURIED - MANY)
		CHECK(bed_pause(start));
	ask_depth(&a.b, MANY / 2, 0, BURIED - MANY);
	azure_bed_fini(&a);
}

static void count_done(struct driver_req *req)
{
	(*(unsigned *)req->arg)++;
}

/* Two hunts would hide letters from each other. */
TEST(requests_at_the_same_time)
{
	struct driver_req reqs[6] = {0};
	struct settle items[6] = {0};
	char *ids[6];
	unsigned done = 0;
	struct azure_bed a;

	azure_bed_init(&a, DRIVER_TEXT);
	for (int i = 0; i < 6; i++)
		ids[i] = send_and_bury(&a, "x");
	for (int i = 0; i < 6; i++) {
		items[i] = (struct settle){SETTLE_DISCARD, .id = ids[5 - i]};
		reqs[i] = (struct driver_req){
			.op = DRIVER_SETTLE, .done = count_done, .arg = &done};
		reqs[i].u.settle.items = &items[i];
		reqs[i].u.settle.n = 1;
		driver_submit(a.b.d, &reqs[i]);
		if (i == 3) /* the rest comes while a hunt is under way */
			CHECK(bed_wait(&a.b, &done, 1));
	}
	CHECK(bed_wait(&a.b, &done, 6));
	for (int i = 0; i < 6; i++)
		CHECK_INT(items[i].err, 0);
	for (int i = 0; i < 6; i++)
		free(ids[i]);
	ask_depth(&a.b, 0, 0, 0);
	azure_bed_fini(&a);
}

/* The other queue is asked after a change here, and else once in ten minutes. */
TEST(dead_letters_are_counted_when_they_can_have_changed)
{
	struct azure_bed a;
	uint64_t requests;
	char *id;

	azure_bed_init(&a, DRIVER_TEXT);
	id = send_and_bury(&a, "x");
	ask_depth(&a.b, 0, 0, 1);
	requests = driver_requests(a.b.d);
	ask_depth(&a.b, 0, 0, 1);
	CHECK_INT(driver_requests(a.b.d), requests + 1);
	CHECK_INT(settle_dead(&a, SETTLE_DISCARD, id), 0);
	requests = driver_requests(a.b.d);
	ask_depth(&a.b, 0, 0, 0);
	CHECK_INT(driver_requests(a.b.d), requests + 2);
	free(id);
	azure_bed_fini(&a);
}
