/* SPDX-License-Identifier: MIT */
#include "azure_error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "../base/clock.h"

/* A queue that is being deleted stays so for half a minute and more. */
#define DELETED_WAIT_NS (5 * NS_PER_S)

static bool is(const struct azure_error_text *e, const char *code)
{
	return strcmp(e->code, code) == 0;
}

static bool succeeded(enum azure_verb verb, int status)
{
	switch (verb) {
	case AZURE_GET:
	case AZURE_PEEK:
	case AZURE_COUNT:
		return status == 200;
	case AZURE_PUT:
		return status == 201;
	case AZURE_UPDATE:
	case AZURE_DELETE:
		return status == 204;
	case AZURE_CREATE:
		return status == 201 || status == 204;
	}
	return false;
}

static int of_bad_request(enum azure_verb verb, const struct azure_error_text *e)
{
	bool settles = verb == AZURE_UPDATE || verb == AZURE_DELETE;

	if (settles && is(e, "PopReceiptMismatch"))
		return -ESTALE;
	if (settles && is(e, "InvalidQueryParameterValue") &&
		strcasecmp(e->parameter, "popreceipt") == 0)
		return -ESTALE;
	if (is(e, "InvalidAuthenticationInfo") || is(e, "AuthenticationFailed"))
		return -EACCES;
	if (is(e, "RequestBodyTooLarge") || is(e, "MessageTooLarge"))
		return -EMSGSIZE;
	if (verb == AZURE_PUT &&
		(is(e, "InvalidXmlDocument") || is(e, "InvalidXmlNodeValue")))
		return -EILSEQ;
	return e->code[0] ? -EINVAL : -EPROTO;
}

/* HEAD has no body, and a proxy may drop the header: then the path decides. */
static struct azure_verdict of_not_found(
	enum azure_verb verb, const struct azure_error_text *e)
{
	if (is(e, "MessageNotFound"))
		return (struct azure_verdict){
			.err = verb == AZURE_UPDATE ? -ESTALE : -ENOENT};
	if (is(e, "QueueNotFound") || (verb == AZURE_COUNT && !e->code[0]))
		return (struct azure_verdict){
			.err = verb == AZURE_UPDATE ? -ESTALE : -ENOENT,
			.no_queue = true};
	if (is(e, "ResourceNotFound")) /* no such account there */
		return (struct azure_verdict){.err = -EACCES};
	return (struct azure_verdict){.err = -EPROTO};
}

static struct azure_verdict of_conflict(
	enum azure_verb verb, const struct azure_error_text *e)
{
	/* Somebody made it, with other metadata. */
	if (verb == AZURE_CREATE && is(e, "QueueAlreadyExists"))
		return (struct azure_verdict){0};
	if (is(e, "QueueBeingDeleted"))
		return (struct azure_verdict){
			.err = -EAGAIN, .retry_after_ns = DELETED_WAIT_NS};
	if (is(e, "QueueDisabled") || is(e, "AccountIsDisabled") ||
		is(e, "AccountBeingCreated"))
		return (struct azure_verdict){.err = -EACCES};
	return (struct azure_verdict){.err = e->code[0] ? -EIO : -EPROTO};
}

struct azure_verdict azure_judge(
	enum azure_verb verb, int status, const struct azure_error_text *e)
{
	if (succeeded(verb, status))
		return (struct azure_verdict){0};
	switch (status) {
	case 400:
		return (struct azure_verdict){.err = of_bad_request(verb, e)};
	case 401:
	case 403:
		return (struct azure_verdict){
			.err = -EACCES, .signature = is(e, "AuthenticationFailed")};
	case 404:
		return of_not_found(verb, e);
	case 408:
	case 429:
	case 500:
	case 502:
	case 503:
	case 504:
		return (struct azure_verdict){.err = -EAGAIN};
	case 409:
		return of_conflict(verb, e);
	case 413:
		return (struct azure_verdict){.err = -EMSGSIZE};
	default:
		/* What has no code of the service is not from the service. */
		return (struct azure_verdict){
			.err = status >= 400 && e->code[0] ? -EINVAL : -EPROTO};
	}
}

void azure_describe(
	int status, const struct azure_error_text *e, char *out, size_t out_len)
{
	snprintf(out, out_len, "%d%s%s%s%s", status, e->code[0] ? " " : "", e->code,
		e->message[0] ? ": " : "", e->message);
}

int azure_transport(int err)
{
	switch (err) {
	case 0:
	case -EAGAIN:
	case -EACCES:
	case -EINVAL:
	case -ENOMEM:
		return err;
	default: /* -EMSGSIZE is about the answer here, not about a message */
		return -EPROTO;
	}
}
