/* SPDX-License-Identifier: MIT */
/*
 * A place to try a driver in: an empty queue, a loop, and calls that wait.
 *
 * All waiting is for a state, and gives up after ten seconds of real time. Tests
 * include ask.h, which checks what is asked here.
 */
#ifndef SPOOLFS_TESTS_BED_H
#define SPOOLFS_TESTS_BED_H

#include "backend/base/clock.h"
#include "backend/base/loop.h"
#include "backend/drivers/driver.h"

#define LEASE_NS (30 * NS_PER_S)
#define BED_ERR  256

struct bed {
	const struct bed_factory *factory; /* which driver is tried */
	char dir[64];
	char path[80]; /* of the queue */
	struct loop *loop;
	struct driver *d;
	unsigned changes; /* how often on_change was called */
};

/* Beside the capabilities: the leases of a mount that ended are given to its next
 * life, or back; a service lets them run out. */
#define BED_NEAR (1u << 30)

/* The drivers under test. */
struct bed_factory {
	const char *name;
	unsigned caps;
	/* Opens the queue of B as IDENTITY; NULL when that fails. */
	struct driver *(*open)(struct bed *b, const char *identity);
};

extern const struct bed_factory bed_factories[]; /* ended by name NULL */

/* An empty queue, opened by F as "bed"; F NULL: not opened, no driver. */
bool bed_init(struct bed *b, const struct bed_factory *f);
void bed_fini(struct bed *b);
/* The SQLite driver on the queue of B; ERR has BED_ERR bytes. */
int bed_open(struct bed *b, const char *identity, struct driver **out, char *err);
/* Submits REQ and waits for its end. False when it does not end. */
bool bed_try(struct bed *b, struct driver *d, struct driver_req *req);
/* Runs the loop until *COUNT is at least WANTED. */
bool bed_wait(struct bed *b, const unsigned *count, unsigned wanted);
/* A moment between two looks at something that no loop tells of; false once
 * ten seconds have passed since START (bed_now()). */
bool bed_pause(int64_t start_ns);
int64_t bed_now(void);

#endif
