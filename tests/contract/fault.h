/* SPDX-License-Identifier: MIT */
/*
 * A driver around a driver, which fails when it is told to.
 *
 * It passes everything on, and can do so wrongly: it answers with an error and
 * does nothing (the request was lost), it does the work and answers with an
 * error (the answer was lost), or it keeps the answer until it is asked for it.
 */
#ifndef SPOOLFS_TESTS_FAULT_H
#define SPOOLFS_TESTS_FAULT_H

#include "backend/drivers/driver.h"

enum fault_kind {
	FAULT_FAIL, /* not done, answered with an error */
	FAULT_LOSE, /* done, answered with an error, without its outputs */
	FAULT_HOLD, /* done, answered by fault_release() */
};

#define FAULT_ALWAYS ~0U

/* Owns INNER from now on, also when it returns NULL (no memory). */
struct driver *fault_create(struct driver *inner, struct loop *loop);
/*
 * From the NTH request of kind OP on (1: the next one), TIMES of them meet
 * FAULT; FAIL and LOSE answer ERR. One rule for each op: replaces the earlier.
 * TIMES 0 ends it.
 */
void fault_rule(struct driver *d, enum driver_op op, enum fault_kind fault, unsigned nth,
	unsigned times, int err);
/* Gives the answers held so far, in the order in which they were ready. Not from
 * inside a submit. Returns how many. */
unsigned fault_release(struct driver *d);
/* How many requests of kind OP were submitted. */
unsigned fault_seen(const struct driver *d, enum driver_op op);

#endif
