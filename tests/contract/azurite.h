/* SPDX-License-Identifier: MIT */
/*
 * Azurite, Microsoft's emulator of Azure Storage, as a child of the test program:
 * its queue service alone, in memory, on loopback. It ends with the program,
 * however that ends.
 *
 * node is found in PATH; Azurite in NODE_PATH, else in build/node beside the
 * program (scripts/bootstrap test installs it there).
 */
#ifndef SPOOLFS_TESTS_AZURITE_H
#define SPOOLFS_TESTS_AZURITE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The emulator's published account. */
#define AZURITE_ACCOUNT "devstoreaccount1"

struct azurite {
	pid_t pid;
	int out;      /* its standard output */
	char url[64]; /* "http://127.0.0.1:37663" */
};

/* Waits until it answers. False, and a line printed, when it does not start. */
bool azurite_start(struct azurite *a);
void azurite_stop(struct azurite *a);

/* The one of this program: started by the first who asks, stopped at the end.
 * NULL when it does not start. It also says in the environment, to this program
 * alone, which credentials open it. */
const struct azurite *azurite(void);
/* The source of a queue of A that nobody has named before. */
void azurite_source(const struct azurite *a, char *out, size_t len);

#endif
