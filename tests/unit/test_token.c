/* SPDX-License-Identifier: MIT */
/* Answers are as Entra ID and the services of machines give them. */
#include "backend/wire/token.h"

#include <fcntl.h>
#include <unistd.h>

#include "backend/base/log.h"
#include "token_bed.h"

static bool said(const struct token_bed *tb, const char *what)
{
	bool yes = strstr(tb->b.server.last.p, what) != NULL;

	if (!yes)
		printf("# %s\n", tb->b.server.last.p);
	return yes;
}

static void check_good(struct token_bed *tb, const char *want)
{
	CHECK_STR(get(tb), want);
	CHECK_INT(tb->err, 0);
}

static void check_none(struct token_bed *tb, int err, const char *detail)
{
	CHECK_STR(get(tb), NULL);
	CHECK_INT(tb->err, err);
	if (!strstr(tb->detail, detail))
		printf("# %s\n", tb->detail);
	CHECK(strstr(tb->detail, detail));
}

TEST(secret_is_changed_for_a_token)
{
	struct token_bed tb;

	setup(&tb, TOKEN_SECRET);
	answer_token(&tb, TOKEN, 3599);
	settle(&tb);
	CHECK_INT(asked(&tb), 0);
	check_none(&tb, -EAGAIN, "client secret: a token is being fetched");
	check_none(&tb, -EAGAIN, "being fetched");
	await_change(&tb);
	check_good(&tb, TOKEN);
	CHECK_INT(asked(&tb), 1);
	CHECK(said(&tb, "POST /ten%20ant/oauth2/v2.0/token HTTP/1.1\r\n"));
	CHECK(said(&tb, "Content-Type: application/x-www-form-urlencoded\r\n"));
	CHECK(said(&tb, "\r\n\r\ngrant_type=client_credentials&"
			"scope=https%3A%2F%2Fstorage.azure.com%2F.default&"
			"client_id=cli%26ent&client_secret=s3cr~t%2F%2B%3D"));
	teardown(&tb);
}

static void put_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0);
	CHECK_INT(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

TEST(assertion_is_read_anew_each_time)
{
	struct token_bed tb;
	int fd;

	setup(&tb, TOKEN_FEDERATED);
	strcpy(tb.file, "/tmp/spoolfs-token-XXXXXX");
	fd = mkstemp(tb.file);
	CHECK(fd >= 0);
	close(fd);
	tb.p.file = tb.file;
	put_file(tb.file, "first.assertion\n");
	answer_token(&tb, TOKEN, 3600);
	CHECK_STR(get(&tb), NULL);
	await_change(&tb);
	CHECK(said(&tb, "&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3A"
			"client-assertion-type%3Ajwt-bearer&client_assertion=first."
			"assertion"));
	put_file(tb.file, "second.assertion");
	clock_step(1800 * NS_PER_S);
	await_change(&tb);
	CHECK(said(&tb, "&client_assertion=second.assertion"));
	CHECK_INT(unlink(tb.file), 0);
	teardown(&tb);
}

TEST(missing_assertion_is_looked_for_soon_again)
{
	struct token_bed tb;

	setup(&tb, TOKEN_FEDERATED);
	tb.p.file = "/nonexistent/file";
	CHECK_STR(get(&tb), NULL);
	check_none(&tb, -EACCES, "/nonexistent/file: No such file");
	CHECK_INT(tb.changes, 1);
	CHECK_INT(asked(&tb), 0);
	CHECK_INT(log_file_count(&tb.log, "again_s=1:"), 1);
	clock_step(NS_PER_S);
	settle(&tb);
	CHECK_INT(log_file_count(&tb.log, "again_s=2:"), 1);
	CHECK_INT(tb.changes, 1);
	CHECK_INT(log_file_count(&tb.log, "warning"), 1);
	/* For check_log(). */
	log_debug("token", "asking");
	teardown(&tb);
}

TEST(virtual_machine_has_a_token)
{
	struct token_bed tb;

	setup(&tb, TOKEN_IMDS);
	tb.p.client = "some-client";
	answer(&tb, "200 OK",
		"{\"access_token\":\"" TOKEN "\",\"refresh_token\":\"\",\"expires_in\":"
		"\"3599\",\"expires_on\":\"1795151860\",\"resource\":\"x\"}");
	CHECK_STR(get(&tb), NULL);
	await_change(&tb);
	check_good(&tb, TOKEN);
	CHECK(said(&tb,
		"GET /metadata/identity/oauth2/token?api-version=2018-02-01&"
		"resource=https%3A%2F%2Fstorage.azure.com%2F&client_id=some-client "
		"HTTP/1.1\r\n"));
	CHECK(said(&tb, "\r\nMetadata: true\r\n"));
	teardown(&tb);
}

TEST(endpoint_has_a_token_that_ends_at_a_time)
{
	struct token_bed tb;

	setup(&tb, TOKEN_ENDPOINT);
	answer(&tb, "200 OK",
		"{\"access_token\":\"" TOKEN "\",\"expires_on\":\"1795149261\","
		"\"resource\":\"https://storage.azure.com/\"}");
	CHECK_STR(get(&tb), NULL);
	await_change(&tb);
	check_good(&tb, TOKEN);
	CHECK(said(&tb, "GET /?api-version=2019-08-01&resource=https%3A%2F%2F"
			"storage.azure.com%2F HTTP/1.1\r\n") ||
		said(&tb, "GET ?api-version"));
	CHECK(said(&tb, "\r\nX-IDENTITY-HEADER: " SECRET "\r\n"));
	/* 1000 s are left: renewed at half. */
	CHECK_INT(seconds_until_asked(&tb), 500);
	teardown(&tb);
}

static void check_renewal(int life_s, int after_s)
{
	struct token_bed tb;

	setup(&tb, TOKEN_SECRET);
	answer_token(&tb, "one", life_s);
	CHECK_STR(get(&tb), NULL);
	await_change(&tb);
	answer_token(&tb, "two", life_s);
	CHECK_INT(seconds_until_asked(&tb), after_s);
	check_good(&tb, "one");
	await_change(&tb);
	check_good(&tb, "two");
	teardown(&tb);
}

TEST(renewal_is_at_half_or_five_minutes_before_the_end)
{
	check_renewal(3600, 1800);
	check_renewal(86400, 43200);
	check_renewal(602, 301);
	check_renewal(590, 290);
	check_renewal(400, 100);
}

TEST(short_life_is_no_circle)
{
	check_renewal(310, 30);
	check_renewal(100, 30);
	check_renewal(20, 10);
}

TEST(old_token_is_used_while_renewal_fails)
{
	struct token_bed tb;

	setup(&tb, TOKEN_SECRET);
	answer_token(&tb, TOKEN, 3600);
	CHECK_STR(get(&tb), NULL);
	await_change(&tb);
	answer(&tb, "503 Busy", "");
	CHECK_INT(seconds_until_asked(&tb), 1800);
	AWAIT(&tb.b, log_file_count(&tb.log, "warning token: none yet") == 1);
	check_good(&tb, TOKEN);
	clock_step(1739 * NS_PER_S);
	check_good(&tb, TOKEN);
	clock_step(2 * NS_PER_S);
	check_none(&tb, -EAGAIN, "HTTP 503");
	answer_token(&tb, "two", 3600);
	await_change(&tb);
	check_good(&tb, "two");
	CHECK_INT(log_file_count(&tb.log, "info token: there is one again"), 1);
	teardown(&tb);
}

/* Until asking has failed NUMBER times, which nobody but the log is told. */
static void await_outcome(struct token_bed *tb, unsigned number)
{
	AWAIT(&tb->b, log_file_count(&tb->log, "debug token: none") >= number);
}

TEST(unreachable_is_tried_again_ever_more_slowly)
{
	static const int waits[] = {1, 2, 4, 8, 16, 32, 60, 60, 60};
	struct token_bed tb;

	setup(&tb, TOKEN_SECRET);
	hs_refuse(&tb.b.server);
	CHECK_STR(get(&tb), NULL);
	for (unsigned i = 0; i < 9; i++) {
		await_outcome(&tb, i + 1);
		check_none(&tb, -EAGAIN, "client secret: ");
		CHECK_INT(seconds_until_asked(&tb), waits[i]);
	}
	CHECK_INT(tb.changes, 0);
	teardown(&tb);
}

TEST(service_says_when_to_come_again)
{
	struct token_bed tb;

	setup(&tb, TOKEN_IMDS);
	tb.b.server.text = "HTTP/1.1 429 Too many\r\nRetry-After: 17\r\n"
			   "Content-Length: 0\r\n\r\n";
	CHECK_STR(get(&tb), NULL);
	await_outcome(&tb, 1);
	check_none(&tb, -EAGAIN, "managed identity: HTTP 429");
	CHECK_INT(seconds_until_asked(&tb), 17);
	await_outcome(&tb, 2);
	answer(&tb, "404 Moving", "{}");
	CHECK_INT(seconds_until_asked(&tb), 17);
	await_outcome(&tb, 3);
	check_none(&tb, -EAGAIN, "HTTP 404");
	CHECK_INT(seconds_until_asked(&tb), 4);
	teardown(&tb);
}

TEST(nobody_at_the_machine_address_is_no_identity)
{
	struct token_bed tb;

	setup(&tb, TOKEN_IMDS);
	hs_refuse(&tb.b.server);
	CHECK_STR(get(&tb), NULL);
	for (unsigned i = 0; i < 2; i++) {
		await_outcome(&tb, i + 1);
		check_none(&tb, -EAGAIN, "");
		clock_step(2 * NS_PER_S);
	}
	await_change(&tb);
	check_none(&tb, -EACCES, "managed identity: ");
	CHECK_INT(seconds_until_asked(&tb), 4);
	teardown(&tb);
}

TEST(refusal_says_why_and_is_asked_again_slowly)
{
	struct token_bed tb;

	setup(&tb, TOKEN_SECRET);
	answer(&tb, "401 Unauthorized",
		"{\"error\":\"invalid_client\",\"error_description\":\"AADSTS7000215: "
		"Invalid client secret provided.\\r\\nTrace ID: 0123\",\"error_codes\":"
		"[7000215]}");
	CHECK_STR(get(&tb), NULL);
	await_change(&tb);
	check_none(&tb, -EACCES,
		"client secret: HTTP 401 invalid_client: AADSTS7000215: Invalid client "
		"secret provided.");
	CHECK(!strstr(tb.detail, "Trace"));
	CHECK_INT(log_file_count(&tb.log, "warning token: refused"), 1);
	CHECK_INT(seconds_until_asked(&tb), 300);
	await_outcome(&tb, 2);
	CHECK_INT(tb.changes, 1);
	answer_token(&tb, TOKEN, 3600);
	CHECK_INT(seconds_until_asked(&tb), 300);
	await_change(&tb);
	check_good(&tb, TOKEN);
	teardown(&tb);
}

TEST(refusal_that_repeats_the_secret_is_not_shown)
{
	struct token_bed tb;

	setup(&tb, TOKEN_SECRET);
	answer(&tb, "400 Bad",
		"{\"error\":\"invalid\\u0001\",\"error_description\":\"you sent " SECRET
		"\"}");
	CHECK_STR(get(&tb), NULL);
	await_change(&tb);
	check_none(&tb, -EACCES, "HTTP 400 invalid");
	CHECK(!strstr(tb.detail, "sent") && !strchr(tb.detail, 1));
	teardown(&tb);
}

static void check_nonsense(const char *json)
{
	struct token_bed tb;

	setup(&tb, TOKEN_SECRET);
	answer(&tb, "200 OK", json);
	CHECK_STR(get(&tb), NULL);
	await_outcome(&tb, 1);
	check_none(&tb, -EAGAIN, "the answer is no token");
	teardown(&tb);
}

TEST(nonsense_is_no_token)
{
	check_nonsense("");
	check_nonsense("<html>log in</html>");
	check_nonsense("{}");
	check_nonsense("[1]");
	check_nonsense("{\"access_token\":\"a\"}");
	check_nonsense("{\"access_token\":7,\"expires_in\":60}");
	check_nonsense("{\"access_token\":\"\",\"expires_in\":60}");
	check_nonsense("{\"access_token\":\"a\\r\\nX: y\",\"expires_in\":60}");
	check_nonsense("{\"access_token\":\"a\",\"expires_in\":0}");
	check_nonsense("{\"access_token\":\"a\",\"expires_in\":\"soon\"}");
	check_nonsense("{\"access_token\":\"a\",\"expires_on\":\"1795148261\"}");
}

/* Of this machine's clock nothing is known. */
TEST(end_of_a_token_is_told_by_the_clock_of_who_gives_it)
{
	struct token_bed tb;

	setup(&tb, TOKEN_ENDPOINT);
	answer(&tb, "200 OK\r\nDate: Fri, 20 Nov 2026 01:17:41 GMT",
		"{\"access_token\":\"" TOKEN "\",\"expires_on\":\"1795138461\"}");
	CHECK_STR(get(&tb), NULL);
	await_change(&tb);
	check_good(&tb, TOKEN);
	CHECK_INT(seconds_until_asked(&tb), 500);
	teardown(&tb);
}

TEST(long_life_is_cut)
{
	struct token_bed tb;

	setup(&tb, TOKEN_SECRET);
	answer(&tb, "200 OK", "{\"access_token\":\"a\",\"expires_in\":1e300}");
	CHECK_STR(get(&tb), NULL);
	await_change(&tb);
	check_good(&tb, "a");
	teardown(&tb);
}

TEST(token_that_the_service_refused_is_replaced_but_not_in_a_rush)
{
	struct token_bed tb;

	setup(&tb, TOKEN_SECRET);
	answer_token(&tb, "one", 3600);
	CHECK_STR(get(&tb), NULL);
	token_refused(tb.token);
	await_change(&tb);
	clock_step(29 * NS_PER_S);
	token_refused(tb.token);
	settle(&tb);
	CHECK_INT(asked(&tb), 1);
	clock_step(NS_PER_S);
	answer_token(&tb, "two", 3600);
	token_refused(tb.token);
	token_refused(tb.token);
	CHECK_INT(asked(&tb), 2);
	check_good(&tb, "one");
	await_change(&tb);
	check_good(&tb, "two");
	token_refused(tb.token);
	CHECK_INT(asked(&tb), 2);
	CHECK_INT(seconds_until_asked(&tb), 1800);
	teardown(&tb);
}

TEST(destroyed_while_asking)
{
	struct token_bed tb;

	setup(&tb, TOKEN_ENDPOINT);
	CHECK_STR(get(&tb), NULL);
	token_destroy(tb.token);
	tb.token = NULL;
	settle(&tb);
	CHECK_INT(tb.changes, 0);
	teardown(&tb);
}
