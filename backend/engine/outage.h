/* SPDX-License-Identifier: MIT */
/*
 * Whether it is the messages that fail, or everything. Pure.
 *
 * A consumer whose database is away fails with every message it is given, and
 * all of them would be dead letters soon. So when some different messages have
 * failed and none was handled in between, an outage is suspected. From then on
 *   - messages are handed out one at a time (a probe), after a pause that grows
 *     with each one that fails;
 *   - what fails is no attempt, and so cannot become a dead letter;
 *   - the first handling that succeeds ends it, and all goes on as before.
 * Which message is the probe is left to chance, so that a row of bad ones at the
 * head of the queue cannot pass for an outage for long.
 *
 * One bad message that fails again and again is no outage, nor are a few: only
 * different ones count. But a queue of nothing but bad messages looks like one,
 * so the excuse holds for a bounded time: then failures are attempts again.
 */
#ifndef SPOOLFS_ENGINE_OUTAGE_H
#define SPOOLFS_ENGINE_OUTAGE_H

#include <stdbool.h>
#include <stdint.h>

#define OUTAGE_SUSPECT_MAX 16

struct outage_config {
	unsigned suspect_after; /* different messages; 1..OUTAGE_SUSPECT_MAX */
	int64_t floor_ns;       /* the first pause; doubled each time */
	int64_t ceiling_ns;
	int64_t excuse_ns; /* for so long failures are no attempts */
};

struct outage {
	struct outage_config cfg;
	uint64_t failed[OUTAGE_SUSPECT_MAX]; /* ids since the last success */
	unsigned n_failed;
	bool suspected, probing;
	int64_t since_ns, pause_ns, next_ns;
};

/* What is used: 5 messages, pauses of 1 s to 30 s, excused for 1 h. */
extern const struct outage_config outage_defaults;

void outage_init(struct outage *o, const struct outage_config *cfg);
bool outage_suspected(const struct outage *o);
/* Whether ID has failed and nothing was handled since. Others are to be tried first:
 * whether all fail is then known before one has used up its attempts. */
bool outage_has_failed(const struct outage *o, uint64_t id);
/* When the next handling may start: NOW, later, or CLOCK_NEVER while the outcome
 * of a probe is awaited. */
int64_t outage_next(const struct outage *o, int64_t now_ns);
/* One starts, as outage_next() allows. True: it is a probe. */
bool outage_started(struct outage *o);
/*
 * It ended; ID stands for the message. True: it counts. False: a failure that is
 * no attempt.
 */
bool outage_ended(struct outage *o, uint64_t id, bool ok, bool probe, int64_t now_ns);
/* The probe did not take place, or how it ended says nothing. */
void outage_forget(struct outage *o, bool probe);
/* Nothing can be started here at all (no memory, no processes): pause. */
void outage_force(struct outage *o, bool probe, int64_t now_ns);
/* Which of N messages is to be the next one: always the first, but for a probe.
 * RANDOM in [0, 1). */
unsigned outage_pick(const struct outage *o, unsigned n, double random);

#endif
