/* SPDX-License-Identifier: MIT */
#include "backend/engine/lease.h"

#include "backend/base/clock.h"
#include "tests/test.h"

#define S NS_PER_S

static const struct lease_policy policy = {
	.visibility_ns = 30 * S,
	.max_lease_ns = 12 * 3600 * S,
	.inherit_ns = 900 * S,
	.retry_delay_ns = 30 * S,
	.max_attempts = 5,
};

/* Claimed at 1000 s, with a lease of 30 s. */
static struct lease_claim claim(void)
{
	return (struct lease_claim){
		.claimed_ns = 1000 * S,
		.inherited_ns = CLOCK_NEVER,
		.left_ns = CLOCK_NEVER,
		.lease_until_ns = 1030 * S,
	};
}

static struct lease_decision decide(const struct lease_claim *c, int64_t now_s)
{
	return lease_decide(&policy, c, now_s * S);
}

/* Does what it is told, as the engine would, and says when the claim ended. */
static int64_t run_to_end(struct lease_claim *c, int64_t now_ns)
{
	for (int i = 0; i < 10000; i++) {
		struct lease_decision d = lease_decide(&policy, c, now_ns);

		if (d.what == LEASE_END)
			return now_ns;
		if (d.what == LEASE_RENEW)
			c->lease_until_ns = now_ns + d.renew_ns;
		CHECK(d.again_ns > now_ns);
		now_ns = d.again_ns;
		/* Whatever comes, the lease is held when it is looked at. */
		CHECK(now_ns < c->lease_until_ns);
	}
	return CLOCK_NEVER;
}

TEST(is_renewed_at_half_life)
{
	struct lease_claim c = claim();
	struct lease_decision d = decide(&c, 1014);

	CHECK_INT(d.what, LEASE_KEEP);
	CHECK_INT(d.again_ns, 1015 * S);
	d = decide(&c, 1015);
	CHECK_INT(d.what, LEASE_RENEW);
	CHECK_INT(d.renew_ns, 30 * S);
	CHECK_INT(d.again_ns, 1030 * S);
}

TEST(is_renewed_late_after_a_suspend)
{
	struct lease_claim c = claim();

	CHECK_INT(decide(&c, 5000).what, LEASE_RENEW);
}

TEST(ends_at_max_lease)
{
	struct lease_claim c = claim();

	CHECK_INT(run_to_end(&c, 1000 * S), (1000 + 12 * 3600) * S);
}

TEST(ends_at_inherit)
{
	struct lease_claim c = claim();

	c.inherited_ns = 1010 * S;
	CHECK_INT(run_to_end(&c, 1010 * S), 1910 * S);
}

TEST(inherit_never_outlasts_max_lease)
{
	struct lease_claim c = claim();

	c.inherited_ns = (1000 + 12 * 3600 - 60) * S;
	c.lease_until_ns = c.inherited_ns + 20 * S;
	CHECK_INT(run_to_end(&c, c.inherited_ns), (1000 + 12 * 3600) * S);
}

TEST(left_comes_back_one_visibility_later)
{
	for (int64_t left_s = 1000; left_s < 1015; left_s++) {
		struct lease_claim c = claim();

		c.inherited_ns = 1000 * S;
		c.left_ns = left_s * S;
		CHECK_INT(run_to_end(&c, left_s * S), (left_s + 30) * S);
		/* It was renewed for no longer than needed. */
		CHECK(c.lease_until_ns <= (left_s + 60) * S);
	}
}

TEST(a_long_lease_is_not_renewed)
{
	struct lease_claim c = claim();
	struct lease_decision d;

	c.inherited_ns = 1000 * S;
	c.lease_until_ns = 3000 * S;
	d = decide(&c, 1001);
	CHECK_INT(d.what, LEASE_KEEP);
	CHECK_INT(d.again_ns, 1900 * S);
}

TEST(unread_is_renewed_at_half_life)
{
	CHECK_INT(lease_renew_at(1030 * S, 30 * S), 1015 * S);
	CHECK_INT(lease_renew_at(CLOCK_NEVER, 30 * S), CLOCK_NEVER);
}

/* man: back-delay */
TEST(retry_delay_doubles_up_to_15_minutes)
{
	static const int want_s[] = {30, 60, 120, 240, 480, 900, 900};
	struct lease_policy p = policy;

	for (unsigned i = 0; i < sizeof(want_s) / sizeof(*want_s); i++)
		CHECK_INT(lease_retry_delay(&policy, i + 1), want_s[i] * S);
	CHECK_INT(lease_retry_delay(&policy, UINT32_MAX), 900 * S);
	p.retry_delay_ns = 3600 * S;
	CHECK_INT(lease_retry_delay(&p, 3), 3600 * S);
	p.retry_delay_ns = 0;
	CHECK_INT(lease_retry_delay(&p, 3), 0);
}

TEST(unread_is_no_attempt)
{
	struct lease_outcome o = lease_outcome(&policy, LEASE_UNREAD, 4, -1, 0);

	CHECK(!o.bury);
	CHECK_INT(o.attempts, 4);
	CHECK_INT(o.delay_ns, 0);
}

TEST(killed_is_immediate_once)
{
	CHECK_INT(lease_outcome(&policy, LEASE_KILLED, 0, -1, 0).delay_ns, 0);
	CHECK_INT(lease_outcome(&policy, LEASE_KILLED, 1, -1, 0).delay_ns, 60 * S);
	CHECK_INT(lease_outcome(&policy, LEASE_KILLED, 0, -1, 0).attempts, 1);
}

TEST(failed_expired_and_released_wait)
{
	CHECK_INT(lease_outcome(&policy, LEASE_FAILED, 0, 5 * S, 0).delay_ns, 30 * S);
	CHECK_INT(lease_outcome(&policy, LEASE_EXPIRED, 2, 5 * S, 0).delay_ns, 120 * S);
	CHECK_INT(lease_outcome(&policy, LEASE_RELEASED, 0, -1, 0).delay_ns, 30 * S);
}

TEST(released_waits_as_long_as_asked)
{
	CHECK_INT(lease_outcome(&policy, LEASE_RELEASED, 0, 0, 0).delay_ns, 0);
	CHECK_INT(lease_outcome(&policy, LEASE_RELEASED, 0, 7 * S, 0).delay_ns, 7 * S);
	CHECK_INT(lease_outcome(&policy, LEASE_RELEASED, 0, 7200 * S, 0).delay_ns,
		7200 * S);
}

/* man: lease-left */
TEST(left_counts_from_the_leaving)
{
	CHECK_INT(lease_outcome(&policy, LEASE_LEFT, 0, -1, 10 * S).delay_ns, 20 * S);
	CHECK_INT(lease_outcome(&policy, LEASE_LEFT, 0, -1, 30 * S).delay_ns, 0);
	CHECK_INT(lease_outcome(&policy, LEASE_LEFT, 1, -1, 45 * S).delay_ns, 15 * S);
	CHECK_INT(lease_outcome(&policy, LEASE_LEFT, 0, -1, 300 * S).delay_ns, 0);
}

TEST(the_fifth_failure_buries)
{
	struct lease_policy p = policy;
	struct lease_outcome o = {0};

	for (unsigned i = 1; i <= 5; i++) {
		CHECK(!o.bury);
		o = lease_outcome(&policy, LEASE_FAILED, o.attempts, -1, 0);
		CHECK_INT(o.attempts, i);
	}
	CHECK(o.bury);
	p.max_attempts = 0;
	CHECK(!lease_outcome(&p, LEASE_FAILED, 1000, -1, 0).bury);
}

TEST(every_cause_has_a_word)
{
	CHECK_STR(lease_cause_name(LEASE_UNREAD), "unread");
	CHECK_STR(lease_cause_name(LEASE_KILLED), "killed");
	CHECK_STR(lease_cause_name(LEASE_FAILED), "failed");
	CHECK_STR(lease_cause_name(LEASE_RELEASED), "released");
	CHECK_STR(lease_cause_name(LEASE_EXPIRED), "expired");
	CHECK_STR(lease_cause_name(LEASE_LEFT), "left");
}
