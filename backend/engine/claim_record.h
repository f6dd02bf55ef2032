/* SPDX-License-Identifier: MIT */
/*
 * A claim as text, which a driver keeps with the message: what the next daemon
 * has to know of it. Pure.
 *
 *	CLAIMED LEFT READ+EXPLICIT BOOT PID:START ...[\nALIAS]
 */
#ifndef SPOOLFS_ENGINE_CLAIM_RECORD_H
#define SPOOLFS_ENGINE_CLAIM_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "owner.h"

/* Times are wall clock, and never negative. */
struct claim_record {
	int64_t claimed_ns;
	int64_t left_ns; /* its owner went on to other work then; 0: not yet */
	bool read, explicit;
	const char *alias; /* NULL: it has its own name */
};

/* R and CHAIN as text. 0 or -ENOSPC. */
int claim_record_format(const struct claim_record *r, const struct owner_chain *chain,
	const char *boot, char *buf, size_t len);
/*
 * The same back; TEXT is changed, and r->alias is a part of it. 0, or -EINVAL when
 * it is no record: a time is negative, or the alias is no name of a file.
 */
int claim_record_parse(char *text, struct claim_record *r, struct owner_record *owner);

#endif
