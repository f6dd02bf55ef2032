/* SPDX-License-Identifier: MIT */
/* Headers and dates of an answer. */
#include "backend/base/clock.h"
#include "backend/wire/http.h"
#include "tests/test.h"

#define DATE_S INT64_C(1795148074) /* Fri, 20 Nov 2026 04:14:34 GMT */

static struct http_req answer(const char *headers)
{
	struct http_req req = {0};

	if (headers)
		CHECK_INT(buf_addstr(&req.answer_headers, headers), 0);
	return req;
}

static void check_header(const char *headers, const char *name, const char *want)
{
	struct http_req req = answer(headers);
	char value[8] = "before";

	CHECK_INT(http_header(&req, name, value, sizeof(value)), want != NULL);
	CHECK_STR(value, want ? want : "");
	http_req_fini(&req);
}

TEST(header_is_found_in_any_case)
{
	const char *all = "HTTP/1.1 200 OK\r\nX-Abc: one\r\nx-ab: two\r\n\r\n";

	check_header(all, "x-ABC", "one");
	check_header(all, "X-Ab", "two");
	check_header(all, "X-A", NULL);
	check_header(all, "bc", NULL);
	check_header(all, "HTTP/1.1 200 OK", NULL);
}

TEST(header_of_nothing_is_missing)
{
	check_header(NULL, "Date", NULL);
	check_header("", "Date", NULL);
	check_header("HTTP/1.1 200 OK\r\n\r\n", "Date", NULL);
	check_header("HTTP/1.1 200 OK\r\nDate", "Date", NULL);
}

TEST(header_has_no_blanks_around_it)
{
	check_header("A:x\r\n", "A", "x");
	check_header("A: \t x y \t\r\n", "A", "x y");
	check_header("A: x", "A", "x");
	check_header("A: x\nB: y\n", "A", "x");
	check_header("A:\r\nB: y\r\n", "A", "");
	check_header("A:  \r\nB: y\r\n", "A", "");
}

TEST(header_is_cut)
{
	check_header("A: 1234567\r\n", "A", "1234567");
	check_header("A: 12345678\r\n", "A", "1234567");
}

TEST(first_of_several_headers_counts)
{
	check_header("A: 1\r\nB: x\r\na: 2\r\n", "A", "1");
}

static void check_retry_after(const char *headers, int64_t want_ns)
{
	struct http_req req = answer(headers);

	CHECK_INT(http_retry_after_ns(&req), want_ns);
	http_req_fini(&req);
}

TEST(retry_after_in_seconds)
{
	check_retry_after("HTTP/1.1 503 Busy\r\n\r\n", 0);
	check_retry_after("Retry-After: 0\r\n", 0);
	check_retry_after("Retry-After: 120\r\n", 120 * NS_PER_S);
	check_retry_after("Retry-After: 99999999999999999999999\r\n", CLOCK_NEVER);
	check_retry_after("Retry-After: 9999999999999\r\n", CLOCK_NEVER);
}

TEST(retry_after_that_says_nothing)
{
	check_retry_after("Retry-After:\r\n", 0);
	check_retry_after("Retry-After: -5\r\n", 0);
	check_retry_after("Retry-After: soon\r\n", 0);
}

/* Our clock is an hour off: it must not matter where the server tells its own. */
TEST(retry_after_as_a_date_of_the_servers_clock)
{
	clock_fake(0, (DATE_S - 3600) * NS_PER_S);
	check_retry_after("Date: Fri, 20 Nov 2026 04:14:34 GMT\r\n"
			  "Retry-After: Fri, 20 Nov 2026 04:15:04 GMT\r\n",
		30 * NS_PER_S);
	check_retry_after("Date: Fri, 20 Nov 2026 04:14:34 GMT\r\n"
			  "Retry-After: Fri, 20 Nov 2026 04:14:04 GMT\r\n",
		0);
}

TEST(retry_after_as_a_date_of_our_clock)
{
	clock_fake(0, DATE_S * NS_PER_S);
	check_retry_after(
		"Retry-After: Fri, 20 Nov 2026 04:14:44 GMT\r\n", 10 * NS_PER_S);
	check_retry_after("Retry-After: Fri, 20 Nov 2026 04:14:00 GMT\r\n", 0);
}

static void check_date(const char *headers, int64_t want_ns)
{
	struct http_req req = answer(headers);

	CHECK_INT(http_date_ns(&req), want_ns);
	http_req_fini(&req);
}

TEST(date_in_all_forms_that_http_knows)
{
	check_date("Date: Fri, 20 Nov 2026 04:14:34 GMT\r\n", DATE_S * NS_PER_S);
	check_date("date:Friday, 20-Nov-26 04:14:34 GMT\r\n", DATE_S * NS_PER_S);
	check_date("Date: Fri Nov 20 04:14:34 2026\r\n", DATE_S * NS_PER_S);
}

TEST(date_that_is_none)
{
	check_date("HTTP/1.1 200 OK\r\n", -1);
	check_date("Date:\r\n", -1);
	check_date("Date: yesterday\r\n", -1);
}
