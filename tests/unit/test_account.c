/* SPDX-License-Identifier: MIT */
#include "backend/wire/account.h"

#include "account_bed.h"
#include "backend/wire/account_expiry.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define HOUR_NS  (3600 * NS_PER_S)

/* Of the text in test_sign.c. */
#define SIGNED \
	"Authorization: SharedKey devstoreaccount1:iKyuNlcS0GJFBDIO+VV1Mkm9FXMiTaMhfa+a/N/zmV4=\n"

static bool has_header(struct account_bed *ab, const char *line)
{
	const char *at = strstr(ab->req.headers.p, line);

	if (!at)
		printf("# %s", ab->req.headers.p);
	return at && (at == ab->req.headers.p || at[-1] == '\n');
}

TEST(request_is_signed_with_the_key)
{
	struct account_bed ab;

	setup(&ab);
	ENV("AZURE_STORAGE_CONNECTION_STRING", "UseDevelopmentStorage=true");
	ab.p.name = "devstoreaccount1";
	CHECK_INT(open_account(&ab), 0);
	CHECK_STR(account_name(ab.account), "devstoreaccount1");
	CHECK_STR(account_kind(ab.account), "connection string");
	CHECK_INT(prepare(&ab), 0);
	CHECK_STR(ab.req.method, "PUT");
	CHECK(has_header(&ab, "x-ms-version: 2021-12-02\n"));
	CHECK(has_header(&ab, "x-ms-date: " DATE "\n"));
	CHECK(has_header(&ab, "x-ms-meta-owner: qfs\n"));
	/* curl must not add one: it would not be signed. */
	CHECK(has_header(&ab, "Content-Type:\n"));
	CHECK(has_header(&ab, SIGNED));
	CHECK(strstr(ab.req.url.p, "/devstoreaccount1/jobs") &&
		!strchr(ab.req.url.p, '?'));
	/* Each try is anew. */
	clock_step(NS_PER_S);
	CHECK_INT(prepare(&ab), 0);
	CHECK(has_header(&ab, "x-ms-date: Fri, 20 Nov 2026 04:17:42 GMT\n"));
	CHECK(!strstr(ab.req.headers.p, "04:17:41"));
	teardown(&ab);
}

TEST(query_is_encoded_and_the_body_handed_on)
{
	static const struct sign_param query[] = {{"popreceipt", "a/+="}, {"x", "1"}};
	static const struct sign_param headers[] = {{"content-type", "application/xml"}};
	const struct account_call call = {
		.method = "POST",
		.origin = "https://acct.queue.core.windows.net",
		.path = "/q/messages",
		.query = query,
		.n_query = 2,
		.headers = headers,
		.n_headers = 1,
		.body = "<x/>",
		.body_len = 4,
	};
	struct account_bed ab;

	setup(&ab);
	ENV("AZURE_STORAGE_KEY", EMULATOR_KEY, "AZURE_STORAGE_ACCOUNT", "acct");
	CHECK_INT(open_account(&ab), 0);
	CHECK_STR(account_kind(ab.account), "shared key");
	CHECK_INT(account_prepare(ab.account, &call, &ab.req), 0);
	CHECK_STR(ab.req.url.p, "https://acct.queue.core.windows.net/q/messages?"
				"popreceipt=a%2F%2B%3D&x=1");
	CHECK_STR(ab.req.body, "<x/>");
	CHECK_INT(ab.req.body_len, 4);
	CHECK(!strstr(ab.req.headers.p, "Content-Type:\n"));
	CHECK(has_header(&ab, "Authorization: SharedKey acct:"));
	teardown(&ab);
}

TEST(header_cannot_begin_another)
{
	static const struct sign_param headers[] = {{"x-ms-meta-a", "b\r\nX: y"}};
	const struct account_call call = {
		.method = "GET",
		.origin = "http://127.0.0.1",
		.path = "/",
		.headers = headers,
		.n_headers = 1,
	};
	struct account_bed ab;

	setup(&ab);
	ENV("AZURE_STORAGE_CONNECTION_STRING", "UseDevelopmentStorage=true");
	CHECK_INT(open_account(&ab), 0);
	CHECK_INT(account_prepare(ab.account, &call, &ab.req), -EINVAL);
	CHECK_STR(ab.req.detail, "a header has a control character");
	teardown(&ab);
}

TEST(sas_is_appended_as_it_is)
{
	static const struct sign_param query[] = {{"comp", "list"}};
	struct account_call call = {
		.method = "GET",
		.origin = "https://acct.queue.core.windows.net",
		.path = "/q",
		.query = query,
	};
	struct account_bed ab;

	setup(&ab);
	ENV("AZURE_STORAGE_SAS_TOKEN", "?sv=2021-12-02&sig=qqq%2Bq%3D");
	ab.p.name = "acct";
	CHECK_INT(open_account(&ab), 0);
	CHECK_STR(account_kind(ab.account), "SAS");
	CHECK_INT(account_prepare(ab.account, &call, &ab.req), 0);
	CHECK_STR(ab.req.url.p, "https://acct.queue.core.windows.net/q?"
				"sv=2021-12-02&sig=qqq%2Bq%3D");
	CHECK(!strstr(ab.req.headers.p, "Authorization"));
	call.n_query = 1;
	CHECK_INT(account_prepare(ab.account, &call, &ab.req), 0);
	CHECK_STR(ab.req.url.p, "https://acct.queue.core.windows.net/q?comp=list&"
				"sv=2021-12-02&sig=qqq%2Bq%3D");
	teardown(&ab);
}

TEST(another_account_is_refused)
{
	struct account_bed ab;

	setup(&ab);
	ENV("AZURE_STORAGE_KEY", EMULATOR_KEY, "AZURE_STORAGE_ACCOUNT", "mine");
	ab.p.name = "yours";
	CHECK_INT(open_account(&ab), -EINVAL);
	CHECK_STR(ab.err, "the credentials are those of account mine, not of yours");
	ENV("AZURE_STORAGE_CONNECTION_STRING", "UseDevelopmentStorage=true");
	CHECK_INT(open_account(&ab), -EINVAL);
	ab.p.name = NULL;
	ENV("AZURE_STORAGE_KEY", EMULATOR_KEY);
	CHECK_INT(open_account(&ab), -EINVAL);
	CHECK(strstr(ab.err, "AZURE_STORAGE_ACCOUNT is not set"));
	teardown(&ab);
}

TEST(clock_of_the_service_is_used)
{
	struct account_bed ab;

	setup(&ab);
	ENV("AZURE_STORAGE_CONNECTION_STRING", "UseDevelopmentStorage=true");
	CHECK_INT(open_account(&ab), 0);
	CHECK_INT(account_now_ns(ab.account), WALL_NS);
	show(&ab, 200, "Fri, 20 Nov 2026 04:17:43 GMT");
	show(&ab, 200, "Fri, 20 Nov 2026 04:17:39 GMT");
	show(&ab, 200, "yesterday");
	show(&ab, 200, "Sun, 06 Nov 9994 08:49:37 GMT");
	show(&ab, 200, "Fri, 11 Apr 2262 23:47:16 GMT");
	CHECK_INT(account_now_ns(ab.account), WALL_NS);
	CHECK_INT(log_file_count(&ab.log, "clock"), 0);
	show(&ab, 200, "Fri, 20 Nov 2026 05:17:41 GMT");
	CHECK_INT(account_now_ns(ab.account), WALL_NS + HOUR_NS);
	settle(&ab);
	CHECK_INT(ab.changes, 0);
	CHECK_INT(log_file_count(
			  &ab.log, "clock is another one, and is used offset_s=3600\n"),
		1);
	CHECK_INT(prepare(&ab), 0);
	CHECK(has_header(&ab, "x-ms-date: Fri, 20 Nov 2026 05:17:41 GMT\n"));
	/* A refusal that this may have caused: try again. */
	show(&ab, 403, "Fri, 20 Nov 2026 04:17:41 GMT");
	CHECK_INT(account_now_ns(ab.account), WALL_NS);
	settle(&ab);
	CHECK_INT(ab.changes, 1);
	show(&ab, 403, "Fri, 20 Nov 2026 04:17:41 GMT");
	settle(&ab);
	CHECK_INT(ab.changes, 1);
	/* No service refuses for that: the answer was on its way for long. */
	show(&ab, 403, "Fri, 20 Nov 2026 04:17:36 GMT");
	settle(&ab);
	CHECK_INT(ab.changes, 1);
	CHECK_INT(log_file_count(&ab.log, "clock"), 1);
	teardown(&ab);
}

TEST(file_must_be_private)
{
	struct account_bed ab;

	setup(&ab);
	ENV("AZURE_STORAGE_CONNECTION_STRING", "UseDevelopmentStorage=true");
	ab.p.credentials = ab.file;
	CHECK_INT(open_account(&ab), -EACCES);
	CHECK(strstr(ab.err, "/f: No such file"));
	put_file(&ab, "UseDevelopmentStorage=true", 0644);
	CHECK_INT(open_account(&ab), -EACCES);
	CHECK(strstr(ab.err, "can be read by group or others"));
	put_file(&ab, "AccountName=acct;AccountKey=qqq", 0600);
	CHECK_INT(open_account(&ab), -EINVAL);
	CHECK(strstr(ab.err, "/f: connection string: AccountKey: this is no base64"));
	put_file(&ab, "UseDevelopmentStorage=true", 0600);
	CHECK_INT(open_account(&ab), 0);
	CHECK_STR(account_name(ab.account), "devstoreaccount1");
	teardown(&ab);
}

TEST(changed_file_is_used)
{
	struct account_bed ab;

	setup(&ab);
	ab.p.credentials = ab.file;
	put_file(&ab, "AccountName=devstoreaccount1;AccountKey=cXFx", 0600);
	CHECK_INT(open_account(&ab), 0);
	CHECK_INT(prepare(&ab), 0);
	CHECK(!strstr(ab.req.headers.p, SIGNED));
	put_file(&ab, "AccountName=devstoreaccount1;AccountKey=" EMULATOR_KEY, 0600);
	settle(&ab);
	CHECK_INT(ab.changes, 1);
	CHECK_INT(prepare(&ab), 0);
	CHECK(has_header(&ab, SIGNED));
	put_file(&ab, "AccountName=devstoreaccount1;AccountKey=" EMULATOR_KEY, 0600);
	settle(&ab);
	CHECK_INT(ab.changes, 1);
	CHECK_INT(log_file_count(&ab.log, "info account: new credentials"), 1);
	teardown(&ab);
}

TEST(what_cannot_be_used_leaves_what_was)
{
	struct account_bed ab;

	setup(&ab);
	ab.p.credentials = ab.file;
	put_file(&ab, "UseDevelopmentStorage=true", 0600);
	CHECK_INT(open_account(&ab), 0);
	put_file(&ab, "AccountName=other;AccountKey=cXFx", 0600);
	settle(&ab);
	put_file(&ab, "qqq", 0600);
	settle(&ab);
	put_file(&ab, "AccountKey=cXFx", 0644);
	settle(&ab);
	CHECK_INT(ab.changes, 0);
	CHECK_INT(
		log_file_count(&ab.log, "warning account: the credentials of before stay "
					"in use: the credentials are those of account "
					"other"),
		1);
	CHECK_INT(log_file_count(&ab.log, "stay in use"), 1);
	CHECK_INT(prepare(&ab), 0);
	CHECK(has_header(&ab, SIGNED));
	teardown(&ab);
}

/* As where one file is mounted into a container: its directory tells nothing. */
TEST(refusal_looks_at_the_file_once_a_second)
{
	struct account_bed ab;

	setup(&ab);
	ab.p.credentials = ab.file;
	put_file(&ab, "AccountName=devstoreaccount1;AccountKey=cXFx", 0600);
	CHECK_INT(open_account(&ab), 0);
	show(&ab, 403, DATE);
	put_file(&ab, "UseDevelopmentStorage=true", 0600);
	show(&ab, 403, DATE);
	CHECK_INT(prepare(&ab), 0);
	CHECK(!strstr(ab.req.headers.p, SIGNED));
	clock_fake(1001 * NS_PER_S, WALL_NS);
	show(&ab, 404, DATE);
	CHECK_INT(prepare(&ab), 0);
	CHECK(!strstr(ab.req.headers.p, SIGNED));
	show(&ab, 401, DATE);
	CHECK_INT(prepare(&ab), 0);
	CHECK(has_header(&ab, SIGNED));
	settle(&ab);
	CHECK_INT(ab.changes, 1);
	teardown(&ab);
}

TEST(expiry_is_said_a_day_and_an_hour_before_and_at_the_end)
{
	struct expiry e = {.begin_ns = 0, .end_ns = 1000 * HOUR_NS};
	int64_t next;

	CHECK_INT(expiry_look(&e, 0, &next), EXPIRY_QUIET);
	CHECK_INT(next, 976 * HOUR_NS);
	CHECK_INT(expiry_look(&e, next - 1, &next), EXPIRY_QUIET);
	CHECK_INT(expiry_look(&e, next, &next), EXPIRY_NEAR);
	CHECK_INT(next, 999 * HOUR_NS);
	CHECK_INT(expiry_look(&e, 977 * HOUR_NS, &next), EXPIRY_QUIET);
	CHECK_INT(expiry_look(&e, 999 * HOUR_NS, &next), EXPIRY_NEAR);
	CHECK_INT(next, 1000 * HOUR_NS);
	CHECK_INT(expiry_look(&e, next, &next), EXPIRY_ENDED);
	CHECK_INT(next, CLOCK_NEVER);
	CHECK_INT(expiry_look(&e, 1001 * HOUR_NS, &next), EXPIRY_QUIET);
}

TEST(expiry_of_a_short_life_is_said_at_its_last_tenth)
{
	struct expiry e = {.begin_ns = 0, .end_ns = 5 * HOUR_NS};
	int64_t next;

	CHECK_INT(expiry_look(&e, 0, &next), EXPIRY_QUIET);
	CHECK_INT(next, 5 * HOUR_NS - HOUR_NS / 2);
	CHECK_INT(expiry_look(&e, next, &next), EXPIRY_NEAR);
	CHECK_INT(next, 5 * HOUR_NS);
	CHECK_INT(expiry_look(&e, next, &next), EXPIRY_ENDED);
	e = (struct expiry){.end_ns = -1};
	CHECK_INT(expiry_look(&e, 0, &next), EXPIRY_QUIET);
	CHECK_INT(next, CLOCK_NEVER);
}

TEST(end_of_a_sas_is_in_the_log)
{
	struct account_bed ab;

	setup(&ab);
	/* 100 h of life, of which 50 h are over. */
	ENV("AZURE_STORAGE_SAS_TOKEN", "sig=qqq&st=2026-11-18T02:17:41Z&"
				       "se=2026-11-22T06:17:41Z");
	ab.p.name = "acct";
	CHECK_INT(open_account(&ab), 0);
	clock_step(40 * HOUR_NS - 1);
	settle(&ab);
	CHECK_INT(log_file_count(&ab.log, "SAS"), 1); /* what kind it is */
	clock_step(1);
	settle(&ab);
	CHECK_INT(
		log_file_count(&ab.log,
			"warning account: the SAS ends soon account=acct minutes=600\n"),
		1);
	clock_step(9 * HOUR_NS);
	settle(&ab);
	CHECK_INT(log_file_count(&ab.log, "ends soon account=acct minutes=60\n"), 1);
	clock_step(HOUR_NS);
	settle(&ab);
	CHECK_INT(log_file_count(
			  &ab.log, "error account: the SAS has ended account=acct\n"),
		1);
	CHECK_INT(prepare(&ab), 0);
	teardown(&ab);
}
