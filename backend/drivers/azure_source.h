/* SPDX-License-Identifier: MIT */
/*
 * The source of an Azure Storage queue, taken apart. Pure.
 *
 *   https://ACCOUNT.queue.core.windows.net/QUEUE    or another cloud's suffix
 *   https://ACCOUNT.z42.queue.storage.azure.net/QUEUE
 *   azure-queue+https://HOST[:PORT]/ACCOUNT/QUEUE   the account in the path
 *   azure-queue+http://HOST[:PORT]/ACCOUNT/QUEUE    this machine only
 *
 * Source of the rules for names: "Naming queues and metadata" and "Storage
 * account overview" (Microsoft).
 */
#ifndef SPOOLFS_DRIVERS_AZURE_SOURCE_H
#define SPOOLFS_DRIVERS_AZURE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

/* Where dead letters go: QUEUE with this behind it. */
#define AZURE_POISON_SUFFIX "-poison"

struct azure_source {
	char *origin; /* "https://acct.queue.core.windows.net" */
	char *prefix; /* of each path: "", or "/ACCOUNT" where the path names it */
	char *account;
	char *queue;
	char *poison;
};

/* Whether SOURCE, well-formed or not, is meant for this driver. */
bool azure_source_is(const char *source);
/*
 * 0, or -EINVAL with a line in ERR that says the rule that SOURCE breaks, or
 * -ENOMEM. ERR never repeats a query or a user: they may hold secrets.
 */
int azure_source_parse(
	const char *source, struct azure_source *out, char *err, size_t err_len);
void azure_source_fini(struct azure_source *s);

#endif
