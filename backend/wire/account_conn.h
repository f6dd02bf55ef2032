/* SPDX-License-Identifier: MIT */
/*
 * A connection string: KEY=VALUE parts with ';' between, in any order, as the
 * portal and the tools of Azure Storage give it out. Pure.
 */
#ifndef SPOOLFS_WIRE_ACCOUNT_CONN_H
#define SPOOLFS_WIRE_ACCOUNT_CONN_H

#include <stdbool.h>
#include <stddef.h>

/* Strings are NULL when their key is not there, never empty. */
struct account_conn {
	char *protocol; /* DefaultEndpointsProtocol */
	char *name;     /* AccountName */
	char *key;      /* AccountKey, still base64 */
	char *suffix;   /* EndpointSuffix */
	char *queue;    /* QueueEndpoint */
	char *sas;      /* SharedAccessSignature */
	bool emulator;  /* UseDevelopmentStorage=true; name and key are set */
};

/*
 * TEXT has LEN bytes and no NUL at its end. Keys in any case, unknown ones are
 * ignored. 0, -ENOMEM, or -EINVAL with a line in ERR that has no value in it; then
 * OUT is empty. After 0 there is a key or a signature.
 */
int account_conn_parse(const char *text, size_t len, struct account_conn *out, char *err,
	size_t err_len);
/* Wipes and frees. */
void account_conn_fini(struct account_conn *c);

/*
 * The account that a service's address is of: "a" of https://a.queue.host and of
 * http://127.0.0.1:10001/a. Into OUT; -EINVAL when there is none, or no room.
 */
int account_of_url(const char *url, char *out, size_t len);

/* Wipes S, then frees it. Takes NULL. */
void account_wipe(char *s);

#endif
