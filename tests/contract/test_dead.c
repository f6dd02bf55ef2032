/* SPDX-License-Identifier: MIT */
/* Dead letters. */
#include "ask_settle.h"

/* Buries the next message. */
static void bury_next(struct bed *b, const char *reason)
{
	struct driver_req got = ask_receive(b, 1);

	CHECK_INT(got.u.receive.n, 1);
	CHECK_INT(ask_bury(b, &got.u.receive.msgs[0], reason, 6), 0);
	driver_req_fini(&got);
}

static struct driver_req list(struct bed *b, unsigned max)
{
	struct driver_req req = {.op = DRIVER_DEAD_LIST};

	req.u.dead.max = max;
	CHECK_INT(ask(b, &req), 0);
	return req;
}

CONTRACT(the_buried_are_listed_with_their_reason, DRIVER_DEAD)
{
	struct driver_req dead;
	char *id = ask_send(b, "body");

	bury_next(b, "too many attempts");
	ask_depth(b, 0, 0, 1);
	dead = list(b, 10);
	CHECK_INT(dead.u.dead.n, 1);
	CHECK_STR(dead.u.dead.msgs[0].id, id);
	CHECK_STR(dead.u.dead.msgs[0].reason, "too many attempts");
	CHECK(!dead.u.dead.msgs[0].receipt && !dead.u.dead.msgs[0].body);
	CHECK_INT(dead.u.dead.msgs[0].size, 4);
	CHECK_INT(dead.u.dead.msgs[0].attempts, 6);
	CHECK_INT(dead.u.dead.msgs[0].dequeue_count, 1);
	driver_req_fini(&dead);
	free(id);
}

CONTRACT(the_oldest_dead_come_first, DRIVER_DEAD)
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

CONTRACT(the_body_of_a_dead_letter, DRIVER_DEAD)
{
	struct driver_req req = {.op = DRIVER_DEAD_READ};
	char *id = ask_send(b, "body");

	req.u.dead_read.id = id;
	CHECK_INT(ask(b, &req), -ENOENT); /* it is alive */
	bury_next(b, "x");
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
	CHECK_INT(ask_settle_of(b, b->d, &it), 0);
	CHECK_INT(ask_settle_of(b, b->d, &it), -ENOENT);
	req.u.dead_read.id = id;
	CHECK_INT(ask(b, &req), -ENOENT);
	ask_depth(b, 0, 0, 0);
	free(id);
}

CONTRACT(revived_waits_at_its_old_place_without_attempts, DRIVER_DEAD)
{
	struct settle it = {.op = SETTLE_REVIVE};
	struct driver_req got;
	char *id = ask_send(b, "body");

	it.id = id;
	CHECK_INT(ask_settle_of(b, b->d, &it), -ENOENT);
	bury_next(b, "x");
	free(ask_send(b, "later"));
	CHECK_INT(ask_settle_of(b, b->d, &it), 0);
	ask_depth(b, 2, 0, 0);
	got = ask_receive(b, 2);
	CHECK_INT(got.u.receive.n, 2);
	CHECK_STR(got.u.receive.msgs[0].id, id);
	CHECK_INT(got.u.receive.msgs[0].attempts, 0);
	CHECK_INT(got.u.receive.msgs[0].dequeue_count, 2);
	ask_body(got.u.receive.msgs[0].body, "body");
	driver_req_fini(&got);
	free(id);
}

CONTRACT(a_receipt_from_before_the_burial_is_stale, DRIVER_DEAD)
{
	struct driver_req old, got;
	struct settle it = {.op = SETTLE_REVIVE};

	free(ask_send(b, "body"));
	old = ask_receive(b, 1);
	CHECK_INT(ask_bury(b, &old.u.receive.msgs[0], "x", 1), 0);
	CHECK_INT(ask_settle(b, SETTLE_DELETE, &old.u.receive.msgs[0]), -ENOENT);
	it.id = old.u.receive.msgs[0].id;
	CHECK_INT(ask_settle_of(b, b->d, &it), 0);
	got = ask_receive(b, 1);
	CHECK_INT(got.u.receive.n, 1);
	CHECK_INT(ask_settle(b, SETTLE_DELETE, &old.u.receive.msgs[0]), -ESTALE);
	driver_req_fini(&old);
	driver_req_fini(&got);
}
