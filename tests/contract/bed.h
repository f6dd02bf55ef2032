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

/*
 * Beside the capabilities of drivers: what a queue in one file does and a service
 * cannot. First what the manual tells users (spoolfs.7, AZURE STORAGE QUEUE: its
 * tags stand behind), then what only drivers see.
 */
/* The leases of a mount that ended are given to its next life, or back; a service
 * lets them run out (az-late). */
#define BED_NEAR (1u << 30)
/* Messages come in the order of sending, and so do their ids and enqueue times; a
 * service has whole seconds, random ids and no order (az-name, az-order). */
#define BED_ORDER (1u << 29)
/* A dead letter is the message itself, with its id and counts; in a service it is
 * another message in another queue (az-dead). */
#define BED_SAME_DEAD (1u << 28)
/* A receive tells when the next message is due; a service does not say (az-late). */
#define BED_TELLS_DUE (1u << 26)
/* What is leased is counted apart; a service counts it with what waits. */
#define BED_COUNTS_LEASED (1u << 27)
/* What is gone is told from a lease that was lost; a service does not know. */
#define BED_TELLS_GONE (1u << 25)
/* How long a message is, is known before it is leased. */
#define BED_KNOWS_SIZES (1u << 24)
/* All that was submitted is carried out by close; of a service nobody waits for
 * an answer. */
#define BED_CLOSES_LAST (1u << 23)
/* Time passes by the clocks of this program, which tests move. */
#define BED_OUR_TIME (1u << 22)

struct bed {
	const struct bed_factory *factory; /* which driver is tried */
	char dir[64];
	char path[80]; /* of the queue */
	struct loop *loop;
	char source[160]; /* of it, where it is a service's */
	struct driver *d;
	unsigned changes; /* how often on_change was called */
	int64_t lease_ns; /* LEASE_NS, or what bed_hurry() made of it */
};

/* The drivers under test. */
struct bed_factory {
	const char *name;
	unsigned caps; /* of drivers, and those above */
	/* Opens the queue of B as IDENTITY; NULL when that fails. */
	struct driver *(*open)(struct bed *b, const char *identity);
};

extern const struct bed_factory bed_factories[]; /* ended by name NULL */

/* An empty queue, opened by F as "bed"; F NULL: not opened, no driver. */
bool bed_init(struct bed *b, const struct bed_factory *f);
void bed_fini(struct bed *b);
/* Whether the driver under test has NEED. */
bool bed_can(const struct bed *b, unsigned need);
/* From now on leases are short where time cannot be moved: for tests in which they
 * run out. */
void bed_hurry(struct bed *b);
/* NS pass: the faked clocks move, and a service is really waited for. */
void bed_pass(struct bed *b, int64_t ns);
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
