/* SPDX-License-Identifier: MIT */
#include "backend/drivers/azure_error.h"

#include <errno.h>

#include "backend/base/clock.h"
#include "tests/test.h"

static struct azure_verdict judge(
	enum azure_verb verb, int status, const char *code, const char *parameter)
{
	struct azure_error_text e = {0};

	snprintf(e.code, sizeof(e.code), "%s", code);
	snprintf(e.parameter, sizeof(e.parameter), "%s", parameter);
	return azure_judge(verb, status, &e);
}

static int err_of(enum azure_verb verb, int status, const char *code)
{
	return judge(verb, status, code, "").err;
}

TEST(success_is_what_was_expected)
{
	CHECK_INT(err_of(AZURE_GET, 200, ""), 0);
	CHECK_INT(err_of(AZURE_PEEK, 200, ""), 0);
	CHECK_INT(err_of(AZURE_COUNT, 200, ""), 0);
	CHECK_INT(err_of(AZURE_PUT, 201, ""), 0);
	CHECK_INT(err_of(AZURE_UPDATE, 204, ""), 0);
	CHECK_INT(err_of(AZURE_DELETE, 204, ""), 0);
	CHECK_INT(err_of(AZURE_CREATE, 201, ""), 0);
	CHECK_INT(err_of(AZURE_CREATE, 204, ""), 0);
	CHECK_INT(err_of(AZURE_CREATE, 409, "QueueAlreadyExists"), 0);
	/* somebody's page in between */
	CHECK_INT(err_of(AZURE_DELETE, 200, ""), -EPROTO);
	CHECK_INT(err_of(AZURE_PUT, 200, ""), -EPROTO);
	CHECK_INT(err_of(AZURE_GET, 302, ""), -EPROTO);
	CHECK_INT(err_of(AZURE_GET, 0, ""), -EPROTO);
}

TEST(a_receipt_that_is_not_the_newest_is_stale)
{
	static const enum azure_verb settles[] = {AZURE_UPDATE, AZURE_DELETE};

	for (int i = 0; i < 2; i++) {
		CHECK_INT(err_of(settles[i], 400, "PopReceiptMismatch"), -ESTALE);
		CHECK_INT(
			judge(settles[i], 400, "InvalidQueryParameterValue", "popreceipt")
				.err,
			-ESTALE);
		CHECK_INT(judge(settles[i], 400, "InvalidQueryParameterValue",
				  "visibilitytimeout")
				  .err,
			-EINVAL);
	}
	CHECK_INT(err_of(AZURE_UPDATE, 404, "MessageNotFound"), -ESTALE);
	CHECK_INT(err_of(AZURE_DELETE, 404, "MessageNotFound"), -ENOENT);
	CHECK(!judge(AZURE_DELETE, 404, "MessageNotFound", "").no_queue);
}

TEST(a_missing_queue_is_told_from_a_missing_message)
{
	static const enum azure_verb all[] = {
		AZURE_GET, AZURE_PEEK, AZURE_PUT, AZURE_DELETE, AZURE_COUNT};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct azure_verdict v = judge(all[i], 404, "QueueNotFound", "");

		CHECK_INT(v.err, -ENOENT);
		CHECK(v.no_queue);
	}
	CHECK_INT(err_of(AZURE_UPDATE, 404, "QueueNotFound"), -ESTALE);
	CHECK(judge(AZURE_COUNT, 404, "", "").no_queue); /* HEAD has no body */
	CHECK_INT(err_of(AZURE_GET, 404, ""), -EPROTO);
	CHECK_INT(err_of(AZURE_DELETE, 404, ""), -EPROTO);
	CHECK_INT(err_of(AZURE_GET, 404, "ResourceNotFound"), -EACCES);
}

TEST(busy_is_to_be_asked_again)
{
	static const int busy[] = {408, 429, 500, 502, 503, 504};

	for (size_t i = 0; i < sizeof(busy) / sizeof(busy[0]); i++)
		for (int verb = AZURE_GET; verb <= AZURE_CREATE; verb++)
			CHECK_INT(err_of((enum azure_verb)verb, busy[i], "ServerBusy"),
				-EAGAIN);
	CHECK_INT(judge(AZURE_GET, 503, "ServerBusy", "").retry_after_ns, 0);
	CHECK_INT(err_of(AZURE_GET, 409, "QueueBeingDeleted"), -EAGAIN);
	CHECK_INT(err_of(AZURE_CREATE, 409, "QueueBeingDeleted"), -EAGAIN);
	CHECK_INT(judge(AZURE_CREATE, 409, "QueueBeingDeleted", "").retry_after_ns,
		5 * NS_PER_S);
}

TEST(credentials)
{
	CHECK_INT(err_of(AZURE_GET, 401, ""), -EACCES);
	CHECK_INT(err_of(AZURE_GET, 401, "NoAuthenticationInformation"), -EACCES);
	CHECK_INT(err_of(AZURE_GET, 403, "AuthorizationPermissionMismatch"), -EACCES);
	CHECK_INT(err_of(AZURE_GET, 400, "InvalidAuthenticationInfo"), -EACCES);
	CHECK_INT(err_of(AZURE_GET, 409, "QueueDisabled"), -EACCES);
	CHECK(judge(AZURE_GET, 403, "AuthenticationFailed", "").signature);
	CHECK(!judge(AZURE_GET, 403, "AuthorizationPermissionMismatch", "").signature);
}

TEST(a_message_that_it_does_not_take)
{
	CHECK_INT(err_of(AZURE_PUT, 413, "RequestBodyTooLarge"), -EMSGSIZE);
	CHECK_INT(err_of(AZURE_PUT, 413, ""), -EMSGSIZE);
	CHECK_INT(err_of(AZURE_PUT, 400, "RequestBodyTooLarge"), -EMSGSIZE);
	CHECK_INT(err_of(AZURE_PUT, 400, "InvalidXmlDocument"), -EILSEQ);
}

TEST(everything_else)
{
	CHECK_INT(err_of(AZURE_GET, 400, "OutOfRangeQueryParameterValue"), -EINVAL);
	CHECK_INT(err_of(AZURE_GET, 400, ""), -EPROTO);
	CHECK_INT(err_of(AZURE_GET, 405, "UnsupportedHttpVerb"), -EINVAL);
	CHECK_INT(err_of(AZURE_GET, 405, ""), -EPROTO);
	CHECK_INT(err_of(AZURE_GET, 501, "NotImplemented"), -EINVAL);
	CHECK_INT(err_of(AZURE_GET, 409, "QueueNotEmpty"), -EIO);
	CHECK_INT(err_of(AZURE_GET, 409, ""), -EPROTO);
}

TEST(one_line_for_people)
{
	struct azure_error_text e = {.code = "ServerBusy", .message = "It is busy."};
	char line[160], small[8];

	azure_describe(503, &e, line, sizeof(line));
	CHECK_STR(line, "503 ServerBusy: It is busy.");
	azure_describe(503, &e, small, sizeof(small));
	CHECK_STR(small, "503 Ser");
	e.message[0] = '\0';
	azure_describe(503, &e, line, sizeof(line));
	CHECK_STR(line, "503 ServerBusy");
	e.code[0] = '\0';
	azure_describe(502, &e, line, sizeof(line));
	CHECK_STR(line, "502");
}

TEST(where_no_answer_came)
{
	CHECK_INT(azure_transport(0), 0);
	CHECK_INT(azure_transport(-EAGAIN), -EAGAIN);
	CHECK_INT(azure_transport(-EACCES), -EACCES);
	CHECK_INT(azure_transport(-ENOMEM), -ENOMEM);
	CHECK_INT(azure_transport(-EINVAL), -EINVAL);
	CHECK_INT(azure_transport(-EPROTO), -EPROTO);
	/* the answer was too long, not the message */
	CHECK_INT(azure_transport(-EMSGSIZE), -EPROTO);
}
