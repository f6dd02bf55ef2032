/* SPDX-License-Identifier: MIT */
/* What a relay adds to a far queue: it outlives the daemon, and is on this
 * machine only. */
#include "ask_settle.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/drivers/relay.h"
#include "backend/drivers/sqlite.h"
#include "fault.h"

__attribute__((constructor)) static void stop_the_clocks(void)
{
	clock_fake(1000 * NS_PER_S, INT64_C(1795147200) * NS_PER_S);
}

#define RELAY(id) CONTRACT(id, DRIVER_STORE | DRIVER_FAR)

static void count_done(struct driver_req *req)
{
	++*(unsigned *)req->arg;
}

static struct driver_req received_one(struct bed *b, const char *text)
{
	struct driver_req got;

	free(ask_send(b, text));
	got = ask_receive(b, 1);
	CHECK_INT(got.u.receive.n, 1);
	return got;
}

/* One whose lease is to run out. */
static struct driver_req received_briefly(struct bed *b, const char *text)
{
	bed_hurry(b);
	return received_one(b, text);
}

static unsigned attempts_now(struct bed *b)
{
	struct driver_req got = ask_receive(b, 1);
	unsigned n;

	CHECK_INT(got.u.receive.n, 1);
	n = got.u.receive.msgs[0].attempts;
	driver_req_fini(&got);
	return n;
}

RELAY(a_claim_survives_with_its_body_and_receipt)
{
	struct driver_req got = received_one(b, "text"), load;
	const struct driver_msg *m = &got.u.receive.msgs[0];

	CHECK_INT(ask_claim(b, m, "who"), 0);
	ask_restart(b, "bed");
	load = ask_load_of(b, b->d);
	CHECK_INT(load.u.load.n_msgs, 1);
	CHECK_STR(load.u.load.msgs[0].id, m->id);
	CHECK_STR(load.u.load.msgs[0].record, "who");
	CHECK_INT(load.u.load.msgs[0].enqueued_ns, m->enqueued_ns);
	CHECK_INT(load.u.load.msgs[0].lease_until_ns, m->lease_until_ns);
	ask_body(load.u.load.msgs[0].body, "text");
	CHECK_INT(ask_renew(b, &load.u.load.msgs[0], 2 * b->lease_ns), 0);
	CHECK_INT(ask_settle(b, SETTLE_DELETE, &load.u.load.msgs[0]), 0);
	driver_req_fini(&load);
	driver_req_fini(&got);
	ask_restart(b, "bed");
	load = ask_load_of(b, b->d);
	CHECK_INT(load.u.load.n_msgs, 0);
	driver_req_fini(&load);
}

RELAY(a_renewed_claim_survives_as_it_is_then)
{
	struct driver_req got = received_one(b, "text"), load;
	struct driver_msg *m = &got.u.receive.msgs[0];

	CHECK_INT(ask_claim(b, m, "who"), 0);
	bed_pass(b, NS_PER_S);
	CHECK_INT(ask_renew(b, m, b->lease_ns), 0);
	ask_restart(b, "bed");
	load = ask_load_of(b, b->d);
	CHECK_STR(load.u.load.msgs[0].receipt, m->receipt);
	CHECK_INT(load.u.load.msgs[0].lease_until_ns, clock_mono() + b->lease_ns);
	driver_req_fini(&load);
	driver_req_fini(&got);
}

RELAY(an_unread_lease_is_not_kept)
{
	struct driver_req got = received_one(b, "text"), load;

	driver_req_fini(&got);
	ask_restart(b, "bed");
	load = ask_load_of(b, b->d);
	CHECK_INT(load.u.load.n_msgs, 0);
	driver_req_fini(&load);
}

RELAY(attempts_are_counted_here_and_survive)
{
	struct driver_req got = received_one(b, "text");

	CHECK_INT(ask_claim(b, &got.u.receive.msgs[0], "who"), 0);
	CHECK_INT(ask_release(b, &got.u.receive.msgs[0], 0, 2), 0);
	driver_req_fini(&got);
	ask_restart(b, "bed");
	CHECK_INT(attempts_now(b), 2);
}

RELAY(given_back_unread_is_no_attempt)
{
	struct driver_req got = received_one(b, "text");

	CHECK_INT(ask_release(b, &got.u.receive.msgs[0], 0, 0), 0);
	driver_req_fini(&got);
	CHECK_INT(attempts_now(b), 0);
}

RELAY(a_claim_undone_is_no_attempt_when_its_lease_ends)
{
	struct driver_req got = received_briefly(b, "text");
	struct settle undo = {.op = SETTLE_UNCLAIM,
		.id = got.u.receive.msgs[0].id,
		.receipt = got.u.receive.msgs[0].receipt};

	CHECK_INT(ask_claim(b, &got.u.receive.msgs[0], "who"), 0);
	CHECK_INT(ask_settle_of(b, b->d, &undo), 0);
	driver_req_fini(&got);
	bed_pass(b, b->lease_ns);
	CHECK_INT(attempts_now(b), 0);
}

RELAY(a_claim_whose_lease_ran_out_unseen_is_an_attempt)
{
	struct driver_req got = received_briefly(b, "text");

	CHECK_INT(ask_claim(b, &got.u.receive.msgs[0], "who"), 0);
	driver_req_fini(&got);
	ask_restart(b, "another");
	bed_pass(b, b->lease_ns);
	CHECK_INT(attempts_now(b), 1);
}

RELAY(a_lost_lease_is_an_attempt_when_it_was_claimed)
{
	struct driver_req got = received_briefly(b, "text"), again;
	struct settle renew = {.op = SETTLE_RENEW,
		.delay_ns = b->lease_ns,
		.id = got.u.receive.msgs[0].id,
		.receipt = "77"};

	CHECK_INT(ask_claim(b, &got.u.receive.msgs[0], "who"), 0);
	CHECK_INT(ask_settle_of(b, b->d, &renew), -ESTALE);
	driver_req_fini(&got);
	bed_pass(b, b->lease_ns);
	again = ask_receive(b, 1);
	CHECK_INT(again.u.receive.msgs[0].attempts, 1);
	CHECK_INT(ask_settle(b, SETTLE_DELETE, &again.u.receive.msgs[0]), 0);
	driver_req_fini(&again);
}

/* There is one dead letter, with REASON; gives its id. */
static char *dead_with(struct bed *b, const char *reason)
{
	struct driver_req dead = {.op = DRIVER_DEAD_LIST, .u.dead.max = 9};
	char *id;

	CHECK_INT(ask(b, &dead), 0);
	CHECK_INT(dead.u.dead.n, 1);
	CHECK_STR(dead.u.dead.msgs[0].reason, reason);
	id = dead.u.dead.msgs[0].id;
	dead.u.dead.msgs[0].id = NULL;
	driver_req_fini(&dead);
	return id;
}

RELAY(the_reason_of_a_burial_survives)
{
	struct driver_req got = received_one(b, "text");
	struct settle revive = {.op = SETTLE_REVIVE};
	char *id;

	CHECK_INT(ask_bury(b, &got.u.receive.msgs[0], "failed", 5), 0);
	ask_restart(b, "bed");
	id = dead_with(b, "failed");
	revive.id = id;
	CHECK_INT(ask_settle_of(b, b->d, &revive), 0);
	free(id);
	driver_req_fini(&got);
	CHECK_INT(attempts_now(b), 0);
}

RELAY(a_sent_draft_is_forgotten_here)
{
	int64_t id = ask_draft(b, 0, "job", "body");
	struct driver_req seal = {.op = DRIVER_DRAFT_SEAL}, sent, load;

	seal.u.draft.id = id;
	CHECK_INT(ask(b, &seal), 0);
	sent = ask_draft_send(b, id, "body", "job");
	driver_req_fini(&sent);
	ask_restart(b, "bed");
	load = ask_load_of(b, b->d);
	CHECK_INT(load.u.load.n_drafts, 0);
	driver_req_fini(&load);
	ask_depth(b, 1, 0, 0);
}

/* The end comes in the middle of each: all are answered, once. */
RELAY(everything_is_answered_at_the_end)
{
	static const enum driver_op ops[] = {DRIVER_RECEIVE, DRIVER_LOAD, DRIVER_DEPTH,
		DRIVER_DEAD_LIST, DRIVER_SYNC, DRIVER_PEERS};
	struct driver_req reqs[6] = {0};
	struct settle item = {.op = SETTLE_DELETE, .id = "1", .receipt = "1"};
	struct driver_req settle = {.op = DRIVER_SETTLE};
	unsigned done = 0;

	for (size_t i = 0; i < 6; i++) {
		reqs[i].op = ops[i];
		reqs[i].done = count_done;
		reqs[i].arg = &done;
		if (ops[i] == DRIVER_RECEIVE)
			reqs[i].u.receive.max = 1;
		if (ops[i] == DRIVER_DEAD_LIST)
			reqs[i].u.dead.max = 1;
		driver_submit(b->d, &reqs[i]);
	}
	settle.done = count_done;
	settle.arg = &done;
	settle.u.settle.items = &item;
	settle.u.settle.n = 1;
	driver_submit(b->d, &settle);
	CHECK_INT(done, 0);
	driver_close(b->d);
	b->d = NULL;
	CHECK_INT(done, 7);
	for (size_t i = 0; i < 6; i++)
		driver_req_fini(&reqs[i]);
}

/* What is let go without a word, since its lease ran out in an outage. */
CONTRACT(
	what_ran_out_long_ago_is_not_remembered, DRIVER_STORE | DRIVER_FAR | BED_OUR_TIME)
{
	struct driver_req old = received_one(b, "gone"), got;
	struct driver *other = ask_open(b, "other");

	bed_pass(b, 2 * 24 * 3600 * NS_PER_S);
	got = ask_receive_of(b, other, 1);
	CHECK_INT(got.u.receive.n, 1);
	driver_req_fini(&got);
	driver_close(other);
	CHECK_INT(ask_claim(b, &old.u.receive.msgs[0], "who"), 0);
	CHECK_INT(ask_settle(b, SETTLE_UNCLAIM, &old.u.receive.msgs[0]), 0);
	got = received_one(b, "new");
	CHECK_INT(ask_claim(b, &old.u.receive.msgs[0], "who"), -ENOENT);
	CHECK_INT(ask_claim(b, &got.u.receive.msgs[0], "who"), 0);
	driver_req_fini(&got);
	driver_req_fini(&old);
}

/* The lease is no longer because this machine's clock was set back. */
CONTRACT(a_claim_survives_a_clock_that_is_set_back,
	DRIVER_STORE | DRIVER_FAR | BED_OUR_TIME)
{
	struct driver_req got = received_one(b, "text"), load;

	CHECK_INT(ask_claim(b, &got.u.receive.msgs[0], "who"), 0);
	clock_fake(clock_mono(), clock_wall() - 3600 * NS_PER_S);
	ask_restart(b, "bed");
	load = ask_load_of(b, b->d);
	CHECK_INT(load.u.load.n_msgs, 1);
	CHECK_INT(load.u.load.msgs[0].lease_until_ns, clock_mono() + b->lease_ns);
	clock_fake(clock_mono(), clock_wall() + 3600 * NS_PER_S);
	driver_req_fini(&load);
	driver_req_fini(&got);
}

static struct driver *held; /* of the bed below: fails when told to */

static int open_held(
	const struct driver_params *p, struct driver **out, char *err, size_t err_len)
{
	int r = driver_open(&sqlite_driver_ops, p, out, err, err_len);

	if (!r)
		held = *out = fault_create(*out, p->loop);
	return r;
}

static const struct driver_ops held_ops = {
	.name = "held",
	.caps = DRIVER_FAR | DRIVER_DEAD,
	.max_receive = 32,
	.open = open_held,
};

static void init_held(struct bed *b)
{
	char err[BED_ERR];
	struct driver_params p = {
		.source = b->path, .identity = "bed", .create = true, .state = b->dir};

	CHECK(bed_init(b, NULL));
	p.loop = b->loop;
	CHECK_INT(relay_open(&held_ops, &p, &b->d, err, sizeof(err)), 0);
}

/* A renewal is under way while the lease runs out and the message comes again. */
TEST(an_answer_about_an_earlier_lease_leaves_the_later_one)
{
	struct settle it = {.op = SETTLE_RENEW, .delay_ns = LEASE_NS, .receipt = "77"};
	struct driver_req renew = {.op = DRIVER_SETTLE, .done = count_done}, got, again;
	unsigned done = 0;
	struct bed b;

	init_held(&b);
	got = received_one(&b, "x");
	it.id = got.u.receive.msgs[0].id;
	renew.arg = &done;
	renew.u.settle.items = &it;
	renew.u.settle.n = 1;
	fault_rule(held, DRIVER_SETTLE, FAULT_HOLD, 1, 1, 0);
	driver_submit(b.d, &renew);
	clock_step(LEASE_NS);
	again = ask_receive(&b, 1);
	CHECK_INT(again.u.receive.n, 1);
	CHECK_INT(fault_release(held), 1);
	CHECK(bed_wait(&b, &done, 1));
	CHECK_INT(it.err, -ESTALE);
	CHECK_INT(ask_claim(&b, &again.u.receive.msgs[0], "who"), 0);
	driver_req_fini(&again);
	driver_req_fini(&got);
	bed_fini(&b);
}

/* ---- where the state is ---- */

TEST(each_source_has_a_name_of_its_own)
{
	char a[160], b[160], c[160];

	relay_state_name("https://acct.queue.core.windows.net/jobs", a, sizeof(a));
	relay_state_name("https://acct.queue.core.windows.net/jobs-2", b, sizeof(b));
	relay_state_name("https://acct.queue.core.windows.net/jobs", c, sizeof(c));
	CHECK(strcmp(a, b) != 0);
	CHECK_STR(a, c);
	CHECK(strncmp(a, "acct.queue.core.windows.net_jobs-", 33) == 0);
}

TEST(a_name_cannot_leave_its_directory)
{
	char name[160], long_source[4000];

	relay_state_name("x://../../etc/passwd", name, sizeof(name));
	CHECK(!strchr(name, '/') && name[0] != '.');
	memset(long_source, 'a', sizeof(long_source) - 1);
	long_source[sizeof(long_source) - 1] = '\0';
	relay_state_name(long_source, name, sizeof(name));
	CHECK(strlen(name) < 150);
}

TEST(the_state_directory_is_made_for_its_owner_only)
{
	char dir[] = "/tmp/spoolfs-state-XXXXXX", given[64], path[256], err[BED_ERR];
	struct stat st;

	CHECK(mkdtemp(dir));
	snprintf(given, sizeof(given), "%s/a/b", dir);
	CHECK_INT(
		relay_state_path(given, "x://y/z", path, sizeof(path), err, sizeof(err)),
		0);
	CHECK(strncmp(path, given, strlen(given)) == 0);
	CHECK_INT(stat(given, &st), 0);
	CHECK_INT(st.st_mode & 0777, 0700);
	CHECK_INT(rmdir(given), 0);
	*strrchr(given, '/') = '\0';
	CHECK_INT(rmdir(given), 0);
	CHECK_INT(rmdir(dir), 0);
}

TEST(a_state_directory_that_cannot_be_is_told)
{
	char path[256], err[BED_ERR];

	CHECK_INT(relay_state_path(
			  "/dev/null/x", "x://y/z", path, sizeof(path), err, sizeof(err)),
		-EINVAL);
	CHECK(strstr(err, "state=/dev/null/x"));
}
