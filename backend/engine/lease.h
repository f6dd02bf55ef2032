/* SPDX-License-Identifier: MIT */
/*
 * How long a message is kept, and what happens when its handling ends without
 * a deletion. Pure: values and the time in, decisions out.
 *
 * A claim is held by the process that opened the message (the opener), later
 * inherited by an ancestor of it. The lease is renewed at half-life:
 *   - for the opener while it lives, at most max_lease from the claim;
 *   - for an inheritor while it lives, at most inherit from the inheritance
 *     (or from its last touch), and within max_lease of the claim;
 *   - no longer than one visibility timeout once the inheritor went on (left):
 *     the message comes back then.
 */
#ifndef SPOOLFS_ENGINE_LEASE_H
#define SPOOLFS_ENGINE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

struct lease_policy {
	int64_t visibility_ns;
	int64_t max_lease_ns;
	int64_t inherit_ns;
	int64_t retry_delay_ns;
	unsigned max_attempts; /* failed handlings after which it is dead; 0 never */
};

#define LEASE_RETRY_DELAY_MAX_NS (INT64_C(900) * 1000000000) /* 15 min */

/* The facts about one claim. Times are monotonic; CLOCK_NEVER where not yet. */
struct lease_claim {
	int64_t claimed_ns;
	int64_t inherited_ns; /* ownership passed on, or the inheritor touched */
	int64_t left_ns;      /* the inheritor went on */
	int64_t lease_until_ns;
};

enum lease_do {
	LEASE_KEEP,  /* nothing until again_ns */
	LEASE_RENEW, /* renew for renew_ns now, then look again at again_ns */
	LEASE_END,   /* its time is over: settle it as LEASE_EXPIRED or _LEFT */
};

struct lease_decision {
	enum lease_do what;
	int64_t renew_ns; /* RENEW: for how long from now */
	int64_t again_ns; /* KEEP, RENEW: when to ask next */
};

/* What is to be done about a claim at NOW. */
struct lease_decision lease_decide(
	const struct lease_policy *p, const struct lease_claim *c, int64_t now_ns);

/* When an unread message of the window is to be renewed: at half-life. */
int64_t lease_renew_at(int64_t lease_until_ns, int64_t visibility_ns);

/* Why a handling ended without a deletion. */
enum lease_cause {
	LEASE_UNREAD,   /* closed without a read, or returned from the window */
	LEASE_KILLED,   /* owner ended by a signal, or no owner left */
	LEASE_FAILED,   /* the inheritor exited non-zero */
	LEASE_RELEASED, /* given back on request, with a delay or without */
	LEASE_EXPIRED,  /* max_lease or inherit ran out, or the lease was lost */
	LEASE_LEFT,     /* the inheritor went on and never came back to it */
};

struct lease_outcome {
	bool bury;         /* a dead letter now: max_attempts reached */
	unsigned attempts; /* the new count */
	int64_t delay_ns;  /* until it is ready again */
};

/*
 * ATTEMPTS failed handlings came before. DELAY_NS is what LEASE_RELEASED asked
 * for (-1: the usual retry delay), else ignored. LEASE_UNREAD is no attempt and
 * has no delay. LEASE_KILLED waits nothing the first time. LEASE_LEFT: SINCE_NS
 * is how long ago it was left; the retry delay counts from then.
 */
struct lease_outcome lease_outcome(const struct lease_policy *p, enum lease_cause cause,
	unsigned attempts, int64_t delay_ns, int64_t since_ns);

/* retry_delay, doubled for each attempt after the first, at most 15 min
 * (or retry_delay itself where that is longer). ATTEMPTS >= 1. */
int64_t lease_retry_delay(const struct lease_policy *p, unsigned attempts);

/* One word for logs, dead letter reasons and metrics: "killed", "failed", ... */
const char *lease_cause_name(enum lease_cause cause);

#endif
