/* SPDX-License-Identifier: MIT */
/* Receive, settle, send, depth: what every driver does. The clocks stand still
 * unless a test moves them. */
#include "ask_settle.h"

#define WALL_NS INT64_C(1795147200123456000)

__attribute__((constructor)) static void stop_the_clocks(void)
{
	clock_fake(1000 * NS_PER_S, WALL_NS);
}

CONTRACT(an_empty_queue_gives_nothing, 0)
{
	struct driver_req got = ask_receive(b, 10);

	CHECK_INT(got.u.receive.n, 0);
	CHECK_INT(got.u.receive.next_due_ns, CLOCK_NEVER);
	driver_req_fini(&got);
	ask_depth(b, 0, 0, 0);
}

CONTRACT(a_message_arrives_whole, 0)
{
	struct driver_req send = {.op = DRIVER_SEND};
	struct driver_req got;
	struct driver_msg *m;

	send.u.send.given = "ORDERS 4711.xml";
	send.u.send.body = ask_blob("hello");
	CHECK_INT(ask(b, &send), 0);
	CHECK_INT(send.u.send.body->refs, 1);
	got = ask_receive(b, 10);
	CHECK_INT(got.u.receive.n, 1);
	m = &got.u.receive.msgs[0];
	CHECK_STR(m->id, send.u.send.id);
	if (bed_can(b, DRIVER_NAMES))
		CHECK_STR(m->given, "ORDERS 4711.xml");
	CHECK(m->receipt && !m->reason && !m->record);
	ask_body(m->body, "hello");
	CHECK_INT(m->size, 5);
	CHECK_INT(m->enqueued_ns, send.u.send.enqueued_ns);
	CHECK_INT(m->enqueued_ns % 1000, 0);
	CHECK_INT(m->lease_until_ns, clock_mono() + b->lease_ns);
	CHECK_INT(m->attempts, 0);
	CHECK_INT(m->dequeue_count, 1);
	blob_unref(send.u.send.body);
	driver_req_fini(&send);
	driver_req_fini(&got);
	ask_depth(b, 0, 1, 0);
}

CONTRACT(messages_come_in_the_order_of_sending, BED_ORDER)
{
	struct driver_req got;
	char text[16];

	for (int i = 0; i < 20; i++) {
		snprintf(text, sizeof(text), "%d", i);
		free(ask_send(b, text));
	}
	got = ask_receive(b, 100);
	CHECK_INT(got.u.receive.n, 20);
	for (int i = 0; i < 20; i++) {
		snprintf(text, sizeof(text), "%d", i);
		ask_body(got.u.receive.msgs[i].body, text);
	}
	driver_req_fini(&got);
}

CONTRACT(enqueue_times_grow_though_the_clock_stands, BED_ORDER)
{
	struct driver_req got;

	for (int i = 0; i < 3; i++)
		free(ask_send(b, "x"));
	clock_fake(clock_mono(), clock_wall() - 3600 * NS_PER_S);
	free(ask_send(b, "after the clock was set back"));
	clock_fake(clock_mono(), clock_wall() + 3600 * NS_PER_S);
	got = ask_receive(b, 4);
	CHECK_INT(got.u.receive.n, 4);
	for (int i = 1; i < 4; i++)
		CHECK(got.u.receive.msgs[i].enqueued_ns >
			got.u.receive.msgs[i - 1].enqueued_ns);
	driver_req_fini(&got);
}

CONTRACT(a_leased_message_is_given_to_nobody_else, 0)
{
	struct driver_req first, second;

	free(ask_send(b, "a"));
	free(ask_send(b, "b"));
	first = ask_receive(b, 1);
	second = ask_receive(b, 10);
	CHECK_INT(second.u.receive.n, 1);
	CHECK(strcmp(first.u.receive.msgs[0].id, second.u.receive.msgs[0].id) != 0);
	if (bed_can(b, BED_ORDER))
		ask_body(second.u.receive.msgs[0].body, "b");
	driver_req_fini(&first);
	driver_req_fini(&second);
}

CONTRACT(a_receive_stops_before_its_bytes_but_gives_one, 0)
{
	struct driver_req req = {.op = DRIVER_RECEIVE};
	unsigned given;

	for (int i = 0; i < 4; i++)
		free(ask_send(b, "12345678"));
	req.u.receive.max = 10;
	req.u.receive.max_bytes = 20;
	req.u.receive.lease_ns = b->lease_ns;
	CHECK_INT(ask(b, &req), 0);
	given = req.u.receive.n;
	CHECK_INT(given, bed_can(b, BED_KNOWS_SIZES) ? 2 : 1);
	driver_req_fini(&req);
	req.u.receive.max_bytes = 1;
	CHECK_INT(ask(b, &req), 0);
	CHECK_INT(req.u.receive.n, 1);
	driver_req_fini(&req);
	ask_depth(b, 3 - given, 1 + given, 0);
}

CONTRACT(a_receive_of_none_makes_no_sense, 0)
{
	struct driver_req req = {.op = DRIVER_RECEIVE};

	CHECK_INT(ask(b, &req), -EINVAL);
}

CONTRACT(no_more_than_the_most_it_gives, 0)
{
	unsigned most = driver_ops_of(b->d)->max_receive;
	struct driver_req got;

	for (unsigned i = 0; i < most + 10; i++)
		free(ask_send(b, ""));
	got = ask_receive(b, most + 10);
	CHECK_INT(got.u.receive.n, most);
	driver_req_fini(&got);
}

CONTRACT(deleted_is_gone, 0)
{
	int gone = bed_can(b, BED_TELLS_GONE) ? -ENOENT : -ESTALE;
	struct driver_req got;

	bed_hurry(b);
	free(ask_send(b, "x"));
	got = ask_receive(b, 1);
	CHECK_INT(ask_settle(b, SETTLE_DELETE, &got.u.receive.msgs[0]), 0);
	ask_depth(b, 0, 0, 0);
	CHECK_INT(ask_settle(b, SETTLE_DELETE, &got.u.receive.msgs[0]), -ENOENT);
	CHECK_INT(ask_settle(b, SETTLE_RENEW, &got.u.receive.msgs[0]), gone);
	CHECK_INT(ask_release(b, &got.u.receive.msgs[0], 0, 1), gone);
	CHECK_INT(ask_bury(b, &got.u.receive.msgs[0], "why", 1), -ENOENT);
	driver_req_fini(&got);
	bed_pass(b, b->lease_ns);
	got = ask_receive(b, 1);
	CHECK_INT(got.u.receive.n, 0);
	driver_req_fini(&got);
}

CONTRACT(items_of_a_batch_are_answered_each, 0)
{
	struct driver_req got, req = {.op = DRIVER_SETTLE};
	struct settle it[3] = {0};
	struct driver_msg *m;

	free(ask_send(b, "a"));
	free(ask_send(b, "b"));
	got = ask_receive(b, 2);
	m = got.u.receive.msgs;
	it[0] = (struct settle){SETTLE_DELETE, .id = m[0].id, .receipt = m[0].receipt};
	it[1] = it[0];
	it[2] = (struct settle){SETTLE_DELETE, .id = m[1].id, .receipt = m[1].receipt};
	req.u.settle.items = it;
	req.u.settle.n = 3;
	CHECK_INT(ask(b, &req), 0);
	CHECK_INT(it[0].err, 0);
	CHECK_INT(it[1].err, -ENOENT);
	CHECK_INT(it[2].err, 0);
	driver_req_fini(&got);
	ask_depth(b, 0, 0, 0);
}

CONTRACT(what_is_no_id_or_receipt_makes_no_sense, 0)
{
	struct settle it = {.op = SETTLE_DELETE, .id = "../x", .receipt = "1"};
	struct settle it2 = {.op = SETTLE_DELETE, .id = "17", .receipt = "1 "};

	CHECK_INT(ask_settle_of(b, b->d, &it), -EINVAL);
	CHECK_INT(ask_settle_of(b, b->d, &it2), -EINVAL);
}

CONTRACT(a_lease_that_ran_out_is_lost, 0)
{
	struct driver_req old, new;

	bed_hurry(b);
	free(ask_send(b, "x"));
	old = ask_receive(b, 1);
	bed_pass(b, b->lease_ns - NS_PER_S);
	new = ask_receive(b, 1);
	CHECK_INT(new.u.receive.n, 0);
	CHECK_INT(new.u.receive.next_due_ns, CLOCK_NEVER); /* the own lease */
	driver_req_fini(&new);
	bed_pass(b, NS_PER_S);
	new = ask_receive(b, 1);
	CHECK_INT(new.u.receive.n, 1);
	CHECK_STR(new.u.receive.msgs[0].id, old.u.receive.msgs[0].id);
	CHECK_INT(new.u.receive.msgs[0].dequeue_count, 2);
	CHECK_INT(new.u.receive.msgs[0].attempts, 0);
	CHECK_INT(ask_settle(b, SETTLE_DELETE, &old.u.receive.msgs[0]), -ESTALE);
	CHECK_INT(ask_settle(b, SETTLE_RENEW, &old.u.receive.msgs[0]), -ESTALE);
	CHECK_INT(ask_release(b, &old.u.receive.msgs[0], 0, 0), -ESTALE);
	CHECK_INT(ask_bury(b, &old.u.receive.msgs[0], "why", 0), -ESTALE);
	CHECK_INT(ask_settle(b, SETTLE_DELETE, &new.u.receive.msgs[0]), 0);
	driver_req_fini(&old);
	driver_req_fini(&new);
	ask_depth(b, 0, 0, 0);
}

CONTRACT(a_late_delete_counts_while_nobody_else_has_it, 0)
{
	struct driver_req got;

	bed_hurry(b);
	free(ask_send(b, "x"));
	got = ask_receive(b, 1);
	bed_pass(b, b->lease_ns);
	CHECK_INT(ask_settle(b, SETTLE_DELETE, &got.u.receive.msgs[0]), 0);
	driver_req_fini(&got);
	ask_depth(b, 0, 0, 0);
}

CONTRACT(a_renewed_lease_lasts, 0)
{
	struct driver_req got, none;

	bed_hurry(b);
	free(ask_send(b, "x"));
	got = ask_receive(b, 1);
	bed_pass(b, b->lease_ns - NS_PER_S);
	CHECK_INT(ask_renew(b, &got.u.receive.msgs[0], 2 * b->lease_ns), 0);
	CHECK_INT(got.u.receive.msgs[0].lease_until_ns, clock_mono() + 2 * b->lease_ns);
	bed_pass(b, b->lease_ns);
	none = ask_receive(b, 1);
	CHECK_INT(none.u.receive.n, 0);
	CHECK_INT(ask_settle(b, SETTLE_DELETE, &got.u.receive.msgs[0]), 0);
	driver_req_fini(&none);
	driver_req_fini(&got);
}

CONTRACT(released_comes_again_at_its_old_place, 0)
{
	struct driver_req got, again;
	const struct driver_msg *old, *new;

	free(ask_send(b, "a"));
	free(ask_send(b, "b"));
	got = ask_receive(b, 1);
	old = &got.u.receive.msgs[0];
	CHECK_INT(ask_release(b, old, 0, 3), 0);
	ask_depth(b, 2, 0, 0);
	again = ask_receive(b, 2);
	CHECK_INT(again.u.receive.n, 2);
	new = ask_find(&again, old->id);
	CHECK(new == again.u.receive.msgs || !bed_can(b, BED_ORDER));
	CHECK_INT(new->enqueued_ns, old->enqueued_ns);
	CHECK_INT(new->attempts, bed_can(b, DRIVER_ATTEMPTS) ? 3 : 0);
	CHECK_INT(new->dequeue_count, 2);
	CHECK_INT(ask_settle(b, SETTLE_DELETE, old), -ESTALE);
	driver_req_fini(&got);
	driver_req_fini(&again);
}

CONTRACT(released_with_a_delay_waits_for_it, 0)
{
	struct driver_req got, later;

	bed_hurry(b);
	free(ask_send(b, "a"));
	got = ask_receive(b, 1);
	CHECK_INT(ask_release(b, &got.u.receive.msgs[0], b->lease_ns, 1), 0);
	ask_depth(b, 1, 0, 0);
	later = ask_receive(b, 1);
	CHECK_INT(later.u.receive.n, 0);
	CHECK_INT(later.u.receive.next_due_ns,
		bed_can(b, BED_TELLS_DUE) ? clock_mono() + b->lease_ns : CLOCK_NEVER);
	driver_req_fini(&later);
	bed_pass(b, b->lease_ns);
	later = ask_receive(b, 1);
	CHECK_INT(later.u.receive.n, 1);
	driver_req_fini(&later);
	driver_req_fini(&got);
}

CONTRACT(a_released_message_has_no_receipt_that_counts, 0)
{
	struct driver_req got;

	free(ask_send(b, "a"));
	got = ask_receive(b, 1);
	CHECK_INT(ask_release(b, &got.u.receive.msgs[0], 0, 0), 0);
	CHECK_INT(ask_settle(b, SETTLE_DELETE, &got.u.receive.msgs[0]), -ESTALE);
	ask_depth(b, 1, 0, 0);
	driver_req_fini(&got);
}

/* LEN bytes that are not all alike: letters, where D cannot carry others. */
static struct blob *body_of(const struct driver *d, size_t len)
{
	struct blob *body = blob_create(NULL, len);
	bool letters;

	CHECK(body);
	for (size_t i = 0; i < len; i++)
		body->data[i] = (unsigned char)(i * 7 + i / 251);
	letters = !driver_carries(d, body->data, len);
	for (size_t i = 0; letters && i < len; i++)
		body->data[i] = 'a' + body->data[i] % 26;
	return body;
}

/* A body of LEN bytes goes through, where one can be that long. */
static void through(struct bed *b, size_t len)
{
	struct driver_req got, send = {.op = DRIVER_SEND};
	struct blob *body;

	if (len > driver_max_body(b->d))
		return;
	body = body_of(b->d, len);
	send.u.send.body = body;
	CHECK_INT(ask(b, &send), 0);
	got = ask_receive(b, 1);
	CHECK_INT(got.u.receive.n, 1);
	CHECK_INT(got.u.receive.msgs[0].size, len);
	CHECK_INT(got.u.receive.msgs[0].body->len, len);
	CHECK(memcmp(got.u.receive.msgs[0].body->data, body->data, len) == 0);
	CHECK_INT(ask_settle(b, SETTLE_DELETE, &got.u.receive.msgs[0]), 0);
	blob_unref(body);
	driver_req_fini(&send);
	driver_req_fini(&got);
}

CONTRACT(bodies_of_all_sizes, 0)
{
	through(b, 0);
	through(b, 1);
	through(b, 4096);
	through(b, 1 << 20);
	through(b, driver_max_body(b->d));
}

CONTRACT(a_larger_body_is_refused, 0)
{
	struct driver_req send = {.op = DRIVER_SEND};
	size_t len = driver_max_body(b->d) + 1;

	send.u.send.body = blob_create(NULL, len);
	CHECK(send.u.send.body);
	CHECK_INT(ask(b, &send), -EMSGSIZE);
	CHECK(send.detail[0] && !send.u.send.id);
	blob_unref(send.u.send.body);
	ask_depth(b, 0, 0, 0);
}

CONTRACT(ids_are_never_given_again, 0)
{
	char *first = ask_send(b, "a"), *second;
	struct driver_req got = ask_receive(b, 1);

	CHECK_INT(ask_settle(b, SETTLE_DELETE, &got.u.receive.msgs[0]), 0);
	driver_req_fini(&got);
	ask_restart(b, "bed");
	second = ask_send(b, "b");
	CHECK(strcmp(first, second) != 0);
	CHECK(strcmp(first, second) < 0 || !bed_can(b, BED_ORDER));
	free(first);
	free(second);
}

static void count_done(struct driver_req *req)
{
	(*(unsigned *)req->arg)++;
}

static unsigned waiting_now(struct bed *b)
{
	struct driver_req req = {.op = DRIVER_DEPTH};

	CHECK_INT(ask(b, &req), 0);
	return (unsigned)req.u.depth.waiting;
}

CONTRACT(all_that_is_submitted_is_answered_by_close, 0)
{
	struct driver_req reqs[8] = {0};
	struct blob *body = ask_blob("x");
	unsigned done = 0, sent = 0;

	for (int i = 0; i < 8; i++) {
		reqs[i].op = DRIVER_SEND;
		reqs[i].u.send.body = body;
		reqs[i].arg = &done;
		reqs[i].done = count_done;
		driver_submit(b->d, &reqs[i]);
	}
	CHECK_INT(done, 0);
	driver_close(b->d);
	b->d = NULL;
	CHECK_INT(done, 8);
	for (int i = 0; i < 8; i++) {
		CHECK(reqs[i].err == 0 || !bed_can(b, BED_CLOSES_LAST));
		sent += reqs[i].err == 0;
		driver_req_fini(&reqs[i]);
	}
	blob_unref(body);
	b->d = ask_open(b, "bed");
	CHECK(waiting_now(b) >= sent && waiting_now(b) <= 8);
}

CONTRACT(a_sync_ends, 0)
{
	struct driver_req req = {.op = DRIVER_SYNC};

	CHECK_INT(ask(b, &req), 0);
}
