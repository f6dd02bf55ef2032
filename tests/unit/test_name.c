/* SPDX-License-Identifier: MIT */
#include "fs/name.h"

#include <stdlib.h>

#include "tests/test.h"

#define AT   INT64_C(1795148100123456000) /* 2026-11-20T04:15:00.123456Z */
#define TIME "20261120T041500.123456Z-"
#define UUID "3f2504e0-4f89-41d3-9a0c-0305e82c3301"

static const char *format(const char *id, const char *given, const char *suffix)
{
	static char name[NAME_MAX + 1];

	name_format(name, AT, id, given, suffix);
	return name;
}

TEST(ordinary_names_stay_as_they_are)
{
	CHECK_STR(format("0000000000000017", "ORDERS_4711.xml", NULL),
		TIME "0000000000000017-ORDERS_4711.xml");
	CHECK_STR(format("17", "100% sure - (1).t\xc3\xbct", NULL),
		TIME "17-100% sure - (1).t\xc3\xbct");
	CHECK_STR(format(UUID, "a-b", NULL), TIME UUID "-a-b");
}

/* man: name-suffix */
TEST(suffix_stands_for_a_missing_given)
{
	CHECK_STR(format("17", NULL, NULL), TIME "17");
	CHECK_STR(format("17", NULL, ".xml"), TIME "17.xml");
	CHECK_STR(format("17", "", ".xml"), TIME "17.xml");
	CHECK_STR(format("17", "a.txt", ".xml"), TIME "17-a.txt");
	CHECK_STR(format("17", NULL, "/x"), TIME "17%2Fx");
}

TEST(time_is_utc_and_truncated)
{
	char name[NAME_MAX + 1];

	name_format(name, 0, "1", NULL, NULL);
	CHECK_STR(name, "19700101T000000.000000Z-1");
	name_format(name, 1999, "1", NULL, NULL);
	CHECK_STR(name, "19700101T000000.000001Z-1");
	name_format(name, -1, "1", NULL, NULL);
	CHECK_STR(name, "19691231T235959.999999Z-1");
	name_format(name, INT64_MAX, "1", NULL, NULL);
	CHECK_STR(name, "22620411T234716.854775Z-1");
	name_format(name, INT64_MIN, "1", NULL, NULL);
	CHECK_STR(name, "16770921T001243.145224Z-1");
	name_format(name, INT64_MIN + 1000000000, "1", NULL, NULL);
	CHECK(name_is_message(name));
}

/* man: name-safe */
TEST(what_could_leave_the_directory_is_encoded)
{
	CHECK_STR(
		format("../../etc", "../passwd", NULL), TIME "..%2F..%2Fetc-..%2Fpasswd");
	CHECK_STR(format("a\nb", "c\td\x7f", NULL), TIME "a%0Ab-c%09d%7F");
	CHECK_STR(format("", NULL, NULL), TIME "%00");
	CHECK_STR(format("1", ".control", NULL), TIME "1-.control");
}

TEST(invalid_utf8_is_encoded)
{
	static const struct {
		const char *given, *want;
	} cases[] = {
		{"\xff", "%FF"},
		{"\xc3(", "%C3("},
		{"\xc0\xaf", "%C0%AF"}, /* overlong '/' */
		{"\xe0\x80\xaf", "%E0%80%AF"},
		{"\xf0\x80\x80\xaf", "%F0%80%80%AF"},
		{"\xed\xa0\x80", "%ED%A0%80"},        /* surrogate */
		{"\xf4\x90\x80\x80", "%F4%90%80%80"}, /* beyond U+10FFFF */
		{"\xe2\x82", "%E2%82"},               /* cut off */
		{"\xc2\x85", "%C2%85"},               /* U+0085, a control character */
		{"\xc2\xa0", "\xc2\xa0"},
		{"\xe2\x82\xac", "\xe2\x82\xac"},
		{"\xed\x9f\xbf", "\xed\x9f\xbf"},
		{"\xf0\x9f\x93\xa6", "\xf0\x9f\x93\xa6"},
		{"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		CHECK_STR(format("1", cases[i].given, NULL) + strlen(TIME "1-"),
			cases[i].want);
}

TEST(percent_is_encoded_where_it_would_be_ambiguous)
{
	CHECK_STR(format("a%2Fb", NULL, NULL), TIME "a%252Fb");
	CHECK_STR(format("a%2gb%", NULL, NULL), TIME "a%2gb%");
	CHECK_STR(format("%/", NULL, NULL), TIME "%%2F");
	CHECK_STR(format("%2/", NULL, NULL), TIME "%2%2F");
	CHECK_STR(format("%00", NULL, NULL), TIME "%2500");
}

TEST(given_can_be_told_from_the_id)
{
	CHECK_STR(name_given(format("17", "a-b.xml", NULL)), "a-b.xml");
	CHECK_STR(name_given(format("a-b", "c", NULL)), "c");
	CHECK_STR(format("a-b", "c", NULL), TIME "a%2Db-c");
	CHECK_STR(name_given(format(UUID, "c-d", NULL)), "c-d");
	CHECK_STR(name_given(format(UUID, NULL, NULL)), NULL);
	CHECK_STR(name_given(format(UUID, NULL, ".xml")), NULL);
	CHECK_STR(name_given(format("17", NULL, NULL)), NULL);
	CHECK_STR(name_given("plain-name"), NULL);
	CHECK_STR(name_given(TIME "17-"), NULL);
}

TEST(an_id_like_the_head_of_a_uuid_is_no_uuid)
{
	static const char tail[] = "4f89-41d3-9a0c-0305e82c3301";

	CHECK_STR(format("3f2504e0", tail, NULL),
		TIME "%33f2504e0-4f89-41d3-9a0c-0305e82c3301");
	CHECK_STR(name_given(format("3f2504e0", tail, NULL)), tail);
}

static char *repeat(const char *what, size_t times, const char *end)
{
	size_t n = strlen(what);
	char *s = malloc(n * times + strlen(end) + 1);

	CHECK(s);
	for (size_t i = 0; i < times; i++)
		memcpy(s + i * n, what, n);
	strcpy(s + n * times, end);
	return s;
}

TEST(a_long_given_keeps_its_extension)
{
	char *given = repeat("\xe2\x82\xac", 200, ".tar.gz");
	const char *name = format("17", given, NULL);
	size_t len = strlen(name);

	free(given);
	CHECK(len <= NAME_MAX && len > NAME_MAX - 8);
	CHECK_STR(name + len - 10, "\xe2\x82\xac.tar.gz");
	CHECK(strstr(name, "\xe2\x82\xac~\xe2\x82\xac"));
}

TEST(a_long_given_is_cut_between_codes)
{
	char *given = repeat("\x01", 200, "");
	const char *name = format("17", given, NULL);

	free(given);
	CHECK(strstr(name, "%01~%01%01"));
	CHECK_INT(strlen(strchr(name, '~')), 31); /* ten codes of three */
}

TEST(a_given_that_just_fits_is_not_cut)
{
	size_t room = NAME_MAX - strlen(TIME "17-");
	char *given = repeat("x", room, "");
	const char *name = format("17", given, NULL);

	CHECK_STR(name_given(name), given);
	CHECK_INT(strlen(name), NAME_MAX);
	free(given);
	given = repeat("x", room, "y");
	name = format("17", given, NULL);
	free(given);
	CHECK_INT(strlen(name), NAME_MAX);
	CHECK(strstr(name, "x~x") && name[NAME_MAX - 1] == 'y');
}

TEST(long_ids_stay_distinct)
{
	char *a = repeat("k", 5000, "a"), *b = repeat("k", 5000, "b");
	char first[NAME_MAX + 1];

	strcpy(first, format(a, "x.xml", NULL));
	CHECK(strcmp(first, format(b, "x.xml", NULL)) != 0);
	CHECK_STR(first, format(a, "x.xml", NULL));
	CHECK_STR(name_given(first), "x.xml");
	free(a);
	free(b);
}

TEST(an_id_cannot_pretend_to_be_a_shortened_one)
{
	char *a = repeat("k", 500, "");
	char first[NAME_MAX + 1], forged[NAME_MAX + 1];

	strcpy(first, format(a, NULL, NULL));
	strcpy(forged, first + strlen(TIME));
	CHECK(strcmp(first, format(forged, NULL, NULL)) != 0);
	free(a);
}

/* man: name-safe */
TEST(the_longest_of_everything_fits)
{
	char *a = repeat("\x01", 5000, "");

	CHECK(strlen(format(a, a, NULL)) <= NAME_MAX);
	CHECK(strlen(format(a, NULL, a)) <= NAME_MAX);
	free(a);
}

TEST(shape)
{
	CHECK(name_is_message(TIME "1"));
	CHECK(name_is_message("99999999T999999.999999Z-x"));
	CHECK(!name_is_message(TIME));
	CHECK(!name_is_message("20261120T041500.123456Z"));
	CHECK(!name_is_message("20261120t041500.123456Z-1"));
	CHECK(!name_is_message("20261120T041500.12345Z-1"));
	CHECK(!name_is_message("2026112xT041500.123456Z-1"));
	CHECK(!name_is_message("." TIME "1"));
	CHECK(!name_is_message(""));
	CHECK(!name_is_message("ORDERS_4711.xml"));
}

TEST(reserved_entries)
{
	for (enum name_reserved r = NAME_NONE + 1; r < NAME_RESERVED_END; r++) {
		CHECK(name_reserved_text(r)[0] == '.');
		CHECK_INT(name_reserved(name_reserved_text(r)), r);
		CHECK_INT(name_reserved_is_dir(r), r >= NAME_INFLIGHT);
	}
	CHECK_INT(name_reserved(".next"), NAME_NEXT);
	CHECK_INT(name_reserved(".nex"), NAME_NONE);
	CHECK_INT(name_reserved(".next2"), NAME_NONE);
	CHECK_INT(name_reserved("control"), NAME_NONE);
	CHECK_INT(name_reserved(""), NAME_NONE);
	CHECK_STR(name_reserved_text(NAME_NONE), NULL);
	CHECK_STR(name_reserved_text(NAME_RESERVED_END), NULL);
}

TEST(draft_patterns)
{
	static const char *const drafts[] = {".x.Ab3dEf", "x.tmp", ".x.tmp", "tmp.8dkAls",
		"x.part", "x.filepart", ".x.swp", "x.swp", "x~", "tmp."};
	static const char *const sent[] = {
		"x", "x.tmp2", "xtmp", "tmp", "a.part.xml", "~x", "x.TMP"};
	struct name_patterns *p = name_patterns_create(NAME_DRAFTS_DEFAULT);

	CHECK(p);
	for (size_t i = 0; i < sizeof(drafts) / sizeof(*drafts); i++)
		CHECK(name_patterns_match(p, drafts[i]));
	for (size_t i = 0; i < sizeof(sent) / sizeof(*sent); i++)
		CHECK(!name_patterns_match(p, sent[i]));
	name_patterns_destroy(p);
}

TEST(draft_patterns_of_ones_own)
{
	struct name_patterns *p = name_patterns_create(":a?::[bc]*:");

	CHECK(p);
	CHECK(name_patterns_match(p, "ax") && name_patterns_match(p, "cxy"));
	CHECK(!name_patterns_match(p, "") && !name_patterns_match(p, "a"));
	CHECK(!name_patterns_match(p, ":"));
	name_patterns_destroy(p);
	p = name_patterns_create("");
	CHECK(p);
	CHECK(!name_patterns_match(p, "") && !name_patterns_match(p, "x"));
	name_patterns_destroy(p);
	name_patterns_destroy(NULL);
}

/* ---- at random ---- */

#define CASES 100000

struct named {
	char *id;
	char name[NAME_MAX + 1];
};

static uint64_t seed = 42;

static unsigned draw(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 20) % n;
}

/* Short texts of few characters, so that they come near each other; now and
 * then any bytes, and long ones. */
static void draw_text(char *s, size_t size)
{
	static const char *const parts[] = {"a", "2", "F", "%", "-", "~", "/", ".", "%2F",
		"\n", "\xc3", "\xbc", "\xe2\x82\xac", "3f2504e0", UUID,
		"\xf0\x9f\x93\xa6", " ", "'"};
	unsigned n = draw(20) ? draw(6) : draw(120);
	size_t len = 0;

	while (n-- > 0 && len + 40 < size) {
		const char *part = parts[draw(sizeof(parts) / sizeof(*parts))];

		if (draw(10)) {
			strcpy(s + len, part);
			len += strlen(part);
		} else {
			s[len++] = (char)(1 + draw(255));
		}
	}
	s[len] = '\0';
}

/* Strictly by the table of well-formed sequences, as one number at a time. */
static const unsigned char *decode_utf8(const unsigned char *s, unsigned long *out)
{
	int more = s[0] < 0x80 ? 0 : s[0] < 0xe0 ? 1 : s[0] < 0xf0 ? 2 : 3;
	static const unsigned long least[] = {0, 0x80, 0x800, 0x10000};

	CHECK(s[0] < 0x80 || (s[0] >= 0xc2 && s[0] <= 0xf4));
	*out = more == 0 ? s[0] : s[0] & (0x3fu >> more);
	for (int i = 1; i <= more; i++) {
		CHECK((s[i] & 0xc0) == 0x80);
		*out = *out << 6 | (s[i] & 0x3f);
	}
	CHECK(*out >= least[more] && *out <= 0x10ffff);
	CHECK(*out < 0xd800 || *out > 0xdfff);
	return s + more + 1;
}

static void check_valid(const char *name)
{
	CHECK(strlen(name) <= NAME_MAX);
	CHECK(name_is_message(name));
	for (const unsigned char *s = (const unsigned char *)name; *s;) {
		unsigned long c;

		s = decode_utf8(s, &c);
		CHECK(c >= 0x20 && c != '/' && (c < 0x7f || c > 0x9f));
	}
}

static void percent_decode(const char *s, char *out)
{
	unsigned byte;

	while (*s) {
		int n = 0;

		if (s[0] == '%' && strspn(s + 1, "0123456789abcdefABCDEF") >= 2 &&
			sscanf(s, "%%%2x%n", &byte, &n) == 1 && n == 3) {
			*out++ = (char)byte;
			s += 3;
		} else {
			*out++ = *s++;
		}
	}
	*out = '\0';
}

static void check_given(const char *name, const char *given)
{
	const char *got = name_given(name);
	char decoded[NAME_MAX + 1];

	if (!*given) {
		CHECK_STR(got, NULL);
		return;
	}
	CHECK(got);
	if (strlen(given) > 30) /* it may have been shortened */
		return;
	percent_decode(got, decoded);
	CHECK_STR(decoded, given);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

TEST(at_random_names_are_valid_and_distinct)
{
	struct named *all = calloc(CASES, sizeof(*all));
	char id[5000], given[5000], name[NAME_MAX + 1];

	CHECK(all);
	for (int i = 0; i < CASES; i++) {
		draw_text(id, sizeof(id));
		draw_text(given, sizeof(given));
		name_format(name, (int64_t)(seed >> 1), id, given, NULL);
		check_valid(name);
		check_given(name, given);
		name_format(all[i].name, AT, id, NULL, ".xml");
		check_valid(all[i].name);
		all[i].id = strdup(id);
		CHECK(all[i].id);
	}
	qsort(all, CASES, sizeof(*all), by_name);
	for (int i = 1; i < CASES; i++)
		CHECK_INT(strcmp(all[i - 1].name, all[i].name) == 0,
			strcmp(all[i - 1].id, all[i].id) == 0);
	for (int i = 0; i < CASES; i++)
		free(all[i].id);
	free(all);
}
