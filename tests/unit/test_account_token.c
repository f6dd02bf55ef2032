/* SPDX-License-Identifier: MIT */
/* From what is in the environment to a request that a service takes. */
#include "backend/wire/account.h"

#include "account_bed.h"

/* Gives tokens; takes requests that have "eyJqqq.1". */
static void serve(struct hs_conn *c)
{
	struct account_bed *ab = c->server->arg;
	const char *request = c->server->last.p;

	if (strstr(request, "/token") || strstr(request, "X-IDENTITY-HEADER"))
		hs_say(c, ab->text);
	else if (strstr(request, "\r\nAuthorization: Bearer eyJqqq.1\r\n"))
		hs_say(c, "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
	else
		hs_say(c, "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n");
}

static void give(struct account_bed *ab, const char *status, const char *json)
{
	snprintf(ab->text, sizeof(ab->text),
		"HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s", status, strlen(json),
		json);
}

static void give_token(struct account_bed *ab, const char *value)
{
	char json[200];

	snprintf(json, sizeof(json), "{\"access_token\":\"%s\",\"expires_in\":3599}",
		value);
	give(ab, "200 OK", json);
}

static void setup_tokens(struct account_bed *ab)
{
	setup(ab);
	ab->p.name = "devstoreaccount1";
	ab->b.server.answer = serve;
	ab->b.server.arg = ab;
	give_token(ab, "eyJqqq.1");
}

static void await_change(struct account_bed *ab)
{
	unsigned before = ab->changes;

	AWAIT(&ab->b, ab->changes > before);
}

static void on_done(struct http_req *req)
{
	struct account_bed *ab = req->arg;

	ab->b.done++;
}

/* Sends what was prepared; the status. */
static int run(struct account_bed *ab)
{
	unsigned before = ab->b.done;

	CHECK_INT(prepare(ab), 0);
	ab->req.done = on_done;
	ab->req.arg = ab;
	http_submit(ab->b.http, &ab->req);
	AWAIT(&ab->b, ab->b.done > before);
	CHECK_INT(ab->req.err, 0);
	account_answered(ab->account, &ab->req);
	return ab->req.status;
}

static void check_flow(struct account_bed *ab, const char *kind)
{
	CHECK_INT(open_account(ab), 0);
	CHECK_STR(account_kind(ab->account), kind);
	settle(ab);
	CHECK_INT(ab->b.server.requests, 0);
	CHECK_INT(prepare(ab), -EAGAIN);
	CHECK(strstr(ab->req.detail, "a token is being fetched"));
	await_change(ab);
	CHECK_INT(run(ab), 201);
	CHECK(strstr(ab->b.server.last.p, "PUT /devstoreaccount1/jobs HTTP"));
	CHECK(strstr(ab->b.server.last.p, "\r\nx-ms-version: 2021-12-02\r\n"));
	CHECK(strstr(ab->b.server.last.p, "\r\nx-ms-date: " DATE "\r\n"));
	CHECK_INT(ab->changes, 1);
}

TEST(flow_with_a_secret)
{
	struct account_bed ab;

	setup_tokens(&ab);
	ENV("AZURE_TENANT_ID", "t", "AZURE_CLIENT_ID", "c", "AZURE_CLIENT_SECRET", "qqq",
		"AZURE_AUTHORITY_HOST", ab.origin);
	check_flow(&ab, "client secret");
	teardown(&ab);
}

TEST(flow_with_a_workload_identity)
{
	struct account_bed ab;

	setup_tokens(&ab);
	put_file(&ab, "qqq.assertion", 0644);
	ENV("AZURE_TENANT_ID", "t", "AZURE_CLIENT_ID", "c", "AZURE_FEDERATED_TOKEN_FILE",
		ab.file, "AZURE_AUTHORITY_HOST", ab.origin);
	check_flow(&ab, "workload identity");
	teardown(&ab);
}

TEST(flow_on_a_virtual_machine)
{
	struct account_bed ab;

	setup_tokens(&ab);
	ENV("AZURE_POD_IDENTITY_AUTHORITY_HOST", ab.origin);
	check_flow(&ab, "managed identity");
	teardown(&ab);
}

TEST(flow_with_an_endpoint)
{
	struct account_bed ab;

	setup_tokens(&ab);
	ENV("IDENTITY_ENDPOINT", ab.origin, "IDENTITY_HEADER", "qqq");
	check_flow(&ab, "managed identity");
	teardown(&ab);
}

TEST(flow_with_a_file_of_variables)
{
	struct account_bed ab;
	char text[300];

	setup_tokens(&ab);
	snprintf(text, sizeof(text),
		"AZURE_TENANT_ID=t\nAZURE_CLIENT_ID=c\nAZURE_CLIENT_SECRET=qqq\n"
		"AZURE_AUTHORITY_HOST=%s\n",
		ab.origin);
	put_file(&ab, text, 0600);
	ab.p.credentials = ab.file;
	check_flow(&ab, "client secret");
	/* A key from now on: no token is needed, none is asked for. */
	put_file(&ab, "UseDevelopmentStorage=true", 0600);
	await_change(&ab);
	CHECK_STR(account_kind(ab.account), "connection string");
	CHECK_INT(prepare(&ab), 0);
	CHECK(strstr(ab.req.headers.p, "Authorization: SharedKey devstoreaccount1:"));
	teardown(&ab);
}

TEST(refused_token_is_replaced)
{
	struct account_bed ab;

	setup_tokens(&ab);
	ENV("AZURE_POD_IDENTITY_AUTHORITY_HOST", ab.origin);
	CHECK_INT(open_account(&ab), 0);
	give_token(&ab, "eyJqqq.0");
	CHECK_INT(prepare(&ab), -EAGAIN);
	await_change(&ab);
	give_token(&ab, "eyJqqq.1");
	CHECK_INT(run(&ab), 401);
	settle(&ab);
	CHECK_INT(run(&ab), 401);
	CHECK_INT(ab.changes, 1);
	clock_step(30 * NS_PER_S);
	CHECK_INT(run(&ab), 401);
	await_change(&ab);
	CHECK_INT(run(&ab), 201);
	teardown(&ab);
}

TEST(refusal_to_give_a_token_says_why)
{
	struct account_bed ab;

	setup_tokens(&ab);
	ENV("AZURE_POD_IDENTITY_AUTHORITY_HOST", ab.origin);
	CHECK_INT(open_account(&ab), 0);
	give(&ab, "400 Bad Request",
		"{\"error\":\"invalid_request\",\"error_description\":\"Identity not found\"}");
	CHECK_INT(prepare(&ab), -EAGAIN);
	await_change(&ab);
	CHECK_INT(prepare(&ab), -EACCES);
	CHECK_STR(ab.req.detail,
		"managed identity: HTTP 400 invalid_request: Identity not found");
	teardown(&ab);
}

TEST(token_does_not_travel_over_plain_http)
{
	struct account_bed ab;

	setup_tokens(&ab);
	ENV("AZURE_POD_IDENTITY_AUTHORITY_HOST", ab.origin);
	CHECK_INT(open_account(&ab), 0);
	strcpy(ab.origin, "http://acct.queue.core.windows.net");
	CHECK_INT(prepare(&ab), -EACCES);
	CHECK_STR(ab.req.detail, "a token does not travel over plain HTTP");
	CHECK(!strstr(ab.req.headers.p, "Bearer"));
	teardown(&ab);
}

TEST(closed_while_a_token_is_fetched)
{
	struct account_bed ab;

	setup_tokens(&ab);
	ENV("IDENTITY_ENDPOINT", ab.origin, "IDENTITY_HEADER", "qqq");
	CHECK_INT(open_account(&ab), 0);
	CHECK_INT(prepare(&ab), -EAGAIN);
	account_close(ab.account);
	ab.account = NULL;
	settle(&ab);
	CHECK_INT(ab.changes, 0);
	teardown(&ab);
}
