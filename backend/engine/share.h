/* SPDX-License-Identifier: MIT */
/*
 * How several mounts of one queue share its messages. Pure.
 *
 * Each mount holds leases on a window of unread messages, so that listing and
 * claiming need no round trip. A mount nobody reads from must not starve one
 * with a consumer; a mount that is alone must not give anything back (its
 * listing would flicker); two idle mounts must not pass messages to and fro.
 *
 * Rule: a mount is hungry when it has nothing unread and would take messages.
 * When another is hungry, a mount that holds unread ones gives back half of
 * them (rounded up), or all, when the hungry one has claimed something since
 * this mount last did and this mount has had no claim for a while. A mount
 * that gave its last message away tells its own hunger only after one
 * visibility timeout, unless a consumer shows up first.
 */
#ifndef SPOOLFS_ENGINE_SHARE_H
#define SPOOLFS_ENGINE_SHARE_H

#include <stdbool.h>
#include <stdint.h>

struct share_facts {
	unsigned unread;     /* messages in the own window, unclaimed */
	int64_t consumed_ns; /* wall clock of the last own claim; 0 never */
	int64_t gave_ns;     /* wall clock of the last giving back; 0 never */
	bool waiting;        /* a reader waits in .next, here */
	int64_t visibility_ns;
	int64_t now_ns; /* wall clock */
};

/* Whether this mount is to tell the others that it is hungry. */
bool share_is_hungry(const struct share_facts *f);
/* How many unread messages to give back, given that another mount is hungry
 * and last claimed something at PEER_CONSUMED_NS (0 never). */
unsigned share_give(const struct share_facts *f, int64_t peer_consumed_ns);

#endif
