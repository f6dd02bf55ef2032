/* SPDX-License-Identifier: MIT */
/*
 * Bearer tokens of Microsoft Entra ID for Azure Storage, fetched over HTTP and
 * renewed in time: at half of their life, or 5 min before their end, whichever
 * is earlier; while the old one is good a failed renewal is only retried.
 *
 * Sources: "OAuth 2.0 client credentials flow" (secret, and federated
 * credential as client_assertion), "Acquire an access token" for managed
 * identities (IMDS api-version 2018-02-01; App Service 2019-08-01).
 */
#ifndef SPOOLFS_WIRE_TOKEN_H
#define SPOOLFS_WIRE_TOKEN_H

#include "http.h"

struct token;

enum token_kind {
	TOKEN_SECRET,    /* tenant, client, secret */
	TOKEN_FEDERATED, /* tenant, client, file: read anew for each fetch */
	TOKEN_IMDS,      /* virtual machine; client may be NULL */
	TOKEN_ENDPOINT,  /* IDENTITY_ENDPOINT, IDENTITY_HEADER */
};

/* Strings are copied. */
struct token_params {
	struct loop *loop;
	struct http *http;
	enum token_kind kind;
	const char *authority; /* "https://login.microsoftonline.com" or other;
				  IMDS, ENDPOINT: the endpoint's URL */
	const char *tenant, *client, *secret, *file, *header;
	/* A first or a better token, or a refusal; also from within token_get(). It
	 * must not destroy the token. */
	void (*changed)(void *arg);
	void *arg;
};

/* Fetches nothing yet. NULL and errno. */
struct token *token_create(const struct token_params *p);
void token_destroy(struct token *t); /* takes NULL; forgets the secret */

/*
 * The token, valid for a minute still (or a tenth of a short life); borrowed until
 * the next call. NULL
 * with *ERR -EAGAIN (being fetched, or the authority cannot be reached: retried
 * here with back-off) or -EACCES (refused, retried slowly; or the assertion cannot
 * be read, or thrice nobody was there for TOKEN_IMDS and there never was a token:
 * these are retried with back-off). DETAIL says why. The first call begins to fetch.
 */
const char *token_get(struct token *t, int *err, char *detail, size_t detail_len);
/* The service refused it: fetch another, at most once in 30 s. */
void token_refused(struct token *t);

#endif
