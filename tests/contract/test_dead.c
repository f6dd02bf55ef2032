/* SPDX-License-Identifier: MIT */
/* Dead letters. */
#include "ask_settle.h"

static struct driver_req list(struct bed *b, unsigned max)
{
	struct driver_req req = {.op = DRIVER_DEAD_LIST};

	req.u.dead.max = max;
	CHECK_INT(ask(b, &req), 0);
	return req;
}

/* Buries the next message. */
static void bury_next(struct bed *b, const char *reason)
{
	struct driver_req got = ask_receive(b, 1);

	CHECK_INT(got.u.receive.n, 1);
	CHECK_INT(ask_bury(b, &got.u.receive.msgs[0], reason, 6), 0);
	driver_req_fini(&got);
}

/* The id of the only dead letter, the caller's to free. */
static char *dead_id(struct bed *b)
{
	struct driver_req dead = list(b, 2);
	char *id;

	CHECK_INT(dead.u.dead.n, 1);
	id = dead.u.dead.msgs[0].id;
	dead.u.dead.msgs[0].id = NULL;
	driver_req_fini(&dead);
	return id;
}

CONTRACT(the_buried_are_listed, DRIVER_DEAD)
{
	struct driver_req dead;

	free(ask_send(b, "body"));
	bury_next(b, "too many attempts");
	ask_depth(b, 0, 0, 1);
	dead = list(b, 10);
	CHECK_INT(dead.u.dead.n, 1);
	CHECK(!dead.u.dead.msgs[0].receipt && !dead.u.dead.msgs[0].body);
	CHECK_INT(dead.u.dead.msgs[0].size, 4);
	driver_req_fini(&dead);
}

CONTRACT(their_reason_and_attempts_are_known, DRIVER_DEAD | DRIVER_ATTEMPTS)
{
	struct driver_req dead;

	free(ask_send(b, "body"));
	bury_next(b, "too many attempts");
	dead = list(b, 10);
	CHECK_INT(dead.u.dead.n, 1);
	CHECK_STR(dead.u.dead.msgs[0].reason, "too many attempts");
	CHECK_INT(dead.u.dead.msgs[0].attempts, 6);
	driver_req_fini(&dead);
}

CONTRACT(a_dead_letter_is_the_message_itself, BED_SAME_DEAD | DRIVER_DEAD)
{
	struct driver_req dead;
	char *id = ask_send(b, "body");

	bury_next(b, "x");
	dead = list(b, 10);
	CHECK_STR(dead.u.dead.msgs[0].id, id);
	CHECK_INT(dead.u.dead.msgs[0].dequeue_count, 1);
	driver_req_fini(&dead);
	free(id);
}

CONTRACT(the_oldest_dead_come_first, BED_ORDER | DRIVER_DEAD)
{
	struct driver_req dead;
	char *first = ask_send(b, "a");
	char *second = ask_send(b, "b");

	bury_next(b, "x");
	bury_next(b, "y");
	dead = list(b, 1);
	CHECK_INT(dead.u.dead.n, 1);
	CHECK_STR(dead.u.dead.msgs[0].id, first);
	driver_req_fini(&dead);
	dead = list(b, 2);
	CHECK_INT(dead.u.dead.n, 2);
	CHECK_STR(dead.u.dead.msgs[1].id, second);
	driver_req_fini(&dead);
	free(first);
	free(second);
}

CONTRACT(no_more_dead_are_listed_than_asked_for, DRIVER_DEAD)
{
	struct driver_req dead;

	free(ask_send(b, "a"));
	free(ask_send(b, "b"));
	bury_next(b, "x");
	bury_next(b, "y");
	dead = list(b, 1);
	CHECK_INT(dead.u.dead.n, 1);
	driver_req_fini(&dead);
	ask_depth(b, 0, 0, 2);
}

CONTRACT(the_body_of_a_dead_letter, DRIVER_DEAD)
{
	struct driver_req req = {.op = DRIVER_DEAD_READ};
	char *id = ask_send(b, "body");

	req.u.dead_read.id = id;
	CHECK_INT(ask(b, &req), -ENOENT); /* it is alive */
	bury_next(b, "x");
	free(id);
	id = dead_id(b);
	req.u.dead_read.id = id;
	CHECK_INT(ask(b, &req), 0);
	ask_body(req.u.dead_read.body, "body");
	driver_req_fini(&req);
	free(id);
}

CONTRACT(discarded_is_gone_for_good, DRIVER_DEAD)
{
	struct driver_req req = {.op = DRIVER_DEAD_READ};
	struct settle it = {.op = SETTLE_DISCARD};
	char *id = ask_send(b, "body");

	it.id = id;
	CHECK_INT(ask_settle_of(b, b->d, &it), -ENOENT);
	bury_next(b, "x");
	free(id);
	id = dead_id(b);
	it.id = id;
	CHECK_INT(ask_settle_of(b, b->d, &it), 0);
	CHECK_INT(ask_settle_of(b, b->d, &it), -ENOENT);
	req.u.dead_read.id = id;
	CHECK_INT(ask(b, &req), -ENOENT);
	ask_depth(b, 0, 0, 0);
	free(id);
}

CONTRACT(revived_waits_again_without_attempts, DRIVER_DEAD)
{
	struct settle it = {.op = SETTLE_REVIVE};
	struct driver_req got;
	char *id = ask_send(b, "body");

	it.id = id;
	CHECK_INT(ask_settle_of(b, b->d, &it), -ENOENT);
	bury_next(b, "x");
	free(id);
	id = dead_id(b);
	it.id = id;
	CHECK_INT(ask_settle_of(b, b->d, &it), 0);
	ask_depth(b, 1, 0, 0);
	got = ask_receive(b, 2);
	CHECK_INT(got.u.receive.n, 1);
	CHECK_INT(got.u.receive.msgs[0].attempts, 0);
	ask_body(got.u.receive.msgs[0].body, "body");
	driver_req_fini(&got);
	free(id);
}

CONTRACT(revived_it_has_its_old_place, BED_SAME_DEAD | BED_ORDER | DRIVER_DEAD)
{
	struct settle it = {.op = SETTLE_REVIVE};
	struct driver_req got;
	char *id = ask_send(b, "body");

	bury_next(b, "x");
	free(ask_send(b, "later"));
	it.id = id;
	CHECK_INT(ask_settle_of(b, b->d, &it), 0);
	got = ask_receive(b, 2);
	CHECK_INT(got.u.receive.n, 2);
	CHECK_STR(got.u.receive.msgs[0].id, id);
	CHECK_INT(got.u.receive.msgs[0].dequeue_count, 2);
	driver_req_fini(&got);
	free(id);
}

CONTRACT(a_receipt_from_before_the_burial_is_stale, DRIVER_DEAD)
{
	int stale = bed_can(b, BED_SAME_DEAD) ? -ESTALE : -ENOENT;
	struct driver_req old, got;
	struct settle it = {.op = SETTLE_REVIVE};
	char *id;

	free(ask_send(b, "body"));
	old = ask_receive(b, 1);
	CHECK_INT(ask_bury(b, &old.u.receive.msgs[0], "x", 1), 0);
	CHECK_INT(ask_settle(b, SETTLE_DELETE, &old.u.receive.msgs[0]), -ENOENT);
	id = dead_id(b);
	it.id = id;
	CHECK_INT(ask_settle_of(b, b->d, &it), 0);
	got = ask_receive(b, 1);
	CHECK_INT(got.u.receive.n, 1);
	CHECK_INT(ask_settle(b, SETTLE_DELETE, &old.u.receive.msgs[0]), stale);
	driver_req_fini(&old);
	driver_req_fini(&got);
	free(id);
}
