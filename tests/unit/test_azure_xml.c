/* SPDX-License-Identifier: MIT */
#include "backend/drivers/azure_xml.h"

#include <errno.h>
#include <stdlib.h>

#include "backend/base/clock.h"
#include "tests/test.h"

#define HEAD "<?xml version=\"1.0\" encoding=\"utf-8\"?>"
#define BOM  "\xef\xbb\xbf"
#define WHEN "<InsertionTime>Fri, 20 Nov 2026 04:17:41 GMT</InsertionTime>"
/* 2026-11-20 04:17:41 UTC */
#define WHEN_NS (INT64_C(1795148261) * NS_PER_S)

static int page_of(const char *xml, struct azure_page *p)
{
	memset(p, 0xa5, sizeof(*p));
	return azure_xml_page(xml, strlen(xml), p);
}

static void refused(const char *xml)
{
	struct azure_page p;

	CHECK_INT(page_of(xml, &p), -EPROTO);
	CHECK_INT(p.n, 0);
}

TEST(an_empty_page_in_both_dialects)
{
	static const char *const empty[] = {HEAD "<QueueMessagesList/>",
		BOM HEAD "<QueueMessagesList />",
		HEAD "<QueueMessagesList></QueueMessagesList>",
		"<QueueMessagesList>\r\n</QueueMessagesList>"};
	struct azure_page p;

	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
		CHECK_INT(page_of(empty[i], &p), 0);
		CHECK_INT(p.n, 0);
	}
}

TEST(a_message_as_the_service_writes_it)
{
	struct azure_page p;

	CHECK_INT(
		page_of(BOM HEAD
			"<QueueMessagesList><QueueMessage>"
			"<MessageId>b4f03bf0-be68-41ca-bd76-dff55b54a0dd</MessageId>" WHEN
			"<ExpirationTime>Fri, 31 Dec 9999 23:59:59 GMT</ExpirationTime>"
			"<PopReceipt>AgAAAAMAAAAAAAAAnsNZ/zYp1QE+=</PopReceipt>"
			"<TimeNextVisible>Fri, 20 Nov 2026 04:18:11 GMT</TimeNextVisible>"
			"<DequeueCount>3</DequeueCount>"
			"<MessageText> a &lt;b&gt; &amp;amp; ]]&gt;&#xD;\n\xc3\xa4 </MessageText>"
			"</QueueMessage></QueueMessagesList>",
			&p),
		0);
	CHECK_INT(p.n, 1);
	CHECK_STR(p.items[0].id, "b4f03bf0-be68-41ca-bd76-dff55b54a0dd");
	CHECK_STR(p.items[0].receipt, "AgAAAAMAAAAAAAAAnsNZ/zYp1QE+=");
	CHECK_STR(p.items[0].text, " a <b> &amp; ]]>\r\n\xc3\xa4 ");
	CHECK_INT(p.items[0].text_len, strlen(p.items[0].text));
	CHECK_INT(p.items[0].inserted_ns, WHEN_NS);
	CHECK_INT(p.items[0].dequeued, 3);
	azure_page_fini(&p);
	CHECK_INT(p.n, 0);
}

/* A peek has no receipt, the answer to a put no text, an empty text two forms. */
TEST(what_is_not_there_is_null)
{
	struct azure_page p;

	CHECK_INT(page_of("<QueueMessagesList>"
			  "<QueueMessage><MessageId>a-1</MessageId>" WHEN
			  "<MessageText/></QueueMessage>"
			  "<QueueMessage><MessageId>a-2</MessageId>" WHEN
			  "<MessageText></MessageText></QueueMessage>"
			  "<QueueMessage><MessageId>a-3</MessageId>" WHEN
			  "<Later><MessageText>no</MessageText></Later></QueueMessage>"
			  "</QueueMessagesList>",
			  &p),
		0);
	CHECK_INT(p.n, 3);
	CHECK_STR(p.items[0].text, "");
	CHECK_STR(p.items[1].text, "");
	CHECK(!p.items[2].text);
	for (unsigned i = 0; i < p.n; i++)
		CHECK(!p.items[i].receipt && p.items[i].dequeued == 0);
	azure_page_fini(&p);
}

#define MESSAGE(fields) \
	"<QueueMessagesList><QueueMessage>" fields "</QueueMessage></QueueMessagesList>"

TEST(what_is_no_page_is_refused)
{
	refused("");
	refused("<QueueMessagesList>");
	refused("<html><body>Sign in</body></html>");
	refused("{\"value\":[]}");
	refused("<QueueMessagesList><Queue/></QueueMessagesList>");
	refused(MESSAGE(WHEN));
	refused(MESSAGE("<MessageId>a</MessageId>"));
	refused(MESSAGE("<MessageId>a</MessageId><InsertionTime>soon</InsertionTime>"));
	refused(MESSAGE("<MessageId>../a</MessageId>" WHEN));
	refused(MESSAGE("<MessageId></MessageId>" WHEN));
	refused(MESSAGE("<MessageId>a</MessageId><MessageId>b</MessageId>" WHEN));
	refused(MESSAGE(
		"<MessageId>a</MessageId>" WHEN "<DequeueCount>-</DequeueCount>"));
	refused(MESSAGE(
		"<MessageId>a</MessageId>" WHEN "<MessageText>\x01</MessageText>"));
	refused(MESSAGE("<a><b><c><d><e><f><g><h/></g></f></e></d></c></b></a>"));
}

TEST(entities_cannot_be_defined)
{
	refused("<!DOCTYPE QueueMessagesList [<!ENTITY a \"aaaaaaaaaa\">]>"
		"<QueueMessagesList/>");
	refused("<!DOCTYPE QueueMessagesList SYSTEM \"http://127.0.0.1/\">"
		"<QueueMessagesList/>");
}

/* N messages of LEN bytes each, every one written as a reference. */
static char *long_page(unsigned n, size_t len)
{
	struct buf b = {0};

	CHECK_INT(buf_addstr(&b, "<QueueMessagesList>"), 0);
	for (unsigned i = 0; i < n; i++) {
		CHECK_INT(buf_printf(&b,
				  "<QueueMessage><MessageId>%u</MessageId>" WHEN
				  "<MessageText>",
				  i),
			0);
		for (size_t k = 0; k < len; k++)
			CHECK_INT(buf_addstr(&b, "&#xD;"), 0);
		CHECK_INT(buf_addstr(&b, "</MessageText></QueueMessage>"), 0);
	}
	CHECK_INT(buf_addstr(&b, "</QueueMessagesList>"), 0);
	return buf_take(&b, NULL);
}

TEST(the_longest_page)
{
	char *xml = long_page(AZURE_PAGE_MAX, 65536);
	struct azure_page p;

	CHECK_INT(page_of(xml, &p), 0);
	CHECK_INT(p.n, AZURE_PAGE_MAX);
	CHECK_INT(p.items[31].text_len, 65536);
	CHECK_INT(p.items[31].text[65535], '\r');
	azure_page_fini(&p);
	free(xml);
	xml = long_page(AZURE_PAGE_MAX + 1, 1);
	refused(xml);
	free(xml);
}

TEST(an_error)
{
	static const char xml[] = BOM HEAD
		"<Error><Code>AuthenticationFailed</Code><Message>Server failed to "
		"authenticate\x7f the request.\nRequestId:1\nTime:2</Message>"
		"<QueryParameterName>popreceipt</QueryParameterName>"
		"<AuthenticationErrorDetail>SECRET</AuthenticationErrorDetail></Error>";
	struct azure_error_text e;

	azure_xml_error(xml, strlen(xml), &e);
	CHECK_STR(e.code, "AuthenticationFailed");
	CHECK_STR(e.message, "Server failed to authenticate? the request.");
	CHECK_STR(e.parameter, "popreceipt");
}

TEST(what_is_no_error_says_nothing)
{
	static const char *const others[] = {"", "<html><Code>x</Code></html>",
		"<Error><Code>x</Code>", "Bad Gateway"};
	struct azure_error_text e;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		memset(&e, 'x', sizeof(e));
		azure_xml_error(others[i], strlen(others[i]), &e);
		CHECK(!e.code[0] && !e.message[0] && !e.parameter[0]);
	}
}

TEST(a_long_error_is_cut)
{
	struct azure_error_text e;
	char xml[4096];

	snprintf(xml, sizeof(xml),
		"<Error><Code>%0200d</Code><Message>%0300d</Message></Error>", 1, 1);
	azure_xml_error(xml, strlen(xml), &e);
	CHECK_INT(strlen(e.code), sizeof(e.code) - 1);
	CHECK_INT(strlen(e.message), sizeof(e.message) - 1);
}

static int message_of(const char *text, size_t len, char *out, size_t out_len)
{
	struct buf b = {0};
	int r = azure_xml_message(text, len, &b);

	snprintf(out, out_len, "%s", b.p ? b.p : "");
	buf_fini(&b);
	return r;
}

TEST(a_message_to_put)
{
	char xml[256];

	CHECK_INT(message_of("a<b>&\r\n]]>\t\xc3\xa4", 13, xml, sizeof(xml)), 0);
	CHECK_STR(xml, "<QueueMessage><MessageText>a&lt;b&gt;&amp;&#xD;\n]]&gt;\t\xc3\xa4"
		       "</MessageText></QueueMessage>");
	CHECK_INT(message_of("", 0, xml, sizeof(xml)), 0);
	CHECK_STR(xml, "<QueueMessage><MessageText></MessageText></QueueMessage>");
}

/* XML 1.0, production Char: the ends of its ranges, and what lies beside. */
TEST(what_xml_can_carry)
{
	static const char *const yes[] = {"\t", "\n", "\r", " ", "\x7f", "\xc2\x80",
		"\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbd", "\xf0\x90\x80\x80",
		"\xf4\x8f\xbf\xbf", "\xef\xbb\xbf", "&#x1;", "<!DOCTYPE x>", "]]>"};
	static const char *const no[] = {"\x01", "\x08", "\x0b", "\x0c", "\x0e", "\x1f",
		"\xed\xa0\x80", "\xed\xbf\xbf", "\xef\xbf\xbe", "\xef\xbf\xbf",
		"\xf4\x90\x80\x80", "\xc0\x80", "\x80", "\xff", "\xc3", "\xe2\x82",
		"a\xc3("};
	char xml[256];

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		CHECK_INT(message_of(yes[i], strlen(yes[i]), xml, sizeof(xml)), 0);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		CHECK_INT(message_of(no[i], strlen(no[i]), xml, sizeof(xml)), -EILSEQ);
	CHECK_INT(message_of("a\0b", 3, xml, sizeof(xml)), -EILSEQ);
}

TEST(what_was_put_is_read_again)
{
	static const char text[] = " <&>\r\r\n\n\t]]> \xf0\x9f\x90\xb8 ";
	struct buf put = {0}, got = {0};
	struct azure_page p;

	CHECK_INT(azure_xml_message(text, strlen(text), &put), 0);
	CHECK_INT(buf_printf(&got,
			  "<QueueMessagesList><QueueMessage>" WHEN
			  "<MessageId>1</MessageId>%s</QueueMessagesList>",
			  put.p + strlen("<QueueMessage>")),
		0);
	CHECK_INT(azure_xml_page(got.p, got.len, &p), 0);
	CHECK_STR(p.items[0].text, text);
	azure_page_fini(&p);
	buf_fini(&put);
	buf_fini(&got);
}

TEST(ids)
{
	CHECK(azure_is_id("b4f03bf0-be68-41ca-bd76-dff55b54a0dd"));
	CHECK(!azure_is_id(""));
	CHECK(!azure_is_id("../x"));
	CHECK(!azure_is_id("a b"));
	CHECK(!azure_is_id("a\n"));
	CHECK(!azure_is_id(
		"a23456789012345678901234567890123456789012345678901234567890123"
		"4"));
}
