/* SPDX-License-Identifier: MIT */
/* Drafts, claim records, and what a later life finds of them. */
#include "ask_settle.h"

__attribute__((constructor)) static void stop_the_clocks(void)
{
	clock_fake(1000 * NS_PER_S, INT64_C(1795147200) * NS_PER_S);
}

static int on_draft(struct bed *b, enum driver_op op, int64_t id, const char *name)
{
	struct driver_req req = {.op = op};

	req.u.draft.id = id;
	req.u.draft.name = name;
	return ask(b, &req);
}

CONTRACT(a_draft_survives_with_all_it_has, DRIVER_STORE)
{
	int64_t id = ask_draft(b, 0, "job.tmp", "half");
	struct driver_req load;
	struct driver_draft *d;

	ask_depth(b, 0, 0, 0);
	ask_restart(b, "bed");
	load = ask_load_of(b, b->d);
	CHECK_INT(load.u.load.n_drafts, 1);
	d = &load.u.load.drafts[0];
	CHECK_INT(d->id, id);
	CHECK_STR(d->name, "job.tmp");
	ask_body(d->body, "half");
	CHECK_INT(d->begun_ns, 1234567890123456789);
	CHECK_INT(d->mode, 0640);
	CHECK_INT(d->uid, 7);
	CHECK_INT(d->gid, 9);
	CHECK(!d->outbox);
	driver_req_fini(&load);
}

CONTRACT(a_draft_put_again_is_replaced, DRIVER_STORE)
{
	int64_t id = ask_draft(b, 0, "job.tmp", "half");
	struct driver_req load;

	CHECK_INT(ask_draft(b, id, "job", "whole"), id);
	load = ask_load_of(b, b->d);
	CHECK_INT(load.u.load.n_drafts, 1);
	CHECK_STR(load.u.load.drafts[0].name, "job");
	ask_body(load.u.load.drafts[0].body, "whole");
	driver_req_fini(&load);
}

CONTRACT(a_draft_renamed, DRIVER_STORE)
{
	int64_t id = ask_draft(b, 0, "a.tmp", "x");
	struct driver_req load;

	CHECK_INT(on_draft(b, DRIVER_DRAFT_NAME, id, "b.tmp"), 0);
	load = ask_load_of(b, b->d);
	CHECK_STR(load.u.load.drafts[0].name, "b.tmp");
	driver_req_fini(&load);
}

CONTRACT(a_draft_sent_is_a_message, DRIVER_STORE)
{
	int64_t id = ask_draft(b, 0, "job.tmp", "body");
	struct driver_req got, load, send = ask_draft_send(b, id, "body", "job");

	CHECK(send.u.draft.msg_id && send.u.draft.enqueued_ns > 0);
	ask_depth(b, 1, 0, 0);
	got = ask_receive(b, 1);
	CHECK_STR(got.u.receive.msgs[0].id, send.u.draft.msg_id);
	if (bed_can(b, DRIVER_NAMES))
		CHECK_STR(got.u.receive.msgs[0].given, "job");
	CHECK_INT(got.u.receive.msgs[0].size, 4);
	CHECK_INT(got.u.receive.msgs[0].enqueued_ns, send.u.draft.enqueued_ns);
	ask_body(got.u.receive.msgs[0].body, "body");
	CHECK_INT(on_draft(b, DRIVER_DRAFT_DROP, id, NULL), -ENOENT);
	load = ask_load_of(b, b->d);
	CHECK_INT(load.u.load.n_drafts, 0);
	driver_req_fini(&load);
	driver_req_fini(&got);
	driver_req_fini(&send);
}

CONTRACT(drafts_are_queued_when_sent_not_when_begun, BED_ORDER | DRIVER_STORE)
{
	int64_t first = ask_draft(b, 0, "a", "begun first");
	int64_t second = ask_draft(b, 0, "b", "sent first");
	struct driver_req got, send;

	send = ask_draft_send(b, second, "sent first", NULL);
	driver_req_fini(&send);
	send = ask_draft_send(b, first, "begun first", NULL);
	driver_req_fini(&send);
	got = ask_receive(b, 2);
	ask_body(got.u.receive.msgs[0].body, "sent first");
	driver_req_fini(&got);
}

CONTRACT(a_draft_that_is_gone, DRIVER_STORE)
{
	int64_t id = ask_draft(b, 0, "a", "x");
	struct driver_req put = {.op = DRIVER_DRAFT_PUT},
			  send = {.op = DRIVER_DRAFT_SEND};

	CHECK_INT(on_draft(b, DRIVER_DRAFT_DROP, id, NULL), 0);
	CHECK_INT(on_draft(b, DRIVER_DRAFT_DROP, id, NULL), -ENOENT);
	CHECK_INT(on_draft(b, DRIVER_DRAFT_NAME, id, "b"), -ENOENT);
	send.u.draft.id = id;
	if (!driver_can(b->d, DRIVER_FAR)) /* what is sealed there is sent */
		CHECK_INT(ask(b, &send), -ENOENT);
	put.u.draft.id = id;
	put.u.draft.name = "a";
	put.u.draft.body = ask_blob("x");
	CHECK_INT(ask(b, &put), -ENOENT);
	blob_unref(put.u.draft.body);
	ask_depth(b, 0, 0, 0);
}

CONTRACT(a_draft_that_is_too_large, DRIVER_STORE)
{
	struct driver_req put = {.op = DRIVER_DRAFT_PUT};

	put.u.draft.name = "a";
	put.u.draft.body = blob_create(NULL, driver_max_body(b->d) + 1);
	CHECK(put.u.draft.body);
	CHECK_INT(ask(b, &put), -EMSGSIZE);
	CHECK_INT(put.u.draft.id, 0);
	blob_unref(put.u.draft.body);
}

CONTRACT(a_later_life_gets_its_leases_back, BED_NEAR | DRIVER_STORE)
{
	struct driver_req got, load;

	free(ask_send(b, "claimed"));
	free(ask_send(b, "unread"));
	got = ask_receive(b, 2);
	CHECK_INT(ask_claim(b, &got.u.receive.msgs[0], "pid=17"), 0);
	ask_restart(b, "bed");
	bed_pass(b, b->lease_ns - NS_PER_S);
	load = ask_load_of(b, b->d);
	CHECK_INT(load.u.load.n_msgs, 2);
	CHECK_STR(load.u.load.msgs[0].record, "pid=17");
	CHECK(!load.u.load.msgs[1].record);
	ask_body(load.u.load.msgs[0].body, "claimed");
	ask_body(load.u.load.msgs[1].body, "unread");
	CHECK_INT(load.u.load.msgs[0].lease_until_ns, clock_mono() + b->lease_ns);
	CHECK_INT(load.u.load.msgs[0].dequeue_count, 1);
	CHECK_INT(ask_settle(b, SETTLE_DELETE, &got.u.receive.msgs[0]), -ESTALE);
	bed_pass(b, b->lease_ns - NS_PER_S);
	CHECK_INT(ask_settle(b, SETTLE_DELETE, &load.u.load.msgs[0]), 0);
	ask_depth(b, 0, 1, 0);
	driver_req_fini(&got);
	driver_req_fini(&load);
}

CONTRACT(a_claimed_lease_that_runs_out_is_an_attempt, DRIVER_STORE | DRIVER_ATTEMPTS)
{
	struct driver_req got, again;
	const struct driver_msg *m;

	bed_hurry(b);
	free(ask_send(b, "claimed"));
	free(ask_send(b, "unread"));
	got = ask_receive(b, 2);
	m = got.u.receive.msgs;
	CHECK_INT(ask_claim(b, &m[0], "pid=17"), 0);
	bed_pass(b, b->lease_ns);
	again = ask_receive(b, 2);
	CHECK_INT(again.u.receive.n, 2);
	CHECK_INT(ask_find(&again, m[0].id)->attempts, 1);
	CHECK_INT(ask_find(&again, m[1].id)->attempts, 0);
	driver_req_fini(&got);
	driver_req_fini(&again);
}

CONTRACT(a_claim_that_was_undone_is_no_attempt, BED_NEAR | DRIVER_STORE | DRIVER_ATTEMPTS)
{
	struct driver_req got, again;

	free(ask_send(b, "x"));
	got = ask_receive(b, 1);
	CHECK_INT(ask_claim(b, &got.u.receive.msgs[0], "pid=17"), 0);
	CHECK_INT(ask_settle(b, SETTLE_UNCLAIM, &got.u.receive.msgs[0]), 0);
	bed_pass(b, b->lease_ns);
	again = ask_receive(b, 1);
	CHECK_INT(again.u.receive.msgs[0].attempts, 0);
	CHECK_INT(ask_claim(b, &got.u.receive.msgs[0], "pid=17"), -ESTALE);
	CHECK_INT(ask_settle(b, SETTLE_UNCLAIM, &got.u.receive.msgs[0]), -ESTALE);
	driver_req_fini(&got);
	driver_req_fini(&again);
}

CONTRACT(a_released_message_has_no_record, DRIVER_STORE | DRIVER_ATTEMPTS)
{
	struct driver_req got, again;

	bed_hurry(b);
	free(ask_send(b, "x"));
	got = ask_receive(b, 1);
	CHECK_INT(ask_claim(b, &got.u.receive.msgs[0], "pid=17"), 0);
	CHECK_INT(ask_release(b, &got.u.receive.msgs[0], 0, 1), 0);
	again = ask_receive(b, 1);
	CHECK_INT(again.u.receive.msgs[0].attempts, 1);
	driver_req_fini(&again);
	bed_pass(b, b->lease_ns);
	again = ask_receive(b, 1);
	CHECK_INT(again.u.receive.msgs[0].attempts, 1);
	driver_req_fini(&got);
	driver_req_fini(&again);
}

CONTRACT(a_record_has_a_longest_length, DRIVER_STORE)
{
	char record[DRIVER_RECORD_MAX + 2];
	struct driver_req got, load;

	memset(record, 'r', sizeof(record));
	record[sizeof(record) - 1] = '\0';
	free(ask_send(b, "x"));
	got = ask_receive(b, 1);
	CHECK_INT(ask_claim(b, &got.u.receive.msgs[0], record), -EINVAL);
	record[DRIVER_RECORD_MAX] = '\0';
	CHECK_INT(ask_claim(b, &got.u.receive.msgs[0], record), 0);
	load = ask_load_of(b, b->d);
	CHECK_STR(load.u.load.msgs[0].record, record);
	driver_req_fini(&load);
	driver_req_fini(&got);
}
