/* SPDX-License-Identifier: MIT */
/*
 * One Azure Storage account and what gives us access to it.
 *
 * Where access comes from, the first that is there:
 *   1. credentials=FILE (refused when group or others can read it, unless it
 *      lies on a read-only or a memory filesystem that an orchestrator mounted): lines
 *      KEY=VALUE with the variables' names below, or one connection string
 *   2. AZURE_STORAGE_CONNECTION_STRING
 *   3. AZURE_STORAGE_SAS_TOKEN, or AZURE_STORAGE_KEY; with either,
 *      AZURE_STORAGE_ACCOUNT must name the account where the source does not
 *   4. Microsoft Entra ID: AZURE_TENANT_ID and AZURE_CLIENT_ID with
 *      AZURE_FEDERATED_TOKEN_FILE (workload identity) or AZURE_CLIENT_SECRET;
 *      AZURE_AUTHORITY_HOST
 *   5. a managed identity: IDENTITY_ENDPOINT and IDENTITY_HEADER, or the
 *      instance metadata service of a virtual machine (AZURE_CLIENT_ID selects
 *      one); AZURE_POD_IDENTITY_AUTHORITY_HOST moves that, for tests too
 * A connection string UseDevelopmentStorage=true is the emulator's account.
 *
 * A file stands for itself: the environment is not asked for what it lacks. It is
 * watched and read again when it was changed; what cannot be used then leaves the
 * credentials of before in use. The end of a SAS is announced in the log.
 *
 * Nothing here is ever logged but kinds and names.
 */
#ifndef SPOOLFS_WIRE_ACCOUNT_H
#define SPOOLFS_WIRE_ACCOUNT_H

#include "http.h"
#include "sign.h"

struct account;

struct account_params {
	struct loop *loop;
	struct http *http;
	const char *name;        /* as the source tells it, or NULL */
	const char *credentials; /* file, or NULL */
	/* Access may be possible now where it was not: a token came, the file was
	 * changed. On the loop, coalesced. May be NULL. */
	void (*changed)(void *arg);
	void *arg;
};

/*
 * Reads environment and file. 0, or -EACCES / -EINVAL / -ENOMEM with one line in
 * ERR: what was looked for, never a value. -EINVAL: they name another account.
 */
int account_open(
	const struct account_params *p, struct account **out, char *err, size_t err_len);
void account_close(struct account *a); /* takes NULL */

const char *account_name(const struct account *a);
/* "shared key", "SAS", "connection string", "workload identity", ... */
const char *account_kind(const struct account *a);

/* One request to the service. */
struct account_call {
	enum sign_form form;            /* how a shared key signs it */
	const char *method;             /* a string constant */
	const char *origin;             /* "https://acct.queue.core.windows.net" */
	const char *path;               /* encoded, begins with '/' */
	const struct sign_param *query; /* values not encoded */
	size_t n_query;
	const struct sign_param *headers; /* beyond those added here */
	size_t n_headers;
	const void *body;
	size_t body_len;
};

/*
 * Fills url, headers (x-ms-version, x-ms-date, Authorization and those of CALL),
 * method and body of REQ for one try made now; each try needs it anew.
 *   -EAGAIN  a token is being fetched: changed() will tell
 *   -EACCES  the last attempt to get one was refused, or it must not travel to
 *            ORIGIN, which is neither https:// nor this machine
 *   -EINVAL  a header has a control character
 *   -ENOMEM
 * req->detail says why. REQ was not sent, or is done; its url and headers are
 * wiped first.
 */
int account_prepare(
	struct account *a, const struct account_call *call, struct http_req *req);

/* Every answer is shown to it: the service's Date corrects our clock, and a 401
 * or 403 makes it look for better credentials (file, new token) in the background. */
void account_answered(struct account *a, const struct http_req *req);

/* The service's wall clock, as far as it is known. */
int64_t account_now_ns(const struct account *a);

/* What every request says it speaks. */
#define ACCOUNT_API_VERSION "2021-12-02"

#endif
