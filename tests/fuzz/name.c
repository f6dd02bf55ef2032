/* SPDX-License-Identifier: MIT */
/* Names of messages: the time (eight bytes), then ID, GIVEN, SUFFIX, and the ID
 * and GIVEN of another message. */
#include "fuzz.h"

#include "fs/name.h"

#define TIME_LEN (sizeof("20261120T041500.123456Z-") - 1)
#define GUARD    8

static int value(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Encoded, so in capitals; a '%' before other digits is itself. */
static char *decode(const char *text, size_t len)
{
	char *out = malloc(len + 1), *to = out;

	MUST(out);
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '%' && len - i > 2 && value(text[i + 1]) >= 0 &&
			value(text[i + 2]) >= 0) {
			*to++ = (char)(value(text[i + 1]) * 16 + value(text[i + 2]));
			i += 2;
		} else {
			*to++ = text[i];
		}
	}
	*to = '\0';
	return out;
}

/* How many bytes continue a sequence that begins with C, or -1. */
static int follow(unsigned char c)
{
	if (c < 0x80)
		return 0;
	if (c < 0xc2 || c > 0xf4)
		return -1;
	return c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
}

static void check_bytes(const char *name)
{
	for (const unsigned char *p = (const unsigned char *)name; *p; p++) {
		int n = follow(*p);

		MUST(*p >= ' ' && *p != 0x7f && *p != '/' && n >= 0);
		for (; n > 0; n--) {
			p++;
			MUST((*p & 0xc0) == 0x80);
		}
	}
}

static void format(char name[NAME_MAX + 1], int64_t ns, const char *id, const char *given,
	const char *suffix)
{
	char out[NAME_MAX + 1 + GUARD], again[NAME_MAX + 1];

	memset(out, '#', sizeof(out));
	name_format(out, ns, id, given, suffix);
	MUST(memchr(out, '\0', NAME_MAX + 1));
	MUST(memcmp(out + NAME_MAX + 1, "########", GUARD) == 0);
	name_format(again, ns, id, given, suffix);
	MUST(strcmp(out, again) == 0);
	check_bytes(out);
	MUST(name_is_message(out) && name_reserved(out) == NAME_NONE && out[0] != '.');
	memcpy(name, out, NAME_MAX + 1);
}

/* What ID and GIVEN were can be told from the name, as long as nothing of them
 * was left out. */
static void check_parts(const char *name, const char *id, const char *given)
{
	const char *g = name_given(name);
	const char *begin = name + TIME_LEN;
	char *back;

	MUST((g != NULL) == (*given != '\0'));
	MUST(!g || (g > begin && g < name + strlen(name) && g[-1] == '-'));
	if (*id) {
		back = decode(begin, g ? (size_t)(g - 1 - begin) : strlen(begin));
		MUST(strcmp(back, id) == 0 || strchr(begin, '~'));
		free(back);
	}
	if (g) {
		back = decode(g, strlen(g));
		MUST(strcmp(back, given) == 0 || strchr(g, '~'));
		free(back);
	}
}

static void check_distinct(int64_t ns, const char *id, const char *id2, const char *given,
	const char *given2, const char *suffix)
{
	char a[NAME_MAX + 1], b[NAME_MAX + 1];

	if (strcmp(id, id2) == 0)
		return;
	format(a, ns, id, given, NULL);
	format(b, ns, id2, given2, NULL);
	MUST(strcmp(a, b) != 0);
	format(a, ns, id, NULL, suffix);
	format(b, ns, id2, NULL, suffix);
	MUST(strcmp(a, b) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *id, *given, *suffix, *id2, *given2;
	char name[NAME_MAX + 1];
	int64_t ns = 0;
	size_t n = size < sizeof(ns) ? size : sizeof(ns);

	if (n > 0)
		memcpy(&ns, data, n);
	data += n;
	size -= n;
	id = fuzz_field(&data, &size);
	given = fuzz_field(&data, &size);
	suffix = fuzz_field(&data, &size);
	id2 = fuzz_field(&data, &size);
	given2 = fuzz_field(&data, &size);
	format(name, ns, id, given, NULL);
	check_parts(name, id, given);
	check_distinct(ns, id, id2, given, given2, suffix);
	/* And as a name that somebody wrote. */
	MUST(!name_given(given) || name_is_message(given));
	MUST(name_reserved(given) == NAME_NONE || given[0] == '.');
	free(id);
	free(given);
	free(suffix);
	free(id2);
	free(given2);
	return 0;
}
