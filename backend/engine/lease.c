/* SPDX-License-Identifier: MIT */
/*
 * A claim has one limit, the earliest of all that apply to it. Until then the
 * lease is renewed for a whole visibility timeout whenever half of it is used
 * up and it would not outlast the limit. So at the limit the lease still
 * holds, and the message can be given back with its new count and delay; a
 * lease left to lapse would come back at once and uncounted.
 *
 * That holds for a message the inheritor has left, too: without a last renewal
 * it would come back after half a visibility timeout, not the promised whole.
 */
#include "lease.h"

#include "../base/clock.h"

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t limit_ns(const struct lease_policy *p, const struct lease_claim *c)
{
	int64_t limit = clock_add(c->claimed_ns, p->max_lease_ns);

	limit = earlier(limit, clock_add(c->inherited_ns, p->inherit_ns));
	return earlier(limit, clock_add(c->left_ns, p->visibility_ns));
}

/* With an eighth to spare, so that the settling reaches the backend in time. */
static bool outlasts(const struct lease_policy *p, int64_t lease_until_ns, int64_t limit)
{
	return lease_until_ns - p->visibility_ns / 8 >= limit;
}

int64_t lease_renew_at(int64_t lease_until_ns, int64_t visibility_ns)
{
	if (lease_until_ns == CLOCK_NEVER)
		return CLOCK_NEVER;
	return lease_until_ns - visibility_ns / 2;
}

struct lease_decision lease_decide(
	const struct lease_policy *p, const struct lease_claim *c, int64_t now_ns)
{
	struct lease_decision d = {.what = LEASE_KEEP, .again_ns = CLOCK_NEVER};
	int64_t limit = limit_ns(p, c);
	int64_t renew_at = lease_renew_at(c->lease_until_ns, p->visibility_ns);

	if (now_ns >= limit) {
		d.what = LEASE_END;
		return d;
	}
	d.again_ns = limit;
	if (outlasts(p, c->lease_until_ns, limit))
		return d;
	if (now_ns >= renew_at) {
		d.what = LEASE_RENEW;
		d.renew_ns = p->visibility_ns;
		renew_at = lease_renew_at(
			clock_add(now_ns, p->visibility_ns), p->visibility_ns);
	}
	d.again_ns = earlier(limit, renew_at);
	return d;
}

int64_t lease_retry_delay(const struct lease_policy *p, unsigned attempts)
{
	int64_t max = LEASE_RETRY_DELAY_MAX_NS;
	int64_t delay = p->retry_delay_ns;

	if (delay >= max)
		return delay;
	while (attempts-- > 1 && delay > 0 && delay < max)
		delay *= 2;
	return earlier(delay, max);
}

/* ATTEMPTS is the new count, this one included. */
static int64_t delay_of(const struct lease_policy *p, enum lease_cause cause,
	unsigned attempts, int64_t delay_ns, int64_t since_ns)
{
	int64_t delay = lease_retry_delay(p, attempts);

	if (cause == LEASE_KILLED && attempts == 1)
		return 0;
	if (cause == LEASE_RELEASED && delay_ns >= 0)
		return delay_ns;
	if (cause == LEASE_LEFT)
		return delay > since_ns ? delay - since_ns : 0;
	return delay;
}

struct lease_outcome lease_outcome(const struct lease_policy *p, enum lease_cause cause,
	unsigned attempts, int64_t delay_ns, int64_t since_ns)
{
	struct lease_outcome o = {.attempts = attempts};

	if (cause == LEASE_UNREAD)
		return o;
	o.attempts++;
	o.bury = p->max_attempts && o.attempts >= p->max_attempts;
	if (!o.bury)
		o.delay_ns = delay_of(p, cause, o.attempts, delay_ns, since_ns);
	return o;
}

const char *lease_cause_name(enum lease_cause cause)
{
	static const char *const names[] = {
		[LEASE_UNREAD] = "unread",
		[LEASE_KILLED] = "killed",
		[LEASE_FAILED] = "failed",
		[LEASE_RELEASED] = "released",
		[LEASE_EXPIRED] = "expired",
		[LEASE_LEFT] = "left",
	};

	return names[cause];
}
