/* SPDX-License-Identifier: MIT */
#include "backend/wire/account_creds.h"

#include <errno.h>
#include <stdlib.h>

#include "backend/base/clock.h"
#include "tests/test.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

static char err[200];

/* Names and values in turn, NULL at the end. */
static const char *get(const void *arg, const char *name)
{
	for (const char *const *v = arg; *v; v += 2) {
		if (strcmp(v[0], name) == 0)
			return v[1];
	}
	return NULL;
}

static int decide(struct creds *c, const char *const *vars)
{
	err[0] = '\0';
	return creds_decide(c, get, vars, err, sizeof(err));
}

#define DECIDE(c, ...) decide(c, (const char *const[]){__VA_ARGS__, NULL})

static int from_text(struct creds *c, const char *text)
{
	size_t n = strlen(text);
	char *exact = malloc(n + 1);
	int r;

	CHECK(exact);
	memcpy(exact, text, n + 1);
	err[0] = '\0';
	r = creds_from_text(c, exact, n, err, sizeof(err));
	free(exact);
	return r;
}

TEST(connection_string_is_before_all_others)
{
	struct creds c;

	CHECK_INT(DECIDE(&c, "AZURE_STORAGE_CONNECTION_STRING",
			  "AccountName=acct;AccountKey=a2V5", "AZURE_STORAGE_ACCOUNT",
			  "other", "AZURE_STORAGE_SAS_TOKEN", "sig=x"),
		0);
	CHECK_INT(c.kind, CREDS_KEY);
	CHECK_STR(c.label, "connection string");
	CHECK_STR(c.name, "acct");
	CHECK_INT(c.key_len, 3);
	CHECK_INT(memcmp(c.key, "key", 3), 0);
	creds_fini(&c);
}

TEST(connection_string_with_a_signature_has_its_name_from_the_address)
{
	struct creds c;

	CHECK_INT(DECIDE(&c, "AZURE_STORAGE_CONNECTION_STRING",
			  "QueueEndpoint=https://acct.queue.core.windows.net/;"
			  "SharedAccessSignature=?sig=x&se=2026-11-20T05:19:34Z"),
		0);
	CHECK_INT(c.kind, CREDS_SAS);
	CHECK_STR(c.name, "acct");
	CHECK_STR(c.sas, "sig=x&se=2026-11-20T05:19:34Z");
	CHECK_INT(c.sas_expires_ns, 1795151974 * NS_PER_S);
	CHECK_INT(c.sas_start_ns, -1);
	creds_fini(&c);
}

TEST(signature_is_before_a_key_and_a_key_before_a_client)
{
	struct creds c;

	CHECK_INT(DECIDE(&c, "AZURE_STORAGE_SAS_TOKEN", "?sig=x", "AZURE_STORAGE_KEY",
			  "a2V5", "AZURE_STORAGE_ACCOUNT", "acct"),
		0);
	CHECK_INT(c.kind, CREDS_SAS);
	CHECK_STR(c.sas, "sig=x");
	CHECK_STR(c.name, "acct");
	creds_fini(&c);
	CHECK_INT(DECIDE(&c, "AZURE_STORAGE_SAS_TOKEN", "", "AZURE_STORAGE_KEY", "a2V5",
			  "AZURE_CLIENT_SECRET", "s"),
		0);
	CHECK_INT(c.kind, CREDS_KEY);
	CHECK_STR(c.label, "shared key");
	CHECK_STR(c.name, NULL);
	creds_fini(&c);
}

TEST(federated_is_before_a_secret)
{
	struct creds c;

	CHECK_INT(DECIDE(&c, "AZURE_TENANT_ID", "t", "AZURE_CLIENT_ID", "c",
			  "AZURE_FEDERATED_TOKEN_FILE", "/f", "AZURE_CLIENT_SECRET", "s",
			  "AZURE_AUTHORITY_HOST", "https://login.example/"),
		0);
	CHECK_INT(c.kind, CREDS_FEDERATED);
	CHECK_STR(c.label, "workload identity");
	CHECK_STR(c.file, "/f");
	CHECK_STR(c.authority, "https://login.example/");
	creds_fini(&c);
	CHECK_INT(DECIDE(&c, "AZURE_TENANT_ID", "t", "AZURE_CLIENT_ID", "c",
			  "AZURE_CLIENT_SECRET", "s"),
		0);
	CHECK_INT(c.kind, CREDS_SECRET);
	CHECK_STR(c.secret, "s");
	CHECK_STR(c.tenant, "t");
	CHECK_STR(c.client, "c");
	CHECK_STR(c.authority, "https://login.microsoftonline.com");
	creds_fini(&c);
}

TEST(machine_is_the_last)
{
	struct creds c;

	CHECK_INT(DECIDE(&c, "IDENTITY_ENDPOINT", "http://127.0.0.1:1/t",
			  "IDENTITY_HEADER", "h", "AZURE_CLIENT_ID", "c"),
		0);
	CHECK_INT(c.kind, CREDS_ENDPOINT);
	CHECK_STR(c.authority, "http://127.0.0.1:1/t");
	CHECK_STR(c.header, "h");
	CHECK_STR(c.client, "c");
	CHECK(!c.guessed);
	creds_fini(&c);
	CHECK_INT(DECIDE(&c, "IDENTITY_ENDPOINT", "http://127.0.0.1:1/t"), 0);
	CHECK_INT(c.kind, CREDS_IMDS);
	CHECK_STR(c.authority, "http://169.254.169.254");
	CHECK_STR(c.client, NULL);
	CHECK(c.guessed);
	creds_fini(&c);
}

TEST(errors_name_the_variable_and_never_its_value)
{
	static const struct {
		const char *vars[7], *says;
	} bad[] = {
		{{"AZURE_STORAGE_KEY", "qqq"}, "AZURE_STORAGE_KEY: this is no base64"},
		{{"AZURE_STORAGE_SAS_TOKEN", "qqq"}, "AZURE_STORAGE_SAS_TOKEN: "},
		{{"AZURE_STORAGE_KEY", "a2V5", "AZURE_STORAGE_ACCOUNT", "q/qqq"},
			"AZURE_STORAGE_ACCOUNT: this is no name"},
		{{"AZURE_STORAGE_CONNECTION_STRING", "AccountKey=qqq"},
			"AccountKey: this is no base64"},
		{{"AZURE_STORAGE_CONNECTION_STRING", "AccountKey=a2V5;AccountName=qqq:x"},
			"AccountName: this is no name"},
		{{"AZURE_CLIENT_SECRET", "qqq", "AZURE_CLIENT_ID", "qqq"},
			"AZURE_CLIENT_SECRET is there, but not AZURE_TENANT_ID"},
		{{"AZURE_FEDERATED_TOKEN_FILE", "qqq", "AZURE_TENANT_ID", "qqq"},
			"AZURE_FEDERATED_TOKEN_FILE is there, but not AZURE_CLIENT_ID"},
		{{"AZURE_CLIENT_SECRET", "qqq", "AZURE_AUTHORITY_HOST", "http://qqq/"},
			"AZURE_AUTHORITY_HOST: this is no https:// address"},
		{{"IDENTITY_ENDPOINT", "http://qqq", "IDENTITY_HEADER", "qqq\r\nX: y"},
			"IDENTITY_HEADER: it has control characters"},
	};
	struct creds c;

	for (size_t i = 0; i < N(bad); i++) {
		CHECK_INT(decide(&c, bad[i].vars), -EINVAL);
		if (!strstr(err, bad[i].says))
			printf("# %s\n", err);
		CHECK(strstr(err, bad[i].says));
		CHECK(!strstr(err, "qqq"));
		CHECK(!c.key && !c.sas && !c.secret && !c.name);
	}
}

TEST(file_has_variables)
{
	struct creds c;

	CHECK_INT(
		from_text(&c, "# mine\r\n\n  AZURE_STORAGE_ACCOUNT=acct\r\n"
			      "AZURE_STORAGE_KEY=\"a2V5\" \n#AZURE_STORAGE_SAS_TOKEN=x"),
		0);
	CHECK_INT(c.kind, CREDS_KEY);
	CHECK_STR(c.name, "acct");
	CHECK_INT(c.key_len, 3);
	creds_fini(&c);
	CHECK_INT(from_text(&c, "AZURE_STORAGE_CONNECTION_STRING='AccountName=a;"
				"SharedAccessSignature=sig=x'"),
		0);
	CHECK_STR(c.sas, "sig=x");
	creds_fini(&c);
	CHECK_INT(from_text(&c, "AZURE_CLIENT_ID=c\n"), 0);
	CHECK_INT(c.kind, CREDS_IMDS);
	CHECK_STR(c.client, "c");
	creds_fini(&c);
}

TEST(file_is_a_connection_string)
{
	struct creds c;

	CHECK_INT(from_text(&c, "AccountName=acct;AccountKey=a2V5\n"), 0);
	CHECK_STR(c.label, "connection string");
	CHECK_STR(c.name, "acct");
	creds_fini(&c);
}

TEST(file_asks_no_environment)
{
	struct creds c;

	setenv("AZURE_STORAGE_KEY", "a2V5", 1);
	CHECK_INT(from_text(&c, "AZURE_STORAGE_ACCOUNT=acct\n"), -EINVAL);
	CHECK_STR(err, "it names no credentials");
	CHECK_INT(creds_from_env(&c, err, sizeof(err)), 0);
	CHECK_INT(c.kind, CREDS_KEY);
	creds_fini(&c);
	unsetenv("AZURE_STORAGE_KEY");
}

TEST(any_file_is_read_within_its_bounds)
{
	static const char whole[] =
		"#x\n AZURE_STORAGE_KEY='a2V5'\r\nIDENTITY_HEADER=\"\"\n"
		"AZURE_CLIENT_ID=\"\nA=";
	unsigned random = 1;
	struct creds c;

	for (int i = 0; i < 20000; i++) {
		char text[sizeof(whole)];

		memcpy(text, whole, sizeof(whole));
		for (int k = 0; k < 3; k++) {
			random = random * 1103515245 + 12345;
			text[(random >> 16) % sizeof(whole)] =
				"=; #'\0\n\""[random >> 29];
		}
		text[(random >> 8) % sizeof(whole)] = '\0';
		text[sizeof(text) - 1] = '\0';
		(void)from_text(&c, text);
		creds_fini(&c);
	}
}

TEST(token_travels_over_tls_or_to_this_machine)
{
	CHECK(creds_safe_url("https://a.queue.core.windows.net"));
	CHECK(creds_safe_url("http://127.0.0.1:10001"));
	CHECK(creds_safe_url("http://localhost/x"));
	CHECK(creds_safe_url("http://[::1]:1"));
	CHECK(!creds_safe_url("http://127.0.0.1.example/"));
	CHECK(!creds_safe_url("http://localhost.example/"));
	CHECK(!creds_safe_url("http://127.0.0.1@example/"));
	CHECK(!creds_safe_url("http://127.0.0.1:1@example/"));
	CHECK(!creds_safe_url("ftp://127.0.0.1/"));
	CHECK(!creds_safe_url(""));
}
