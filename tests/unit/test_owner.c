/* SPDX-License-Identifier: MIT */
#include "backend/engine/owner.h"

#include <errno.h>
#include <stdlib.h>

#include "tests/test.h"

#define BOOT "0b6f3c52-6a0e-4d43-9f3c-0f2d8c1f6a77"

/*
 * A terminal and its shell, with two workers, each with a reader:
 *
 *	init 1 (session 1)
 *	  sshd 50 (session 50)
 *	    shell 100 (session 100)
 *	      worker 110 ── sub 111 ── cat 112
 *	      worker 120 ── cat 121
 */
enum { INIT, SSHD, SHELL, WORKER1, SUB, CAT1, WORKER2, CAT2, N };

struct tree {
	struct proc p[N];
	struct owner_chain chain;
};

static struct proc proc(pid_t pid, pid_t session, struct proc *parent)
{
	return (struct proc){
		.pid = pid,
		.session = session,
		.start = 1000u + (unsigned)pid,
		.alive = true,
		.parent = parent,
	};
}

static void setup(struct tree *t)
{
	t->p[INIT] = proc(1, 1, NULL);
	t->p[SSHD] = proc(50, 50, &t->p[INIT]);
	t->p[SHELL] = proc(100, 100, &t->p[SSHD]);
	t->p[WORKER1] = proc(110, 100, &t->p[SHELL]);
	t->p[SUB] = proc(111, 100, &t->p[WORKER1]);
	t->p[CAT1] = proc(112, 100, &t->p[SUB]);
	t->p[WORKER2] = proc(120, 100, &t->p[SHELL]);
	t->p[CAT2] = proc(121, 100, &t->p[WORKER2]);
	owner_chain_init(&t->chain, &t->p[CAT1]);
}

static bool may(const struct tree *t, int who)
{
	return owner_may(&t->chain, &t->p[who]);
}

TEST(chain_ends_with_the_session_leader)
{
	struct tree t;

	setup(&t);
	CHECK_INT(t.chain.n, 4);
	CHECK(t.chain.has_leader);
	CHECK(t.chain.p[0] == &t.p[CAT1]);
	CHECK(t.chain.p[3] == &t.p[SHELL]);
}

TEST(owner_is_the_first_alive)
{
	struct tree t;

	setup(&t);
	CHECK_INT(owner_index(&t.chain), 0);
	t.p[CAT1].alive = false;
	CHECK_INT(owner_index(&t.chain), 1);
	t.p[SUB].alive = t.p[WORKER1].alive = false;
	CHECK_INT(owner_index(&t.chain), 3);
	t.p[SHELL].alive = false;
	CHECK_INT(owner_index(&t.chain), -1);
}

TEST(relatives_below_the_leader_may)
{
	struct tree t;

	setup(&t);
	CHECK(may(&t, CAT1) && may(&t, SUB) && may(&t, WORKER1));
	CHECK(!may(&t, SHELL));
	CHECK(!may(&t, WORKER2) && !may(&t, CAT2));
	CHECK(!may(&t, SSHD) && !may(&t, INIT));
}

TEST(descendants_of_the_owner_may)
{
	struct tree t;
	struct proc rm = proc(130, 100, &t.p[WORKER1]);
	struct proc child = proc(131, 100, &t.p[CAT1]);

	setup(&t);
	CHECK(owner_may(&t.chain, &child));
	/* Not while the reader under a sibling lives. */
	CHECK(!owner_may(&t.chain, &rm));
	t.p[CAT1].alive = t.p[SUB].alive = false;
	CHECK(owner_may(&t.chain, &rm));
	CHECK(owner_may(&t.chain, &child));
	CHECK(!may(&t, CAT2));
}

TEST(leader_owns_as_the_last_one_alive)
{
	struct tree t;

	setup(&t);
	t.p[CAT1].alive = t.p[SUB].alive = t.p[WORKER1].alive = false;
	CHECK(may(&t, SHELL));
	CHECK(may(&t, CAT2)); /* below the shell, which owns it now */
	CHECK(!may(&t, SSHD));
}

TEST(nobody_alive_nobody_may)
{
	struct tree t;

	setup(&t);
	t.p[CAT1].alive = t.p[SUB].alive = t.p[WORKER1].alive = false;
	t.p[SHELL].alive = false;
	CHECK(!may(&t, CAT2) && !may(&t, SHELL) && !may(&t, SSHD));
}

TEST(setsid_opener_counts_for_its_parents_session)
{
	struct tree t;
	struct proc cat = proc(140, 140, &t.p[WORKER1]);

	setup(&t);
	owner_chain_init(&t.chain, &cat);
	CHECK_INT(t.chain.n, 3);
	CHECK(t.chain.has_leader);
	CHECK(t.chain.p[1] == &t.p[WORKER1] && t.chain.p[2] == &t.p[SHELL]);
	CHECK(may(&t, WORKER1) && !may(&t, WORKER2));
}

TEST(setsid_opener_of_a_leader)
{
	struct tree t;
	struct proc cat = proc(140, 140, &t.p[SHELL]);

	setup(&t);
	owner_chain_init(&t.chain, &cat);
	CHECK_INT(t.chain.n, 2);
	CHECK(t.chain.has_leader);
	cat.alive = false;
	CHECK_INT(owner_index(&t.chain), 1);
	CHECK(may(&t, SHELL));
}

TEST(a_service_does_not_bequeath_to_init)
{
	struct tree t;
	struct proc service = proc(60, 60, &t.p[INIT]);
	struct proc lone = proc(70, 70, NULL);

	setup(&t);
	owner_chain_init(&t.chain, &service);
	CHECK_INT(t.chain.n, 1);
	CHECK(!t.chain.has_leader);
	owner_chain_init(&t.chain, &lone);
	CHECK_INT(t.chain.n, 1);
	CHECK(owner_may(&t.chain, &lone));
}

TEST(init_as_the_shell_of_a_container_does)
{
	struct tree t;
	struct proc cat = proc(7, 1, &t.p[INIT]);

	setup(&t);
	owner_chain_init(&t.chain, &cat);
	CHECK_INT(t.chain.n, 2);
	CHECK(t.chain.has_leader);
}

TEST(an_adopted_orphan_ends_its_chain)
{
	struct tree t;
	struct proc orphan = proc(150, 149, &t.p[INIT]);
	struct proc cat = proc(151, 149, &orphan);

	setup(&t);
	owner_chain_init(&t.chain, &cat);
	CHECK_INT(t.chain.n, 2);
	CHECK(!t.chain.has_leader);
	CHECK(may(&t, INIT) == false);
	CHECK(owner_may(&t.chain, &orphan)); /* no leader recorded above it */
}

TEST(unseen_callers_share)
{
	struct tree t;
	struct proc unseen = {.alive = true};

	setup(&t);
	CHECK(!owner_may(&t.chain, &unseen));
	owner_chain_init(&t.chain, &unseen);
	CHECK_INT(t.chain.n, 1);
	CHECK(!t.chain.has_leader);
	CHECK(owner_may(&t.chain, &unseen));
	CHECK(!may(&t, CAT1));
}

TEST(a_used_again_number_is_somebody_else)
{
	struct tree t;
	struct proc later;

	setup(&t);
	later = proc(112, 100, &t.p[SHELL]);
	later.start++;
	CHECK(!owner_may(&t.chain, &later));
	later.start--; /* another record of the same process */
	CHECK(owner_may(&t.chain, &later));
}

TEST(an_empty_chain_is_nobodys)
{
	struct owner_chain none = {0};
	struct proc p = proc(10, 10, NULL);

	CHECK_INT(owner_index(&none), -1);
	CHECK(!owner_may(&none, &p));
}

TEST(a_deep_tree_is_cut_at_the_top)
{
	struct proc p[OWNER_CHAIN_MAX + 10];
	struct owner_chain chain;

	for (int i = 0; i < OWNER_CHAIN_MAX + 10; i++)
		p[i] = proc(200 + i, 200, i ? &p[i - 1] : NULL);
	owner_chain_init(&chain, &p[OWNER_CHAIN_MAX + 9]);
	CHECK_INT(chain.n, OWNER_CHAIN_MAX);
	CHECK(!chain.has_leader);
	CHECK_INT(chain.p[OWNER_CHAIN_MAX - 1]->pid, 210);
}

TEST(record_comes_back)
{
	struct tree t;
	struct owner_record rec;
	char text[200];

	setup(&t);
	t.p[CAT1].start = UINT64_MAX;
	CHECK_INT(owner_record_format(&t.chain, BOOT, text, sizeof(text)), 0);
	CHECK_INT(owner_record_parse(text, &rec), 0);
	CHECK_STR(rec.boot, BOOT);
	CHECK_INT(rec.n, 4);
	CHECK(rec.has_leader);
	CHECK(rec.p[0].start == UINT64_MAX);
	CHECK_INT(rec.p[3].pid, 100);
	CHECK_INT(rec.p[3].start, 1100);
}

TEST(record_needs_its_room)
{
	struct tree t;
	struct owner_record rec;
	char text[200];
	size_t need;

	setup(&t);
	CHECK_INT(owner_record_format(&t.chain, BOOT, text, sizeof(text)), 0);
	need = strlen(text) + 1;
	for (size_t len = 0; len < need; len++) {
		char *exact = malloc(len + !len);
		int err;

		CHECK(exact);
		err = owner_record_format(&t.chain, BOOT, exact, len);
		free(exact);
		CHECK_INT(err, -ENOSPC);
	}
	CHECK_INT(owner_record_format(&t.chain, BOOT, text, need), 0);
	CHECK_INT(owner_record_parse(text, &rec), 0);
}

TEST(record_refuses_rubbish)
{
	static const char *const bad[] = {"", "boot", "boot ", "boot 1",
		"boot 1:", "boot :1", "boot 1:2 ", "boot 1:2x", "boot 1:2,3:4",
		"boot -1:2", "boot 1:-2", "boot +1:2", "boot  1:2", "boot 1:2* 3:4",
		"boot 1:2*", "boot 1: 2", " 1:2", "boot 4294967296:1",
		"boot 1:18446744073709551616",
		"0123456789012345678901234567890123456789 1:2"};
	struct owner_record rec;
	char text[500] = "boot";

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		if (owner_record_parse(bad[i], &rec) != -EINVAL)
			test_fail(__FILE__, __LINE__, "\"%s\" was taken", bad[i]);
	}
	CHECK_INT(owner_record_parse("boot 0:0", &rec), 0);
	for (int i = 0; i < OWNER_CHAIN_MAX; i++)
		strcat(text, " 1:2");
	CHECK_INT(owner_record_parse(text, &rec), 0);
	strcat(text, " 1:2");
	CHECK_INT(owner_record_parse(text, &rec), -EINVAL);
}
