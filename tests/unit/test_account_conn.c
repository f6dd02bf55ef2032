/* SPDX-License-Identifier: MIT */
#include "backend/wire/account_conn.h"

#include <errno.h>
#include <stdlib.h>

#include "tests/test.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

static char err[200];

/* Without a byte behind the text, so that reading one is seen. */
static int parse_n(const char *text, size_t n, struct account_conn *c)
{
	char *exact = malloc(n ? n : 1);
	int r;

	CHECK(exact);
	memcpy(exact, text, n);
	err[0] = '\0';
	r = account_conn_parse(exact, n, c, err, sizeof(err));
	free(exact);
	CHECK_INT(r < 0, *err != '\0');
	return r;
}

static int parse(const char *text, struct account_conn *c)
{
	return parse_n(text, strlen(text), c);
}

TEST(parts_are_found_in_any_order)
{
	struct account_conn c;

	CHECK_INT(parse("AccountKey=c2Vj/+Q==;EndpointSuffix=core.windows.net;"
			"DefaultEndpointsProtocol=https;AccountName=acct",
			  &c),
		0);
	CHECK_STR(c.protocol, "https");
	CHECK_STR(c.name, "acct");
	CHECK_STR(c.key, "c2Vj/+Q==");
	CHECK_STR(c.suffix, "core.windows.net");
	CHECK_STR(c.queue, NULL);
	CHECK_STR(c.sas, NULL);
	CHECK(!c.emulator);
	account_conn_fini(&c);
	CHECK_STR(c.key, NULL);
}

TEST(values_keep_their_equal_signs)
{
	struct account_conn c;

	CHECK_INT(parse("QueueEndpoint=https://a.queue.example/;"
			"SharedAccessSignature=sv=2021-12-02&sig=a%3D==",
			  &c),
		0);
	CHECK_STR(c.queue, "https://a.queue.example/");
	CHECK_STR(c.sas, "sv=2021-12-02&sig=a%3D==");
	account_conn_fini(&c);
}

TEST(case_blanks_and_empty_parts_do_not_matter)
{
	struct account_conn c;

	CHECK_INT(parse(";;\n ACCOUNTname = acct ;\taccountkey=a2V5 ; ;BlobEndpoint=x;"
			"Unknown=;=y;\r\n",
			  &c),
		0);
	CHECK_STR(c.name, "acct");
	CHECK_STR(c.key, "a2V5");
	account_conn_fini(&c);
}

TEST(emulator_needs_no_more)
{
	struct account_conn c;

	CHECK_INT(parse("UseDevelopmentStorage=true", &c), 0);
	CHECK(c.emulator);
	CHECK_STR(c.name, "devstoreaccount1");
	CHECK_INT(strlen(c.key), 88);
	account_conn_fini(&c);
	CHECK_INT(parse("UseDevelopmentStorage=false;AccountKey=a2V5", &c), -EINVAL);
}

TEST(errors_name_the_key_and_never_a_value)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"", "neither AccountKey nor SharedAccessSignature"},
		{";", "neither AccountKey"},
		{"AccountName=qqq", "neither AccountKey"},
		{"AccountKey=", "AccountKey is empty"},
		{"AccountName=qqq;AccountKey= ;", "AccountKey is empty"},
		{"AccountKey=qqq;AccountKey=qqq", "AccountKey is there twice"},
		{"SharedAccessSignature=qqq;x;a=b", "part 2 has no '='"},
		{"qqq", "part 1 has no '='"},
		{"UseDevelopmentStorage=qqq", "UseDevelopmentStorage can only be true"},
	};
	struct account_conn c;

	for (size_t i = 0; i < N(bad); i++) {
		CHECK_INT(parse(bad[i].text, &c), -EINVAL);
		CHECK(strstr(err, bad[i].says));
		CHECK(!strstr(err, "qqq"));
		CHECK_STR(c.name, NULL);
		CHECK_STR(c.key, NULL);
		CHECK_STR(c.sas, NULL);
	}
	CHECK_INT(parse_n("AccountKey=a\0b", 14, &c), -EINVAL);
	CHECK(strstr(err, "NUL"));
}

TEST(any_bytes_are_read_within_their_bounds)
{
	static const char whole[] =
		"DefaultEndpointsProtocol=https;AccountName=a;AccountKey=a2V5==;"
		"QueueEndpoint=http://h/a;UseDevelopmentStorage=true;;=;x";
	unsigned random = 1;
	struct account_conn c;

	for (size_t n = 0; n < sizeof(whole); n++) {
		(void)parse_n(whole, n, &c);
		account_conn_fini(&c);
	}
	for (int i = 0; i < 20000; i++) {
		char text[sizeof(whole)];

		memcpy(text, whole, sizeof(whole));
		for (int k = 0; k < 4; k++) {
			random = random * 1103515245 + 12345;
			text[(random >> 16) % sizeof(whole)] =
				"=; aA\0\n\xff"[random >> 29];
		}
		(void)parse_n(text, (random >> 8) % sizeof(whole), &c);
		account_conn_fini(&c);
	}
}

static void check_url(const char *url, const char *want)
{
	char name[16] = "";

	CHECK_INT(account_of_url(url, name, sizeof(name)), want ? 0 : -EINVAL);
	CHECK_STR(name, want ? want : "");
}

TEST(account_is_in_the_host_or_the_path)
{
	check_url("https://acct.queue.core.windows.net", "acct");
	check_url("https://acct.queue.core.windows.net:443/", "acct");
	check_url("http://127.0.0.1:10001/devacct/q?x", "devacct");
	check_url("http://localhost:10001/devacct", "devacct");
	check_url("http://azurite/devacct", "devacct");
	check_url("http://[::1]:10001/devacct", "devacct");
	check_url("http://127.0.0.1:10001", NULL);
	check_url("http://127.0.0.1:10001/", NULL);
	check_url("https://", NULL);
	check_url("acct.queue.core.windows.net", NULL);
	check_url("https://.queue.core.windows.net", NULL);
	check_url("https://abcdefghijklmnop.queue.x", NULL);
}
