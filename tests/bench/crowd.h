/* SPDX-License-Identifier: MIT */
/*
 * What the clients of the benchmark have in common: a clock, an end with a
 * message, arguments, spreads, and a crowd of processes that begin at once.
 *
 * A client prints one line for each figure, "NAME MICROSECONDS", and ends with 1
 * and a sentence on standard error when anything went wrong: a figure of which a
 * part failed is none.
 */
#ifndef BENCH_CROWD_H
#define BENCH_CROWD_H

#include <stddef.h>
#include <stdint.h>

#define SIZE_MAX_B (1 << 20) /* of a message */
#define COUNT_MAX  10000000  /* messages */
#define PEOPLE_MAX 64
#define PATIENCE_S 30 /* without any progress */
#define NS_PER_S   INT64_C(1000000000)

/* Prints what failed, and errno, and exits with 1. */
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *fmt, ...);

/* Monotonic, in ns. */
int64_t now(void);

/* TEXT as a number from 1 to MAX; ends the program when it is none. */
size_t number(const char *text, size_t max);

/* A figure, given in ns. */
void print_us(const char *name, double ns);

/* Sorts the N spans NS and prints NAME_p10, _median, _p90, _p99 and _max. */
void print_spread(const char *name, int64_t *ns, size_t n);

/* One of a crowd: WHO from 0, does PART messages. */
struct person {
	int who;
	size_t part;
	void *arg;
};

/*
 * Starts PEOPLE processes that call prepare (may be NULL), wait for each other,
 * and call work; the N messages are shared out evenly. Returns the ns from the
 * common beginning to the end of the last. Ends the program when one failed.
 * What prepare returns is the argument of work.
 */
struct crowd {
	void *(*prepare)(struct person *p);
	void (*work)(struct person *p, void *prepared);
	void *arg;
	size_t n;
	int people;
};
int64_t crowd_run(const struct crowd *c);

#endif
