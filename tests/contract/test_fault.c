/* SPDX-License-Identifier: MIT */
/* The wrapper that fails on purpose does what it promises; and the registry. */
#include "ask.h"
#include "backend/drivers/registry.h"
#include "fault.h"

/* A bed with the wrapper. */
static void init(struct bed *b)
{
	const struct bed_factory *f = bed_factories;

	while (f->name && strcmp(f->name, "fault around sqlite") != 0)
		f++;
	CHECK(f->name && bed_init(b, f));
}

static int send_err(struct bed *b)
{
	struct driver_req req = {.op = DRIVER_SEND, .u.send.body = ask_blob("x")};
	int err = ask(b, &req);

	CHECK((err == 0) == (req.u.send.id != NULL));
	CHECK((err == 0) == (req.detail[0] == '\0'));
	blob_unref(req.u.send.body);
	driver_req_fini(&req);
	return err;
}

TEST(the_nth_request_is_lost)
{
	struct bed b;

	init(&b);
	fault_rule(b.d, DRIVER_SEND, FAULT_FAIL, 2, 2, -EAGAIN);
	CHECK_INT(send_err(&b), 0);
	CHECK_INT(send_err(&b), -EAGAIN);
	CHECK_INT(send_err(&b), -EAGAIN);
	CHECK_INT(send_err(&b), 0);
	CHECK_INT(fault_seen(b.d, DRIVER_SEND), 4);
	ask_depth(&b, 2, 0, 0);
	bed_fini(&b);
}

TEST(an_answer_is_lost_after_the_work)
{
	struct bed b;

	init(&b);
	fault_rule(b.d, DRIVER_SEND, FAULT_LOSE, 1, FAULT_ALWAYS, -EAGAIN);
	CHECK_INT(send_err(&b), -EAGAIN);
	CHECK_INT(send_err(&b), -EAGAIN);
	fault_rule(b.d, DRIVER_SEND, FAULT_LOSE, 1, 0, 0);
	CHECK_INT(send_err(&b), 0);
	ask_depth(&b, 3, 0, 0);
	bed_fini(&b);
}

static void count_done(struct driver_req *req)
{
	(*(unsigned *)req->arg)++;
}

TEST(an_answer_is_held_until_it_is_asked_for)
{
	struct driver_req held = {.op = DRIVER_SEND, .done = count_done};
	unsigned done = 0;
	struct bed b;

	init(&b);
	held.arg = &done;
	held.u.send.body = ask_blob("x");
	fault_rule(b.d, DRIVER_SEND, FAULT_HOLD, 1, 1, 0);
	driver_submit(b.d, &held);
	CHECK_INT(send_err(&b), 0);
	CHECK_INT(done, 0);
	CHECK_INT(fault_release(b.d), 1);
	CHECK_INT(done, 1);
	CHECK_INT(held.err, 0);
	CHECK(held.u.send.id);
	blob_unref(held.u.send.body);
	driver_req_fini(&held);
	bed_fini(&b);
}

TEST(close_gives_the_answers_that_were_held)
{
	struct driver_req held = {.op = DRIVER_DEPTH, .done = count_done};
	struct driver_req failed = {.op = DRIVER_SYNC, .done = count_done};
	unsigned done = 0;
	struct bed b;

	init(&b);
	held.arg = failed.arg = &done;
	fault_rule(b.d, DRIVER_DEPTH, FAULT_HOLD, 1, 1, 0);
	fault_rule(b.d, DRIVER_SYNC, FAULT_FAIL, 1, 1, -EIO);
	driver_submit(b.d, &held);
	driver_submit(b.d, &failed);
	bed_fini(&b);
	CHECK_INT(done, 2);
	CHECK_INT(failed.err, -EIO);
}

TEST(a_source_names_its_driver)
{
	const char *rest;

	CHECK_STR(registry_find("sqlite:q.db", &rest)->name, "sqlite");
	CHECK_STR(rest, "q.db");
	CHECK_STR(registry_find("/var/q:1.db", &rest)->name, "sqlite");
	CHECK_STR(rest, "/var/q:1.db");
	CHECK(registry_all()[0] && registry_all()[0]->help);
}

TEST(an_unknown_scheme_has_no_driver)
{
	const char *rest;

	errno = 0;
	CHECK(!registry_find("gopher://host/q", &rest));
	CHECK_INT(errno, EINVAL);
}
