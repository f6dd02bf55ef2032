/* SPDX-License-Identifier: MIT */
/*
 * Credentials: which of those that are there are taken. Values in, a decision
 * out; account.h has the order.
 */
#ifndef SPOOLFS_WIRE_ACCOUNT_CREDS_H
#define SPOOLFS_WIRE_ACCOUNT_CREDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum creds_kind {
	CREDS_KEY,
	CREDS_SAS,
	CREDS_SECRET,    /* of a client, at Entra ID */
	CREDS_FEDERATED, /* workload identity */
	CREDS_ENDPOINT,  /* managed identity, of an App Service */
	CREDS_IMDS,      /* managed identity, of a virtual machine */
};

/* Zero-initialise. Owned strings, NULL where there is nothing to say. */
struct creds {
	enum creds_kind kind;
	const char *label; /* "shared key", ...; static */
	bool guessed;      /* IMDS, because nothing else was there */
	char *name;        /* of the account */
	unsigned char *key;
	size_t key_len;
	char *sas;              /* without '?' */
	int64_t sas_start_ns;   /* wall clock, or -1 */
	int64_t sas_expires_ns; /* wall clock, or -1 */
	char *authority, *tenant, *client, *secret, *file, *header;
};

/* Wipes and frees. */
void creds_fini(struct creds *c);

/* The value of a variable, or NULL. */
typedef const char *creds_get_fn(const void *arg, const char *name);

/* 0, -ENOMEM, or -EINVAL with a line in ERR without a value; then C is empty. */
int creds_decide(
	struct creds *c, creds_get_fn *get, const void *arg, char *err, size_t err_len);
int creds_from_env(struct creds *c, char *err, size_t err_len);
/*
 * TEXT, which is changed: lines NAME=VALUE (a value may stand in quotes; empty
 * lines and those that begin with '#' say nothing), or one connection string.
 * The environment is not asked for what is missing.
 */
int creds_from_text(struct creds *c, char *text, size_t len, char *err, size_t err_len);

/* Whether a token may travel to this URL: over TLS, or to this machine. */
bool creds_safe_url(const char *url);

#endif
