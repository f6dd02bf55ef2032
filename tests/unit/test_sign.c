/* SPDX-License-Identifier: MIT */
/*
 * The texts were recorded from exchanges that were accepted; the key is the one
 * that every emulator has.
 */
#include "backend/wire/sign.h"

#include <errno.h>

#include "backend/base/clock.h"
#include "tests/test.h"

#define DEV_KEY \
	"Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
#define DATE     "Fri, 20 Nov 2026 04:17:41 GMT"
#define N(array) (sizeof(array) / sizeof((array)[0]))

static const struct sign_param plain[] = {
	{"x-ms-version", "2021-12-02"}, {"x-ms-date", DATE}};

static void check_text(const struct sign_request *r, const char *want)
{
	struct buf text = {0};

	CHECK_INT(sign_text(r, &text), 0);
	CHECK_STR(text.p, want);
	buf_fini(&text);
}

static void check_base64(const char *data, const char *want)
{
	struct buf there = {0}, back = {0};

	CHECK_INT(base64_encode(data, strlen(data), &there), 0);
	CHECK_STR(there.p, want);
	CHECK_INT(base64_decode(there.p, there.len, &back), 0);
	CHECK_STR(back.p, data);
	buf_fini(&there);
	buf_fini(&back);
}

TEST(base64_is_that_of_the_rfc)
{
	check_base64("", "");
	check_base64("f", "Zg==");
	check_base64("fo", "Zm8=");
	check_base64("foo", "Zm9v");
	check_base64("foob", "Zm9vYg==");
	check_base64("foobar", "Zm9vYmFy");
	check_base64("\xff\xfe\xfb", "//77");
}

TEST(base64_appends)
{
	struct buf out = {0};

	CHECK_INT(buf_addstr(&out, "a:"), 0);
	CHECK_INT(base64_encode("foob", 4, &out), 0);
	CHECK_STR(out.p, "a:Zm9vYg==");
	CHECK_INT(base64_decode("Zm9v", 4, &out), 0);
	CHECK_STR(out.p, "a:Zm9vYg==foo");
	buf_fini(&out);
}

TEST(what_is_no_base64_is_refused_and_leaves_nothing)
{
	static const char *const bad[] = {"Z", "Zg", "Zg=", "Zg==\n",
		" Zg==", "Z===", "====", "Zg==Zg==", "Zm9v\n\n\n\n", "Zm-_", "Zm9\x80"};
	struct buf out = {0};

	for (size_t i = 0; i < N(bad); i++) {
		CHECK_INT(base64_decode(bad[i], strlen(bad[i]), &out), -EINVAL);
		CHECK_INT(out.len, 0);
	}
	CHECK_INT(base64_decode("Zm9v", 3, &out), -EINVAL);
	buf_fini(&out);
}

TEST(percent_encoding_is_that_of_the_rfc)
{
	struct buf out = {0}, back = {0};

	CHECK_INT(percent_encode("AZaz09-._~", &out), 0);
	CHECK_INT(percent_encode(" /+=&?%\xc3\xa9\x01", &out), 0);
	CHECK_STR(out.p, "AZaz09-._~%20%2F%2B%3D%26%3F%25%C3%A9%01");
	CHECK_INT(percent_decode(out.p, out.len, &back), 0);
	CHECK_STR(back.p, "AZaz09-._~ /+=&?%\xc3\xa9\x01");
	buf_clear(&back);
	CHECK_INT(percent_decode("%", 1, &back), 0);
	CHECK_INT(percent_decode("%4", 2, &back), 0);
	CHECK_INT(percent_decode("%zz%4a", 6, &back), 0);
	CHECK_INT(percent_decode("%41", 2, &back), 0);
	CHECK_STR(back.p, "%%4%zzJ%4");
	buf_fini(&out);
	buf_fini(&back);
}

TEST(full_buffer_is_left_as_it_was)
{
	struct buf out = {.max = 8};

	CHECK_INT(buf_addstr(&out, "abc"), 0);
	CHECK_INT(percent_encode("de///", &out), -EFBIG);
	CHECK_INT(base64_encode("abcd", 4, &out), -EFBIG);
	CHECK_STR(out.p, "abc");
	buf_fini(&out);
}

TEST(text_of_making_a_queue)
{
	static const struct sign_param headers[] = {{"X-Ms-Version", "2021-12-02"},
		{"x-ms-meta-OWNER", " \tqfs "}, {"Date", "another"}, {"Accept", "*/*"},
		{"x-ms-date", DATE}};

	check_text(
		&(struct sign_request){
			.account = "devstoreaccount1",
			.method = "PUT",
			.path = "/devstoreaccount1/jobs",
			.headers = headers,
			.n_headers = N(headers),
		},
		"PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:" DATE
		"\nx-ms-meta-owner:qfs\nx-ms-version:2021-12-02\n"
		"/devstoreaccount1/devstoreaccount1/jobs");
}

TEST(text_of_a_send)
{
	static const struct sign_param headers[] = {{"x-ms-version", "2021-12-02"},
		{"content-type", "application/xml"}, {"x-ms-date", DATE}};
	static const struct sign_param query[] = {
		{"visibilitytimeout", "0"}, {"MessageTTL", "3600"}};

	check_text(
		&(struct sign_request){
			.account = "devstoreaccount1",
			.method = "POST",
			.path = "/devstoreaccount1/jobs/messages",
			.query = query,
			.n_query = N(query),
			.headers = headers,
			.n_headers = N(headers),
			.body_len = 64,
		},
		"POST\n\n\n64\n\napplication/xml\n\n\n\n\n\n\nx-ms-date:" DATE
		"\nx-ms-version:2021-12-02\n"
		"/devstoreaccount1/devstoreaccount1/jobs/messages\nmessagettl:3600\n"
		"visibilitytimeout:0");
}

TEST(text_of_a_renewal_has_the_receipt_decoded_and_the_account_once)
{
	static const struct sign_param query[] = {{"visibilitytimeout", "45"},
		{"popreceipt", "AgAAAAMAAAAAAAAAnsNZ/zYp1QE="}};

	check_text(
		&(struct sign_request){
			.account = "acct",
			.method = "PUT",
			.path = "/jobs/messages/1%202",
			.query = query,
			.n_query = N(query),
			.headers = plain,
			.n_headers = N(plain),
		},
		"PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:" DATE "\nx-ms-version:2021-12-02\n"
		"/acct/jobs/messages/1%202\npopreceipt:AgAAAAMAAAAAAAAAnsNZ/zYp1QE=\n"
		"visibilitytimeout:45");
}

TEST(values_of_one_name_are_sorted_and_joined)
{
	static const struct sign_param query[] = {
		{"include", "metadata"}, {"comp", "list"}, {"Include", "a"}};

	check_text(
		&(struct sign_request){
			.account = "acct",
			.method = "GET",
			.path = "/",
			.query = query,
			.n_query = N(query),
			.headers = plain,
			.n_headers = N(plain),
		},
		"GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:" DATE "\nx-ms-version:2021-12-02\n"
		"/acct/\ncomp:list\ninclude:a,metadata");
}

TEST(text_with_a_date_header_only)
{
	static const struct sign_param headers[] = {{"x-ms-version", "2021-12-02"},
		{"Date", "Fri, 20 Nov 2026 04:19:34 GMT"}};

	check_text(
		&(struct sign_request){
			.account = "acct",
			.method = "GET",
			.path = "/acct/sasq/messages",
			.headers = headers,
			.n_headers = N(headers),
		},
		"GET\n\n\n\n\n\nFri, 20 Nov 2026 04:19:34 GMT\n\n\n\n\n\n"
		"x-ms-version:2021-12-02\n/acct/acct/sasq/messages");
}

TEST(condition_has_its_line)
{
	static const struct sign_param headers[] = {{"x-ms-version", "2021-12-02"},
		{"x-ms-blob-type", "BlockBlob"}, {"x-ms-date", DATE},
		{"If-None-Match", "*"}};

	check_text(
		&(struct sign_request){
			.account = "acct",
			.method = "PUT",
			.path = "/acct/qfs/leader",
			.headers = headers,
			.n_headers = N(headers),
		},
		"PUT\n\n\n\n\n\n\n\n\n*\n\n\nx-ms-blob-type:BlockBlob\nx-ms-date:" DATE
		"\nx-ms-version:2021-12-02\n/acct/acct/qfs/leader");
}

TEST(table_has_five_lines)
{
	static const struct sign_param headers[] = {{"x-ms-version", "2021-12-02"},
		{"Content-Type", "application/json"},
		{"x-ms-date", "Fri, 20 Nov 2026 04:19:00 GMT"}, {"Date", "another"}};
	static const struct sign_param query[] = {{"$top", "10"}, {"comp", "acl"}};
	struct sign_request r = {
		.form = SIGN_TABLE,
		.account = "devstoreaccount1",
		.method = "POST",
		.path = "/devstoreaccount1/sched",
		.query = query,
		.n_query = 1,
		.headers = headers,
		.n_headers = N(headers),
		.body_len = 10,
	};

	check_text(&r, "POST\n\napplication/json\nFri, 20 Nov 2026 04:19:00 GMT\n"
		       "/devstoreaccount1/devstoreaccount1/sched");
	r.n_query = 2;
	check_text(&r, "POST\n\napplication/json\nFri, 20 Nov 2026 04:19:00 GMT\n"
		       "/devstoreaccount1/devstoreaccount1/sched?comp=acl");
}

/* Made by another implementation of HMAC: Python's, of the text above. */
TEST(signature_is_hmac_sha256_of_the_text)
{
	static const struct sign_param headers[] = {{"x-ms-version", "2021-12-02"},
		{"x-ms-meta-owner", "qfs"}, {"x-ms-date", DATE}};
	struct sign_request r = {
		.account = "devstoreaccount1",
		.method = "PUT",
		.path = "/devstoreaccount1/jobs",
		.headers = headers,
		.n_headers = N(headers),
	};
	struct buf key = {0}, out = {0};

	CHECK_INT(base64_decode(DEV_KEY, strlen(DEV_KEY), &key), 0);
	CHECK_INT(key.len, 64);
	CHECK_INT(sign_shared_key(&r, key.p, key.len, &out), 0);
	CHECK_STR(out.p,
		"SharedKey devstoreaccount1:iKyuNlcS0GJFBDIO+VV1Mkm9FXMiTaMhfa+a/N/zmV4=");
	buf_fini(&key);
	buf_fini(&out);
}

TEST(sas_tells_its_times)
{
	char err[128] = "";
	int64_t ns = 0;

	CHECK_INT(sas_check("?sv=2021-12-02&st=2026-11-20T04:14:34Z&"
			    "se=2026-11-20T05%3A19%3A34Z&sp=raup&sig=a%2Bb%3D",
			  &ns, err, sizeof(err)),
		0);
	CHECK_INT(ns, 1795151974 * NS_PER_S);
	CHECK_INT(sas_check("sig=x&se=2026-11-20T05:19Z", &ns, err, sizeof(err)), 0);
	CHECK_INT(ns, 1795151940 * NS_PER_S);
	CHECK_INT(sas_check("sig=x&se=2026-11-20", &ns, err, sizeof(err)), 0);
	CHECK_INT(ns, 1795132800 * NS_PER_S);
	CHECK_INT(
		sas_check("sig=x&se=2026-11-20T05:19:34.1234567Z", &ns, err, sizeof(err)),
		0);
	CHECK_INT(ns, 1795151974 * NS_PER_S);
	CHECK_INT(sas_check("sig=x&si=policy", &ns, err, sizeof(err)), 0);
	CHECK_INT(ns, -1);
	CHECK_INT(sas_check("sig=x&se=tomorrow", &ns, err, sizeof(err)), 0);
	CHECK_INT(ns, -1);
	CHECK_INT(sas_start_ns("?sig=x&st=2026-11-20T05:19:34Z"), 1795151974 * NS_PER_S);
	CHECK_INT(sas_start_ns("sig=x"), -1);
}

/* Who wants no end says 9999; 64 bits of nanoseconds end in 2262. */
TEST(sas_times_beyond_the_clock_are_its_ends)
{
	char err[128] = "";
	int64_t ns = 0;

	CHECK_INT(sas_check("sig=x&se=9999-12-31T23:59:59Z", &ns, err, sizeof(err)), 0);
	CHECK_INT(ns, CLOCK_NEVER);
	CHECK_INT(sas_check("sig=x&se=0009-01-01", &ns, err, sizeof(err)), 0);
	CHECK_INT(ns, 0);
	CHECK_INT(sas_start_ns("sig=x&st=1969-12-31T23:59:59Z"), 0);
}

TEST(what_is_no_sas_is_refused_without_a_part_of_it)
{
	static const char *const bad[] = {"", "?", "qqqq", "se=2026-11-20&qqqq",
		"sig=", "sig=&a=qqqq", "xsig=qqqq", "sig=qqqq&sv=1 2", "sig=qqqq\r\nX: y",
		"sig=qqqq#a", "sig=qqqq\x80", "&&&"};
	int64_t ns = 0;

	for (size_t i = 0; i < N(bad); i++) {
		char err[128] = "";

		CHECK_INT(sas_check(bad[i], &ns, err, sizeof(err)), -EINVAL);
		CHECK(*err && !strstr(err, "qq"));
		CHECK_INT(ns, -1);
	}
}

TEST(date_is_that_of_http_there_and_back)
{
	char text[SIGN_DATE_LEN];

	sign_date(1795148261 * NS_PER_S + 999999999, text);
	CHECK_STR(text, DATE);
	CHECK_INT(sign_date_parse(text), 1795148261 * NS_PER_S);
	sign_date(0, text);
	CHECK_STR(text, "Thu, 01 Jan 1970 00:00:00 GMT");
	sign_date(951782400 * NS_PER_S, text);
	CHECK_STR(text, "Tue, 29 Feb 2000 00:00:00 GMT");
}

TEST(date_beyond_the_clock_is_none)
{
	CHECK_INT(sign_date_parse("Fri, 11 Apr 2262 23:47:16 GMT"),
		INT64_C(9223372036) * NS_PER_S);
	CHECK_INT(sign_date_parse("Fri, 11 Apr 2262 23:47:17 GMT"), -1);
	CHECK_INT(sign_date_parse("Fri, 31 Dec 9999 23:59:59 GMT"), -1);
}

TEST(what_is_no_date_is_none)
{
	static const char *const bad[] = {"", "x", "Fri, 20 Nov 2026",
		"20 Nov 2026 04:17:41 GMT", "Fri, 20 Nov 2026 04:17:41",
		"Fri, 20 Nov 2026 04:17:41 GMT ", "Fri, 20 ovD 2026 04:17:41 GMT",
		"Fri, 20 N 2026 04:17:41 GMT", "Fri, 40 Nov 2026 04:17:41 GMT",
		"Fri, 20 Nov 2026 24:17:41 GMT", "Fri, 20 Nov 1969 04:17:41 GMT",
		"Fri, 20 Nov 2026 04:-1:41 GMT"};

	for (size_t i = 0; i < N(bad); i++)
		CHECK_INT(sign_date_parse(bad[i]), -1);
}
