/* SPDX-License-Identifier: MIT */
/* Every entry of the option table against what its own bounds say. */
#include "fs/config.h"

#include <errno.h>

#include "tests/test.h"

static char err[CONFIG_ERR_LEN];

/* Gives O the text and checks that it is refused and nothing is changed. */
static void check_bound_refused(const struct opt *o, const char *text)
{
	struct config cfg;
	char before[1100], after[1100];

	CHECK_INT(config_init(&cfg), 0);
	opt_format(o, &cfg, before, sizeof(before));
	err[0] = '\0';
	CHECK_INT(opt_parse(o, &cfg, text, err, sizeof(err)), -EINVAL);
	CHECK(strncmp(err, o->name, strlen(o->name)) == 0);
	opt_format(o, &cfg, after, sizeof(after));
	CHECK_STR(after, before);
	config_fini(&cfg);
}

static void check_bound_taken(const struct opt *o, const char *text)
{
	struct config cfg;

	CHECK_INT(config_init(&cfg), 0);
	CHECK_INT(opt_parse(o, &cfg, text, err, sizeof(err)), 0);
	config_fini(&cfg);
}

static bool is_number(const struct opt *o)
{
	return o->kind != OPT_ENUM && o->kind != OPT_STRING && o->kind != OPT_FLAG;
}

/* VALUE in the unit of O, as text. */
static const char *as_text(const struct opt *o, int64_t value, char *text, size_t len)
{
	if (o->kind == OPT_DURATION)
		snprintf(text, len, "%" PRId64 "ms", value / 1000000);
	else
		snprintf(
			text, len, o->kind == OPT_OCTAL ? "%" PRIo64 : "%" PRId64, value);
	return text;
}

TEST(every_number_keeps_its_bounds)
{
	size_t n;
	const struct opt *table = config_table(&n);

	for (size_t i = 0; i < n; i++) {
		const struct opt *o = &table[i];
		int64_t unit = o->kind == OPT_DURATION ? 1000000 : 1;
		char text[32];

		if (!is_number(o))
			continue;
		check_bound_taken(o, as_text(o, o->min, text, sizeof(text)));
		check_bound_taken(o, as_text(o, o->max, text, sizeof(text)));
		check_bound_refused(o, as_text(o, o->max + unit, text, sizeof(text)));
		if (o->min > 0)
			check_bound_refused(
				o, as_text(o, o->min - unit, text, sizeof(text)));
		check_bound_refused(o, "-1");
		check_bound_refused(o, "1x");
		check_bound_refused(o, "x");
		check_bound_refused(o, "");
		check_bound_refused(o, " 1");
		check_bound_refused(o, "1e2");
		check_bound_refused(o, "0x10");
		check_bound_refused(o, "1.2.3");
		check_bound_refused(o, "inf");
		check_bound_refused(o, "99999999999999999999999999999999999999");
	}
}

TEST(every_word_and_flag_is_checked)
{
	size_t n;
	const struct opt *table = config_table(&n);

	for (size_t i = 0; i < n; i++) {
		const struct opt *o = &table[i];
		char text[64];

		if (is_number(o) || o->kind == OPT_STRING)
			continue;
		check_bound_refused(o, "perhaps");
		check_bound_refused(o, "");
		if (o->kind == OPT_ENUM) {
			check_bound_refused(o, o->choices);
			snprintf(text, sizeof(text), "%.*s",
				(int)strcspn(o->choices, "|"), o->choices);
			CHECK_STR(text, o->def);
			text[strlen(text) - 1] = '\0';
			check_bound_refused(o, text);
		}
	}
}

TEST(every_string_has_a_longest_length)
{
	size_t n;
	const struct opt *table = config_table(&n);
	static char text[5000];

	for (size_t i = 0; i < n; i++) {
		if (table[i].kind != OPT_STRING)
			continue;
		memset(text, 'a', sizeof(text));
		text[table[i].max] = '\0';
		check_bound_taken(&table[i], text);
		text[table[i].max] = 'a';
		text[table[i].max + 1] = '\0';
		check_bound_refused(&table[i], text);
	}
}

TEST(every_option_shows_what_it_takes_back)
{
	size_t n;
	const struct opt *table = config_table(&n);

	for (size_t i = 0; i < n; i++) {
		struct config a, b;
		char text[1100], again[1100];

		CHECK_INT(config_init(&a), 0);
		CHECK_INT(config_init(&b), 0);
		CHECK(opt_format(&table[i], &a, text, sizeof(text)) < (int)sizeof(text));
		if (*text != '\0') {
			CHECK_INT(opt_parse(&table[i], &b, text, err, sizeof(err)), 0);
			opt_format(&table[i], &b, again, sizeof(again));
			CHECK_STR(again, text);
		}
		config_fini(&a);
		config_fini(&b);
	}
}

TEST(every_option_has_help_and_its_own_name)
{
	size_t n;
	const struct opt *table = config_table(&n);

	for (size_t i = 0; i < n; i++) {
		CHECK(opt_find(table, n, table[i].name, strlen(table[i].name)) ==
			&table[i]);
		CHECK(table[i].help != NULL && strlen(table[i].help) <= 70);
		CHECK_STR(opt_nearest(table, n, table[i].name)->name, table[i].name);
	}
}
