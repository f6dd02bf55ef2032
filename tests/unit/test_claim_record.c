/* SPDX-License-Identifier: MIT */
#include "backend/engine/claim_record.h"

#include <errno.h>

#include "tests/test.h"

#define OWNER "8f2b6c1e 4711:1234567 4700:1000000*"

static int parse(const char *text, struct claim_record *r, struct owner_record *owner)
{
	static char copy[600];

	snprintf(copy, sizeof(copy), "%s", text);
	return claim_record_parse(copy, r, owner);
}

static void round_trip(const char *text)
{
	struct owner_chain chain = {0};
	struct proc procs[OWNER_CHAIN_MAX] = {0};
	struct owner_record owner;
	struct claim_record r;
	char out[600];

	CHECK_INT(parse(text, &r, &owner), 0);
	chain.n = owner.n;
	chain.has_leader = owner.has_leader;
	for (unsigned i = 0; i < owner.n; i++) {
		procs[i].pid = owner.p[i].pid;
		procs[i].start = owner.p[i].start;
		chain.p[i] = &procs[i];
	}
	CHECK_INT(claim_record_format(&r, &chain, owner.boot, out, sizeof(out)), 0);
	CHECK_STR(out, text);
	for (size_t len = 1; len <= strlen(text); len++)
		CHECK_INT(claim_record_format(&r, &chain, owner.boot, out, len), -ENOSPC);
}

TEST(there_and_back)
{
	round_trip("1795148261000000000 0 00 " OWNER);
	round_trip("0 1795148261000000000 10 boot 0:0");
	round_trip(
		"1795148261000000000 9223372036854775807 01 " OWNER "\nother name.xml");
	round_trip("1 0 11 " OWNER "\n.hidden");
}

TEST(what_each_part_is)
{
	struct owner_record owner;
	struct claim_record r;

	CHECK_INT(parse("12 34 10 " OWNER "\nalias", &r, &owner), 0);
	CHECK_INT(r.claimed_ns, 12);
	CHECK_INT(r.left_ns, 34);
	CHECK(r.read && !r.explicit);
	CHECK_STR(r.alias, "alias");
	CHECK_INT(owner.n, 2);
	CHECK(owner.has_leader);
}

/* A time that is negative, or cannot be held, would overflow what is counted. */
TEST(what_is_no_record_is_refused)
{
	static const char *const bad[] = {"", "x", "1 0 00", "1 0 00 ", "-1 0 00 " OWNER,
		"1 -1 00 " OWNER, "-9223372036854775808 0 00 " OWNER,
		"9223372036854775808 0 00 " OWNER, "1 0 02 " OWNER, "1 0 0 " OWNER,
		"1  0 00 " OWNER, "1 0 000 " OWNER, "1\n0 00 " OWNER};
	struct owner_record owner;
	struct claim_record r;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_INT(parse(bad[i], &r, &owner), -EINVAL);
}

/* One slash in a name, and the kernel shows nothing of the directory. */
TEST(an_alias_is_the_name_of_a_file)
{
	static const char *const bad[] = {"", ".", "..", "/", "../x", "a/b"};
	struct owner_record owner;
	struct claim_record r;
	char text[600];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "1 0 00 " OWNER "\n%s", bad[i]);
		CHECK_INT(parse(text, &r, &owner), -EINVAL);
	}
	snprintf(text, sizeof(text), "1 0 00 " OWNER "\n%0256d", 0);
	CHECK_INT(parse(text, &r, &owner), -EINVAL);
	snprintf(text, sizeof(text), "1 0 00 " OWNER "\n%0255d", 0);
	CHECK_INT(parse(text, &r, &owner), 0);
}
