/* SPDX-License-Identifier: MIT */
/*
 * Several mounts of one queue: in one process, and in one that is killed. A
 * child is forked before this process opens the queue: SQLite's locks do not
 * survive a fork. Real clocks.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ask_settle.h"

#define BOTH (DRIVER_STORE | DRIVER_NOTIFIES | DRIVER_PEERS_KNOWN)

/* Tells OWN appetite of D, gives what the others said. */
static struct driver_req peers_of(
	struct bed *b, struct driver *d, struct driver_appetite own)
{
	struct driver_req req = {.op = DRIVER_PEERS, .u.peers.mine = own};

	CHECK_INT(ask_of(b, d, &req), 0);
	return req;
}

CONTRACT(two_mounts_share_the_messages, BOTH)
{
	struct driver *other = ask_open(b, "other");
	struct driver_req a, c;

	free(ask_send(b, "1"));
	free(ask_send(b, "2"));
	a = ask_receive(b, 1);
	c = ask_receive_of(b, other, 5);
	CHECK_INT(c.u.receive.n, 1);
	ask_body(c.u.receive.msgs[0].body, "2");
	driver_req_fini(&a);
	driver_req_fini(&c);
	driver_close(other);
}

/* A queue in a file rings once by itself. A service does not: there it is the end
 * of the sealed draft that the others hear. */
static void send_noticeably(struct bed *b)
{
	struct driver_req req = {.op = DRIVER_DRAFT_SEAL};

	if (!b->source[0]) {
		free(ask_send(b, "x"));
		return;
	}
	req.u.draft.id = ask_draft(b, 0, "x", "x");
	CHECK_INT(ask(b, &req), 0);
	req = ask_draft_send(b, req.u.draft.id, "x", "x");
	driver_req_fini(&req);
}

CONTRACT(a_send_is_noticed_by_the_other_mount, BOTH)
{
	struct bed theirs = *b;
	struct driver *other;

	theirs.changes = 0;
	other = ask_open(&theirs, "other");
	for (unsigned i = 1; i <= 20; i++) {
		unsigned before = theirs.changes;

		send_noticeably(b);
		CHECK(bed_wait(b, &theirs.changes, before + 1));
	}
	driver_close(other);
}

/* Each answer to a send comes after the bell it rang. */
CONTRACT(an_own_send_is_no_change, BOTH)
{
	struct bed theirs = *b;
	struct driver *other = ask_open(&theirs, "other");

	theirs.d = other;
	send_noticeably(&theirs);
	CHECK(bed_wait(b, &b->changes, 1));
	b->changes = 0;
	for (unsigned i = 0; i < 50; i++)
		send_noticeably(b);
	CHECK_INT(b->changes, 0);
	send_noticeably(&theirs);
	CHECK(bed_wait(b, &b->changes, 1));
	CHECK_INT(b->changes, 1);
	driver_close(other);
}

CONTRACT(a_release_is_noticed, BOTH)
{
	struct bed theirs = *b;
	struct driver *other;
	struct driver_req got;
	unsigned before;

	free(ask_send(b, "x"));
	got = ask_receive(b, 1);
	other = ask_open(&theirs, "other");
	before = theirs.changes;
	CHECK_INT(ask_release(b, &got.u.receive.msgs[0], 0, 0), 0);
	CHECK(bed_wait(b, &theirs.changes, before + 1));
	driver_req_fini(&got);
	driver_close(other);
}

/* Whoever hears a bell asks the queue, and a service wants money for that. */
CONTRACT(a_claim_rings_nobody, BOTH)
{
	struct driver_req got, sync = {.op = DRIVER_SYNC};
	struct bed theirs = *b;
	struct driver *other;

	free(ask_send(b, "x"));
	got = ask_receive(b, 1);
	other = ask_open(&theirs, "other");
	CHECK_INT(loop_once(b->loop, 50 * NS_PER_MS), 0);
	theirs.changes = 0;
	for (int i = 0; i < 5; i++) {
		CHECK_INT(ask_claim(b, &got.u.receive.msgs[0], "who"), 0);
		CHECK_INT(ask_settle(b, SETTLE_UNCLAIM, &got.u.receive.msgs[0]), 0);
		CHECK_INT(ask(b, &sync), 0);
		CHECK_INT(loop_once(b->loop, 10 * NS_PER_MS), 0);
	}
	CHECK_INT(theirs.changes, 0);
	driver_req_fini(&got);
	driver_close(other);
}

CONTRACT(mounts_know_each_others_appetite, BOTH)
{
	struct driver_appetite full = {0}, hungry = {.hungry = true, .consumed_ns = 42};
	struct driver *other = ask_open(b, "other");
	struct driver *third = ask_open(b, "third");
	struct driver_req req;

	req = peers_of(b, b->d, full);
	CHECK_INT(req.u.peers.n_peers, 2);
	CHECK(!req.u.peers.any.hungry);
	peers_of(b, other, hungry);
	hungry.consumed_ns = 17;
	peers_of(b, third, hungry);
	req = peers_of(b, b->d, full);
	CHECK(req.u.peers.any.hungry);
	CHECK_INT(req.u.peers.any.consumed_ns, 42);
	peers_of(b, other, full);
	req = peers_of(b, b->d, full);
	CHECK_INT(req.u.peers.any.consumed_ns, 17);
	driver_close(third);
	req = peers_of(b, b->d, full);
	CHECK_INT(req.u.peers.n_peers, 1);
	CHECK(!req.u.peers.any.hungry);
	driver_close(other);
}

CONTRACT(the_same_identity_twice_is_two_mounts, BOTH)
{
	int64_t draft = ask_draft(b, 0, "mine", "x");
	struct driver *twin = ask_open(b, "bed");
	struct driver_req load = ask_load_of(b, twin);

	CHECK_INT(load.u.load.n_drafts, 0);
	driver_req_fini(&load);
	CHECK_INT(ask_draft(b, draft, "mine", "y"), draft);
	driver_close(twin);
}

CONTRACT(a_live_mount_keeps_what_it_has, BOTH)
{
	struct driver_req got, load;
	struct driver *other;

	free(ask_send(b, "x"));
	got = ask_receive(b, 1);
	ask_draft(b, 0, "mine", "x");
	other = ask_open(b, "other");
	load = ask_load_of(b, other);
	CHECK_INT(load.u.load.n_drafts + load.u.load.n_msgs, 0);
	ask_depth(b, 0, 1, 0);
	CHECK_INT(ask_settle(b, SETTLE_DELETE, &got.u.receive.msgs[0]), 0);
	driver_req_fini(&got);
	driver_req_fini(&load);
	driver_close(other);
}

/* What the child does: one message claimed, one unread, one draft. */
static int child_life(struct bed *b)
{
	struct driver_req got;

	b->loop = loop_create();
	CHECK(b->loop);
	b->d = ask_open(b, "child");
	free(ask_send(b, "claimed"));
	free(ask_send(b, "unread"));
	got = ask_receive(b, 2);
	CHECK_INT(ask_claim(b, &got.u.receive.msgs[0], "pid=17"), 0);
	ask_draft(b, 0, "cut.off", "half");
	driver_req_fini(&got);
	return 0;
}

/* A process that has the queue mounted, until it is killed. It never returns
 * into the tests: a failed check of its own ends it, and shows as no "ready". */
static pid_t fork_mount(struct bed *b)
{
	int ready[2];
	char c = 0;
	pid_t pid;

	CHECK(pipe(ready) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (setjmp(test_end) || child_life(b) || write(ready[1], "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) < 0)
		c = 0;
	close(ready[0]);
	CHECK_INT(c, 'r');
	return pid;
}

static void kill_mount(pid_t pid)
{
	int status;

	CHECK_INT(kill(pid, SIGKILL), 0);
	CHECK_INT(waitpid(pid, &status, 0), pid);
}

/* The bed as it is before any driver is opened. */
static void close_bed(struct bed *b)
{
	driver_close(b->d);
	b->d = NULL;
}

CONTRACT(a_killed_mount_leaves_its_unread_to_the_next, BED_NEAR | BOTH)
{
	struct driver_req got, load;
	pid_t pid;

	close_bed(b);
	pid = fork_mount(b);
	kill_mount(pid);
	b->d = ask_open(b, "bed");
	ask_depth(b, 1, 1, 0);
	load = ask_load_of(b, b->d);
	CHECK_INT(load.u.load.n_msgs, 0);
	CHECK_INT(load.u.load.n_drafts, 1);
	CHECK_STR(load.u.load.drafts[0].name, "cut.off");
	ask_body(load.u.load.drafts[0].body, "half");
	got = ask_receive(b, 5);
	CHECK_INT(got.u.receive.n, 1);
	ask_body(got.u.receive.msgs[0].body, "unread");
	CHECK_INT(got.u.receive.msgs[0].attempts, 0);
	driver_req_fini(&got);
	driver_req_fini(&load);
}

CONTRACT(a_killed_mount_comes_back_to_what_it_had, BED_NEAR | BOTH)
{
	struct driver_req load;
	pid_t pid;

	close_bed(b);
	pid = fork_mount(b);
	kill_mount(pid);
	b->d = ask_open(b, "child");
	load = ask_load_of(b, b->d);
	CHECK_INT(load.u.load.n_msgs, 2);
	CHECK_STR(load.u.load.msgs[0].record, "pid=17");
	CHECK_INT(load.u.load.n_drafts, 1);
	CHECK_INT(ask_settle(b, SETTLE_DELETE, &load.u.load.msgs[0]), 0);
	driver_req_fini(&load);
}

CONTRACT(its_claims_are_kept_for_it_while_others_open, BED_NEAR | BOTH)
{
	struct driver_req load;
	struct driver *child;
	pid_t pid;

	close_bed(b);
	pid = fork_mount(b);
	kill_mount(pid);
	b->d = ask_open(b, "bed");
	child = ask_open(b, "child");
	load = ask_load_of(b, child);
	CHECK_INT(load.u.load.n_msgs, 1);
	CHECK_STR(load.u.load.msgs[0].record, "pid=17");
	driver_req_fini(&load);
	driver_close(child);
}

/* Of a far queue only what was claimed, and whoever opens its state before. */
CONTRACT(a_killed_mount_comes_back_to_its_far_claims, DRIVER_FAR | BOTH)
{
	struct settle it = {.op = SETTLE_DELETE};
	struct driver_req load;
	struct driver *child;
	pid_t pid;

	close_bed(b);
	pid = fork_mount(b);
	kill_mount(pid);
	b->d = ask_open(b, "bed");
	child = ask_open(b, "child");
	load = ask_load_of(b, child);
	CHECK_INT(load.u.load.n_msgs, 1);
	CHECK_STR(load.u.load.msgs[0].record, "pid=17");
	it.id = load.u.load.msgs[0].id;
	it.receipt = load.u.load.msgs[0].receipt;
	/* In a file, what no driver there knows to be claimed was given back. */
	CHECK_INT(ask_settle_of(b, child, &it), b->source[0] ? 0 : -ESTALE);
	driver_req_fini(&load);
	load = ask_load_of(b, child);
	CHECK_INT(load.u.load.n_msgs, 0);
	driver_req_fini(&load);
	driver_close(child);
}

CONTRACT(the_end_of_a_mount_is_seen_by_those_that_live, BED_NEAR | BOTH)
{
	struct driver_req req;
	pid_t pid;

	close_bed(b);
	pid = fork_mount(b);
	b->d = ask_open(b, "bed");
	req = peers_of(b, b->d, (struct driver_appetite){0});
	CHECK_INT(req.u.peers.n_peers, 1);
	ask_depth(b, 0, 2, 0);
	kill_mount(pid);
	req = peers_of(b, b->d, (struct driver_appetite){0});
	CHECK_INT(req.u.peers.n_peers, 0);
	ask_depth(b, 1, 1, 0);
}

/* Opens the queue once nobody holds the other end of GO, sends ten, closes. */
static void late_life(struct bed *b, int number, int go)
{
	char c, identity[16];

	if (setjmp(test_end) || read(go, &c, 1) != 0)
		_exit(1);
	b->loop = loop_create(); /* the parent's has one epoll for both */
	CHECK(b->loop);
	snprintf(identity, sizeof(identity), "late%d", number);
	b->d = ask_open(b, identity);
	for (int i = 0; i < 10; i++)
		free(ask_send(b, "x"));
	driver_close(b->d);
	_exit(0);
}

CONTRACT(many_make_and_open_it_at_once, BOTH)
{
	pid_t pids[4];
	int go[2];

	close_bed(b);
	if (!b->source[0])
		CHECK_INT(unlink(b->path), 0);
	CHECK_INT(pipe(go), 0);
	for (int i = 0; i < 4; i++) {
		pids[i] = fork();
		CHECK(pids[i] >= 0);
		if (pids[i] == 0) {
			close(go[1]);
			late_life(b, i, go[0]);
		}
	}
	close(go[0]);
	close(go[1]);
	for (int i = 0; i < 4; i++) {
		int status;

		CHECK_INT(waitpid(pids[i], &status, 0), pids[i]);
		CHECK_INT(status, 0);
	}
	b->d = ask_open(b, "bed");
	ask_depth(b, 40, 0, 0);
}

CONTRACT(an_idle_mount_is_never_woken, BOTH)
{
	struct driver_req none = ask_receive(b, 1);
	uint64_t before;

	driver_req_fini(&none);
	CHECK_INT(loop_once(b->loop, 0), 0);
	before = loop_wakeups(b->loop);
	CHECK_INT(loop_once(b->loop, 50 * NS_PER_MS), 0);
	CHECK(loop_wakeups(b->loop) <= before + 1);
}
