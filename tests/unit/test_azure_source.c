/* SPDX-License-Identifier: MIT */
#include "backend/drivers/azure_source.h"

#include <errno.h>

#include "tests/test.h"

static void accepted(const char *source, const char *origin, const char *prefix,
	const char *account, const char *queue)
{
	struct azure_source s;
	char err[256] = "", poison[128];
	int r = azure_source_parse(source, &s, err, sizeof(err));

	CHECK_STR(err, "");
	CHECK_INT(r, 0);
	CHECK_STR(s.origin, origin);
	CHECK_STR(s.prefix, prefix);
	CHECK_STR(s.account, account);
	CHECK_STR(s.queue, queue);
	snprintf(poison, sizeof(poison), "%s-poison", queue);
	CHECK_STR(s.poison, poison);
	CHECK(azure_source_is(source));
	azure_source_fini(&s);
	CHECK(!s.origin);
}

/* The line says WORD, and nothing of a secret. */
static void refused(const char *source, const char *word)
{
	struct azure_source s;
	char err[256] = "";

	CHECK_INT(azure_source_parse(source, &s, err, sizeof(err)), -EINVAL);
	if (!strstr(err, word))
		CHECK_STR(err, word);
	CHECK(!strstr(err, "SECRET"));
	CHECK(!s.origin && !s.queue);
}

TEST(the_account_is_in_the_host_or_in_the_path)
{
	accepted("https://acct.queue.core.windows.net/jobs",
		"https://acct.queue.core.windows.net", "", "acct", "jobs");
	accepted("https://acct2.queue.core.chinacloudapi.cn/a-b-c/",
		"https://acct2.queue.core.chinacloudapi.cn", "", "acct2", "a-b-c");
	accepted("https://acct.z42.queue.storage.azure.net/jobs",
		"https://acct.z42.queue.storage.azure.net", "", "acct", "jobs");
	accepted("azure-queue+http://127.0.0.1:10001/devstoreaccount1/jobs",
		"http://127.0.0.1:10001", "/devstoreaccount1", "devstoreaccount1",
		"jobs");
	accepted("azure-queue+https://queues.example:8443/acct/jobs",
		"https://queues.example:8443", "/acct", "acct", "jobs");
	accepted("azure-queue+http://[::1]:10001/acct/jobs", "http://[::1]:10001",
		"/acct", "acct", "jobs");
	accepted("azure-queue+http://127.1.2.3/acct/jobs", "http://127.1.2.3", "/acct",
		"acct", "jobs");
	accepted("azure-queue+http://localhost/acct/123", "http://localhost", "/acct",
		"acct", "123");
}

TEST(http_is_for_this_machine_only)
{
	refused("azure-queue+http://10.0.0.1:10001/acct/jobs", "https");
	refused("azure-queue+http://127.evil.example/acct/jobs", "https");
	refused("azure-queue+http://localhost.example/acct/jobs", "https");
	refused("azure-queue+http://[::1].evil.example/acct/jobs", "https");
	refused("azure-queue+http://[::1]\t1/acct/jobs", "https");
	/* No addresses: somebody's name server would be asked. */
	refused("azure-queue+http://127.0.0.1.2/acct/jobs", "https");
	refused("azure-queue+http://127.0/acct/jobs", "https");
	refused("azure-queue+http://127.999.0.1/acct/jobs", "https");
	refused("http://acct.queue.core.windows.net/jobs", "https");
}

TEST(secrets_have_no_place_in_it)
{
	refused("https://acct.queue.core.windows.net/jobs?sv=1&sig=SECRET", "query");
	refused("https://acct.queue.core.windows.net/jobs#SECRET", "query");
	refused("https://user:SECRET@acct.queue.core.windows.net/jobs", "user");
	refused("azure-queue+http://SECRET@127.0.0.1/acct/jobs", "user");
}

TEST(names_of_queues)
{
#define AT      "azure-queue+http://127.0.0.1/acct/"
#define NAME_56 "a2345678901234567890123456789012345678901234567890123456"
	accepted(AT "a-1", "http://127.0.0.1", "/acct", "acct", "a-1");
	accepted(AT NAME_56, "http://127.0.0.1", "/acct", "acct", NAME_56);
	refused(AT NAME_56 "7", "-poison");
	refused(AT NAME_56 "7890123", "-poison");
	refused(AT NAME_56 "78901234", "3 to 63");
	refused(AT "ab", "3 to 63");
	refused(AT "Jobs", "lower-case");
	refused(AT "a_b", "lower-case");
	refused(AT "a.b", "lower-case");
	refused(AT "-ab", "dash");
	refused(AT "ab-", "dash");
	refused(AT "a--b", "single");
	refused(AT "a%2fb", "lower-case");
}

TEST(names_of_accounts)
{
	refused("azure-queue+http://127.0.0.1/ab/jobs", "3 to 24");
	refused("azure-queue+http://127.0.0.1/a234567890123456789012345/jobs", "3 to 24");
	refused("azure-queue+http://127.0.0.1/Acct/jobs", "3 to 24");
	refused("https://acct-secondary.queue.core.windows.net/jobs", "account");
}

TEST(what_is_no_such_url)
{
	refused("azure-queue+ftp://127.0.0.1/acct/jobs", "https://");
	refused("azure-queue+http:///acct/jobs", "https://");
	refused("azure-queue+http://[::1/acct/jobs", "https://");
	refused("azure-queue+http://127.0.0.1:1x/acct/jobs", "port");
	refused("azure-queue+http://127.0.0.1:123456/acct/jobs", "port");
	refused("azure-queue+https://a b/acct/jobs", "host");
	refused("azure-queue+http://127.0.0.1/acct", "/ACCOUNT/QUEUE");
	refused("azure-queue+http://127.0.0.1/acct/jobs/messages", "/ACCOUNT/QUEUE");
	refused("https://acct.queue.core.windows.net", "/QUEUE");
	refused("https://acct.queue.core.windows.net/jobs/messages", "/QUEUE");
	refused("https://acct.blob.core.windows.net/jobs", "queue");
	refused("azure-queue+https://acct.queue.core.windows.net/jobs", "/ACCOUNT/QUEUE");
}

TEST(what_belongs_to_others)
{
	CHECK(!azure_source_is("/var/spool/q.db"));
	CHECK(!azure_source_is("queue.db"));
	CHECK(!azure_source_is("https://acct.blob.core.windows.net/jobs"));
	CHECK(!azure_source_is("https://sqs.eu-west-1.amazonaws.com/1/jobs"));
	CHECK(!azure_source_is("https://queue.core.windows.net/jobs"));
	CHECK(!azure_source_is("sb://acct.queue.core.windows.net/jobs"));
	CHECK(azure_source_is("http://acct.queue.core.windows.net/jobs"));
	CHECK(azure_source_is("azure-queue+nonsense"));
}
