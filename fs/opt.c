/* SPDX-License-Identifier: MIT */
#include "opt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS INT64_C(1000000)

struct unit {
	const char *name;
	int64_t factor;
};

/* Longest first: format takes the first that divides. */
static const struct unit duration_units[] = {
	{"d", INT64_C(86400000)},
	{"h", 3600000},
	{"m", 60000},
	{"s", 1000},
	{"ms", 1},
	{"", 1000},
};

static const struct unit size_units[] = {
	{"G", INT64_C(1) << 30},
	{"M", INT64_C(1) << 20},
	{"K", INT64_C(1) << 10},
	{"", 1},
};

#define N_OF(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *name;
	const char *wanted;
} kinds[] = {
	[OPT_DURATION] = {"duration", "a duration (such as 500ms, 30s, 15m, 12h or 7d)"},
	[OPT_SIZE] = {"size", "a size (such as 4096, 512K, 64M or 1.5G)"},
	[OPT_COUNT] = {"count", "a whole number"},
	[OPT_OCTAL] = {"octal", "an octal number (such as 077)"},
	[OPT_FRACTION] = {"fraction", "a number (such as 1.5)"},
	[OPT_ENUM] = {"enum", ""},
	[OPT_STRING] = {"string", ""},
	[OPT_FLAG] = {"flag", ""},
};

const char *opt_kind_name(enum opt_kind kind)
{
	return kinds[kind].name;
}

static void *field(const struct opt *o, void *base)
{
	return (char *)base + o->offset;
}

static const void *cfield(const struct opt *o, const void *base)
{
	return (const char *)base + o->offset;
}

/*
 * A plain decimal number at TEXT, *end behind it. strtod alone would also take
 * signs, blanks, "inf" and hexadecimal.
 */
static bool scan_number(const char *text, double *value, const char **end)
{
	size_t n = strspn(text, "0123456789.");
	char *stop;

	if (strcspn(text, "0123456789") >= n)
		return false;
	*value = strtod(text, &stop);
	*end = text + n;
	/* Behind it strtod may have seen an exponent, or a second point. */
	return stop == *end;
}

static bool scan_units(
	const char *text, const struct unit *units, size_t n, double *value)
{
	const char *rest;

	if (!scan_number(text, value, &rest))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (strcmp(rest, units[i].name) == 0) {
			*value *= (double)units[i].factor;
			return true;
		}
	}
	return false;
}

static bool scan_octal(const char *text, double *value)
{
	if (*text == '\0' || text[strspn(text, "01234567")] != '\0' || strlen(text) > 10)
		return false;
	*value = (double)strtoul(text, NULL, 8);
	return true;
}

static bool scan_count(const char *text, double *value)
{
	const char *rest;

	return strchr(text, '.') == NULL && scan_number(text, value, &rest) &&
	       *rest == '\0';
}

static bool scan_fraction(const char *text, double *value)
{
	const char *rest;

	return scan_number(text, value, &rest) && *rest == '\0';
}

/* round(3) without libm; a value that large is out of bounds anyway. */
static double whole(double value)
{
	return value < 1e15 ? (double)(int64_t)(value + 0.5) : value;
}

/* In the unit of the value. */
static bool scan(enum opt_kind kind, const char *text, double *value)
{
	switch (kind) {
	case OPT_DURATION:
		if (!scan_units(text, duration_units, N_OF(duration_units), value))
			return false;
		*value = whole(*value) * (double)NS_PER_MS;
		return true;
	case OPT_SIZE:
		return scan_units(text, size_units, N_OF(size_units), value);
	case OPT_OCTAL:
		return scan_octal(text, value);
	case OPT_COUNT:
		return scan_count(text, value);
	default:
		return scan_fraction(text, value);
	}
}

static void store(const struct opt *o, void *base, double value)
{
	if (o->kind == OPT_DURATION)
		*(int64_t *)field(o, base) = (int64_t)value;
	else if (o->kind == OPT_SIZE)
		*(uint64_t *)field(o, base) = (uint64_t)value;
	else if (o->kind == OPT_FRACTION)
		*(double *)field(o, base) = value;
	else
		*(unsigned *)field(o, base) = (unsigned)value;
}

static int format_units(
	char *text, size_t len, int64_t value, const struct unit *units, size_t n)
{
	size_t i = 0;

	while (i + 1 < n && (value % units[i].factor != 0 || value == 0))
		i++;
	return snprintf(
		text, len, "%" PRId64 "%s", value / units[i].factor, units[i].name);
}

static int format_duration(char *text, size_t len, int64_t ns)
{
	if (ns == 0)
		return snprintf(text, len, "0s");
	/* Without the last unit: a bare number would do, but says less. */
	return format_units(
		text, len, ns / NS_PER_MS, duration_units, N_OF(duration_units) - 1);
}

static int format_bound(const struct opt *o, char *text, size_t len, int64_t value)
{
	if (o->kind == OPT_DURATION)
		return format_duration(text, len, value);
	if (o->kind == OPT_SIZE)
		return format_units(text, len, value, size_units, N_OF(size_units));
	return snprintf(
		text, len, o->kind == OPT_OCTAL ? "%03" PRIo64 : "%" PRId64, value);
}

static int refuse_bound(const struct opt *o, const char *text, const char *which,
	int64_t bound, char *err, size_t err_len)
{
	char shown[32];

	format_bound(o, shown, sizeof(shown), bound);
	snprintf(err, err_len, "%s=%s: %s %s", o->name, text, which, shown);
	return -EINVAL;
}

static int parse_number(
	const struct opt *o, void *base, const char *text, char *err, size_t err_len)
{
	double value;

	if (!scan(o->kind, text, &value)) {
		snprintf(err, err_len, "%s=%s: not %s", o->name, text,
			kinds[o->kind].wanted);
		return -EINVAL;
	}
	if (value < (double)o->min)
		return refuse_bound(o, text, "less than", o->min, err, err_len);
	if (value > (double)o->max)
		return refuse_bound(o, text, "more than", o->max, err, err_len);
	store(o, base, value);
	return 0;
}

/* The word at *p of "a|b|c", its length in *len; *p goes on behind it. */
static const char *next_choice(const char **p, size_t *len)
{
	const char *word = *p;

	*len = strcspn(word, "|");
	*p = word + *len + (word[*len] == '|');
	return word;
}

static int parse_enum(
	const struct opt *o, void *base, const char *text, char *err, size_t err_len)
{
	const char *p = o->choices;

	for (unsigned i = 0; *p != '\0'; i++) {
		size_t len;
		const char *word = next_choice(&p, &len);

		if (strlen(text) == len && memcmp(text, word, len) == 0) {
			*(unsigned *)field(o, base) = i;
			return 0;
		}
	}
	snprintf(err, err_len, "%s=%s: not one of %s", o->name, text, o->choices);
	return -EINVAL;
}

static int parse_flag(
	const struct opt *o, void *base, const char *text, char *err, size_t err_len)
{
	bool yes = strcmp(text, "yes") == 0;

	if (!yes && strcmp(text, "no") != 0) {
		snprintf(err, err_len, "%s=%s: not yes or no", o->name, text);
		return -EINVAL;
	}
	*(bool *)field(o, base) = yes;
	return 0;
}

static int parse_string(
	const struct opt *o, void *base, const char *text, char *err, size_t err_len)
{
	char **value = field(o, base);
	char *copy = NULL;

	if (strlen(text) > (size_t)o->max) {
		snprintf(err, err_len, "%s=%.20s...: longer than %" PRId64 " bytes",
			o->name, text, o->max);
		return -EINVAL;
	}
	if (*text != '\0') {
		copy = strdup(text);
		if (copy == NULL)
			return -ENOMEM;
	}
	free(*value);
	*value = copy;
	return 0;
}

int opt_parse(
	const struct opt *o, void *base, const char *text, char *err, size_t err_len)
{
	switch (o->kind) {
	case OPT_ENUM:
		return parse_enum(o, base, text, err, err_len);
	case OPT_FLAG:
		return parse_flag(o, base, text, err, err_len);
	case OPT_STRING:
		return parse_string(o, base, text, err, err_len);
	default:
		return parse_number(o, base, text, err, err_len);
	}
}

static int format_enum(const struct opt *o, unsigned value, char *text, size_t len)
{
	const char *p = o->choices;
	size_t word_len;
	const char *word = next_choice(&p, &word_len);

	while (value-- > 0)
		word = next_choice(&p, &word_len);
	return snprintf(text, len, "%.*s", (int)word_len, word);
}

int opt_format(const struct opt *o, const void *base, char *text, size_t len)
{
	const void *value = cfield(o, base);
	const char *string;

	switch (o->kind) {
	case OPT_DURATION:
		if (o->optional && *(const int64_t *)value == 0)
			return snprintf(text, len, "%s", "");
		return format_duration(text, len, *(const int64_t *)value);
	case OPT_SIZE:
		return format_bound(o, text, len, (int64_t) * (const uint64_t *)value);
	case OPT_COUNT:
	case OPT_OCTAL:
		return format_bound(o, text, len, *(const unsigned *)value);
	case OPT_FRACTION:
		return snprintf(text, len, "%.15g", *(const double *)value);
	case OPT_ENUM:
		return format_enum(o, *(const unsigned *)value, text, len);
	case OPT_FLAG:
		return snprintf(text, len, "%s", *(const bool *)value ? "yes" : "no");
	case OPT_STRING:
		string = *(char *const *)value;
		return snprintf(text, len, "%s", string != NULL ? string : "");
	}
	return snprintf(text, len, "%s", "");
}

const struct opt *opt_find(
	const struct opt *table, size_t n, const char *name, size_t len)
{
	for (size_t i = 0; i < n; i++) {
		if (strlen(table[i].name) == len && memcmp(table[i].name, name, len) == 0)
			return &table[i];
	}
	return NULL;
}

#define NAME_LEN_MAX 31

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;

	return m < c ? m : c;
}

/* The edit distance of A and the first NAME_LEN_MAX bytes of B. */
static unsigned distance(const char *a, const char *b)
{
	size_t n = strnlen(b, NAME_LEN_MAX);
	unsigned row[NAME_LEN_MAX + 1];

	for (unsigned j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1] != '\0'; i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			unsigned above = row[j];

			row[j] = min3(above + 1, row[j - 1] + 1,
				diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[n];
}

const struct opt *opt_nearest(const struct opt *table, size_t n, const char *name)
{
	const struct opt *best = &table[0];
	unsigned least = distance(best->name, name);

	for (size_t i = 1; i < n; i++) {
		unsigned d = distance(table[i].name, name);

		if (d < least) {
			least = d;
			best = &table[i];
		}
	}
	return best;
}
