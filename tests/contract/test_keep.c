/* SPDX-License-Identifier: MIT */
/* What is kept for a relay: claims, attempts and reasons of other messages. */
#include "ask_settle.h"

#include <sqlite3.h>

__attribute__((constructor)) static void stop_the_clocks(void)
{
	clock_fake(1000 * NS_PER_S, INT64_C(1795147200) * NS_PER_S);
}

static void keep(struct bed *b, struct keep *k)
{
	struct driver_req req = {.op = DRIVER_KEEP};

	req.u.keep.items = k;
	req.u.keep.n = 1;
	CHECK_INT(ask(b, &req), 0);
}

static struct keep claim_of(const char *id, struct blob *body)
{
	return (struct keep){.op = KEEP_CLAIM,
		.id = id,
		.receipt = "AgAA+/=",
		.record = "who",
		.body = body,
		.enqueued_ns = 77 * NS_PER_S,
		.lease_until_ns = clock_mono() + LEASE_NS,
		.attempts = 2,
		.dequeue_count = 5};
}

static void keep_claimed(struct bed *b, const char *id)
{
	struct blob *body = ask_blob("what it says");
	struct keep k = claim_of(id, body);

	keep(b, &k);
	blob_unref(body);
}

static unsigned recalled(struct bed *b, const char *id, const char *reason)
{
	struct keep k = {.id = id};
	struct driver_req req = {.op = DRIVER_RECALL};

	req.u.keep.items = &k;
	req.u.keep.n = 1;
	CHECK_INT(ask(b, &req), 0);
	if (reason)
		CHECK_STR(k.known_reason, reason);
	else
		CHECK(!k.known_reason);
	driver_req_fini(&req);
	return k.known_attempts;
}

CONTRACT(a_kept_claim_is_found_by_the_next_life, DRIVER_KEEPER)
{
	struct driver_req load;
	struct driver_msg *m;

	keep_claimed(b, "b4f03bf0-be68");
	clock_step(NS_PER_S);
	ask_restart(b, "bed");
	load = ask_load_of(b, b->d);
	CHECK_INT(load.u.load.n_msgs, 1);
	m = &load.u.load.msgs[0];
	CHECK_STR(m->id, "b4f03bf0-be68");
	CHECK_STR(m->receipt, "AgAA+/=");
	CHECK_STR(m->record, "who");
	ask_body(m->body, "what it says");
	CHECK_INT(m->size, 12);
	CHECK_INT(m->enqueued_ns, 77 * NS_PER_S);
	CHECK_INT(m->lease_until_ns, clock_mono() + LEASE_NS - NS_PER_S);
	CHECK_INT(m->attempts, 2);
	CHECK_INT(m->dequeue_count, 5);
	CHECK(!m->given);
	driver_req_fini(&load);
}

CONTRACT(a_kept_claim_is_not_another_mounts, DRIVER_KEEPER)
{
	struct driver_req load;

	keep_claimed(b, "x");
	ask_restart(b, "another");
	load = ask_load_of(b, b->d);
	CHECK_INT(load.u.load.n_msgs, 0);
	driver_req_fini(&load);
	CHECK_INT(recalled(b, "x", NULL), 3);
}

CONTRACT(a_kept_claim_waits_for_its_mount, DRIVER_KEEPER)
{
	struct driver_req load;

	keep_claimed(b, "x");
	ask_restart(b, "another");
	ask_restart(b, "bed");
	load = ask_load_of(b, b->d);
	CHECK_INT(load.u.load.n_msgs, 1);
	CHECK_STR(load.u.load.msgs[0].record, "who");
	driver_req_fini(&load);
}

/* It came late to know that its own lease was lost. */
CONTRACT(what_another_mount_claimed_since_is_left_alone, DRIVER_KEEPER)
{
	static const enum keep_op late[] = {
		KEEP_COUNT, KEEP_RENEW, KEEP_DEAD, KEEP_FORGET};
	struct driver *other = ask_open(b, "other");
	struct driver_req load;

	keep_claimed(b, "x");
	for (int i = 0; i < 4; i++) {
		struct keep k = {.op = late[i], .id = "x", .receipt = "theirs"};
		struct driver_req req = {.op = DRIVER_KEEP};

		req.u.keep.items = &k;
		req.u.keep.n = 1;
		CHECK_INT(ask_of(b, other, &req), 0);
		load = ask_load_of(b, b->d);
		CHECK_INT(load.u.load.n_msgs, 1);
		CHECK_STR(load.u.load.msgs[0].receipt, "AgAA+/=");
		driver_req_fini(&load);
	}
	driver_close(other);
}

CONTRACT(a_kept_lease_is_renewed, DRIVER_KEEPER)
{
	struct keep renewed = {.op = KEEP_RENEW,
		.id = "x",
		.receipt = "newer",
		.lease_until_ns = clock_mono() + 2 * LEASE_NS};
	struct driver_req load;

	keep_claimed(b, "x");
	keep(b, &renewed);
	load = ask_load_of(b, b->d);
	CHECK_STR(load.u.load.msgs[0].receipt, "newer");
	CHECK_INT(load.u.load.msgs[0].lease_until_ns, clock_mono() + 2 * LEASE_NS);
	driver_req_fini(&load);
}

CONTRACT(a_renewal_keeps_nothing_by_itself, DRIVER_KEEPER)
{
	struct keep k = {.op = KEEP_RENEW, .id = "x", .receipt = "r"};
	struct driver_req load;

	keep(b, &k);
	load = ask_load_of(b, b->d);
	CHECK_INT(load.u.load.n_msgs, 0);
	driver_req_fini(&load);
}

CONTRACT(a_kept_claim_that_ended_is_a_count, DRIVER_KEEPER)
{
	struct keep k = {.op = KEEP_COUNT, .id = "x", .attempts = 3};
	struct driver_req load;

	keep_claimed(b, "x");
	keep(b, &k);
	load = ask_load_of(b, b->d);
	CHECK_INT(load.u.load.n_msgs, 0);
	driver_req_fini(&load);
	CHECK_INT(recalled(b, "x", NULL), 3);
	CHECK_INT(recalled(b, "x", NULL), 3);
}

CONTRACT(a_kept_claim_that_never_ended_is_one_attempt, DRIVER_KEEPER)
{
	struct driver_req load;

	keep_claimed(b, "x");
	CHECK_INT(recalled(b, "x", NULL), 3);
	CHECK_INT(recalled(b, "x", NULL), 3);
	load = ask_load_of(b, b->d);
	CHECK_INT(load.u.load.n_msgs, 0);
	driver_req_fini(&load);
}

CONTRACT(the_reason_of_a_dead_letter_is_kept, DRIVER_KEEPER)
{
	struct keep k = {.op = KEEP_DEAD, .id = "x", .attempts = 5, .reason = "killed"};

	keep(b, &k);
	CHECK_INT(recalled(b, "x", "killed"), 5);
}

CONTRACT(what_is_forgotten_is_unknown, DRIVER_KEEPER)
{
	struct keep k = {.op = KEEP_FORGET, .id = "x"};

	keep_claimed(b, "x");
	keep(b, &k);
	CHECK_INT(recalled(b, "x", NULL), 0);
}

CONTRACT(what_nobody_saw_for_a_month_is_forgotten, DRIVER_KEEPER)
{
	struct keep k = {.op = KEEP_COUNT, .id = "x", .attempts = 3};

	keep(b, &k);
	clock_step(31 * 24 * 3600 * NS_PER_S);
	ask_restart(b, "bed");
	CHECK_INT(recalled(b, "x", NULL), 0);
}

CONTRACT(a_sealed_draft_is_of_the_outbox, DRIVER_STORE | DRIVER_KEEPER)
{
	int64_t id = ask_draft(b, 0, "job", "whole");
	struct driver_req req = {.op = DRIVER_DRAFT_SEAL}, load;

	req.u.draft.id = id;
	CHECK_INT(ask(b, &req), 0);
	ask_restart(b, "bed");
	load = ask_load_of(b, b->d);
	CHECK_INT(load.u.load.n_drafts, 1);
	CHECK(load.u.load.drafts[0].outbox);
	driver_req_fini(&load);
	req.u.draft.id = id + 1;
	CHECK_INT(ask(b, &req), -ENOENT);
}

CONTRACT(what_is_seen_now_and_then_is_not_forgotten, DRIVER_KEEPER)
{
	struct keep k = {.op = KEEP_DEAD, .id = "x", .attempts = 5, .reason = "killed"};

	keep(b, &k);
	for (int i = 0; i < 3; i++) {
		clock_step(20 * 24 * 3600 * NS_PER_S);
		ask_restart(b, "bed");
		CHECK_INT(recalled(b, "x", "killed"), 5);
	}
}

CONTRACT(a_claim_that_ran_out_a_month_ago_is_forgotten, DRIVER_KEEPER)
{
	keep_claimed(b, "x");
	clock_step(LEASE_NS + 29 * 24 * 3600 * NS_PER_S);
	ask_restart(b, "another");
	clock_step(2 * 24 * 3600 * NS_PER_S);
	ask_restart(b, "another");
	CHECK_INT(recalled(b, "x", NULL), 0);
}

/* As the first version made it: the tables of the second are added. */
TEST(a_file_of_version_1_is_taken_over)
{
	struct bed b;
	sqlite3 *db;

	CHECK(bed_init(&b, &bed_factories[0]));
	free(ask_send(&b, "old"));
	driver_close(b.d);
	b.d = NULL;
	CHECK_INT(sqlite3_open(b.path, &db), SQLITE_OK);
	CHECK_INT(sqlite3_exec(db,
			  "DROP TABLE kept; ALTER TABLE draft DROP COLUMN outbox;"
			  "PRAGMA user_version=1",
			  NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(db);
	b.d = ask_open(&b, "bed");
	ask_depth(&b, 1, 0, 0);
	keep_claimed(&b, "x");
	CHECK_INT(recalled(&b, "x", NULL), 3);
	bed_fini(&b);
}
