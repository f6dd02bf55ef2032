/* SPDX-License-Identifier: MIT */
/*
 * A text is encoded as a row of tokens, each a whole character or one %XX;
 * next_token() is the only place that decides how. All lengths are counted in
 * tokens of at most four bytes, so nothing is ever cut in two, and nothing is
 * allocated however long an id a backend sends.
 */
#include "name.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../backend/base/clock.h"

#define TIME_SHAPE "ddddddddTdddddd.ddddddZ-" /* d: a decimal digit */
#define TIME_LEN   (sizeof(TIME_SHAPE) - 1)
#define UUID_SHAPE "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" /* x: hexadecimal */
#define UUID_LEN   (sizeof(UUID_SHAPE) - 1)
#define UUID_HEAD  8

/* Leaves 102 bytes for GIVEN and its dash, and holds every id seen in use. */
#define ID_LEN_MAX 128
#define HASH_LEN   16
/* Kept of the end of a given name that is cut: enough for any extension. */
#define TAIL_MAX  32
#define TOKEN_MAX 4

/* Where a name is being written. Always NUL-terminated. */
struct out {
	char *p;
	size_t len;
};

/* ASCII whatever the locale: these shapes are a contract, not language. */
static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Whether TEXT begins with SHAPE. */
static bool has_shape(const char *text, const char *shape)
{
	for (; *shape; shape++, text++) {
		bool fits = *shape == 'd'   ? is_digit(*text)
			    : *shape == 'x' ? is_hex(*text)
					    : *text == *shape;

		if (!fits)
			return false;
	}
	return true;
}

/* How many bytes follow the first of a sequence; -1: none starts like this. */
static int utf8_follow(unsigned char c)
{
	if (c < 0x80)
		return 0;
	if (c >= 0xc2 && c <= 0xdf)
		return 1;
	if (c >= 0xe0 && c <= 0xef)
		return 2;
	return c >= 0xf0 && c <= 0xf4 ? 3 : -1;
}

/* Overlong forms, surrogates, and what lies beyond U+10FFFF; and the control
 * characters U+0080 to U+009F, which no terminal should be sent. */
static bool utf8_second_is_bad(unsigned char first, unsigned char second)
{
	switch (first) {
	case 0xc2:
		return second < 0xa0;
	case 0xe0:
		return second < 0xa0;
	case 0xed:
		return second > 0x9f;
	case 0xf0:
		return second < 0x90;
	case 0xf4:
		return second > 0x8f;
	}
	return false;
}

/* Length of the character at S that may stand as it is, or 0. */
static size_t plain_char(const char *s)
{
	const unsigned char *u = (const unsigned char *)s;
	int follow = utf8_follow(u[0]);

	if (follow < 0 || u[0] < 0x20 || u[0] == 0x7f || u[0] == '/')
		return 0;
	if (u[0] == '%' && is_hex(s[1]) && is_hex(s[2]))
		return 0;
	for (int i = 1; i <= follow; i++) {
		if (u[i] < 0x80 || u[i] > 0xbf)
			return 0;
	}
	if (follow > 0 && utf8_second_is_bad(u[0], u[1]))
		return 0;
	return (size_t)follow + 1;
}

static size_t percent(char c, char token[TOKEN_MAX])
{
	static const char hex[] = "0123456789ABCDEF";
	unsigned char u = (unsigned char)c;

	token[0] = '%';
	token[1] = hex[u >> 4];
	token[2] = hex[u & 15];
	return 3;
}

/* Encodes what *S begins with and goes behind it; the characters of ALSO are
 * encoded, too. Returns the length of the token, 0 at the end. */
static size_t next_token(const char **s, const char *also, char token[TOKEN_MAX])
{
	size_t n;

	if (!**s)
		return 0;
	n = strchr(also, **s) ? 0 : plain_char(*s);
	if (n == 0)
		return percent(*(*s)++, token);
	memcpy(token, *s, n);
	*s += n;
	return n;
}

static size_t encoded_len(const char *s, const char *also)
{
	char token[TOKEN_MAX];
	size_t sum = 0;

	for (size_t n; (n = next_token(&s, also, token)) > 0;)
		sum += n;
	return sum;
}

static void put(struct out *o, const char *data, size_t n)
{
	memcpy(o->p + o->len, data, n);
	o->len += n;
	o->p[o->len] = '\0';
}

/* Writes the tokens that fit into ROOM bytes. */
static void put_encoded(struct out *o, const char *s, const char *also, size_t room)
{
	char token[TOKEN_MAX];

	for (size_t n; (n = next_token(&s, also, token)) > 0 && n <= room; room -= n)
		put(o, token, n);
}

/* Not against malice: who can choose ids can as well send one twice. */
static uint64_t hash(const char *s)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
	return h;
}

static void put_id(struct out *o, const char *id)
{
	static const char also[] = "-~";
	char tail[HASH_LEN + 2], token[TOKEN_MAX];
	size_t len = strlen(id);

	if (len == UUID_LEN && has_shape(id, UUID_SHAPE)) {
		put(o, id, len);
	} else if (len == UUID_HEAD && has_shape(id, "xxxxxxxx")) {
		put(o, token, percent(id[0], token));
		put(o, id + 1, len - 1);
	} else if (len == 0) {
		put(o, "%00", 3); /* no text can hold a NUL */
	} else if (encoded_len(id, also) <= ID_LEN_MAX) {
		put_encoded(o, id, also, ID_LEN_MAX);
	} else {
		put_encoded(o, id, also, ID_LEN_MAX - HASH_LEN - 1);
		snprintf(tail, sizeof(tail), "~%016llx", (unsigned long long)hash(id));
		put(o, tail, HASH_LEN + 1);
	}
}

/* As much as there is room for, with the middle left out. */
static void put_given(struct out *o, const char *given)
{
	size_t room = NAME_MAX - o->len, len = encoded_len(given, "");
	char token[TOKEN_MAX];

	if (len <= room) {
		put_encoded(o, given, "", room);
		return;
	}
	put_encoded(o, given, "", room - TAIL_MAX - 1);
	put(o, "~", 1);
	while (len > TAIL_MAX)
		len -= next_token(&given, "", token);
	put_encoded(o, given, "", TAIL_MAX);
}

static void put_time(struct out *o, int64_t enqueued_ns)
{
	int64_t ns = enqueued_ns % NS_PER_S;
	time_t s = (time_t)(enqueued_ns / NS_PER_S);
	struct tm tm;

	if (ns < 0) {
		ns += NS_PER_S;
		s--;
	}
	/* 64 bits of nanoseconds are the years 1677 to 2262: never an error. */
	gmtime_r(&s, &tm);
	o->len += strftime(o->p, TIME_LEN, "%Y%m%dT%H%M%S", &tm);
	o->len += (size_t)snprintf(
		o->p + o->len, NAME_MAX - o->len, ".%06uZ-", (unsigned)(ns / NS_PER_US));
}

void name_format(char out[NAME_MAX + 1], int64_t enqueued_ns, const char *id,
	const char *given, const char *suffix)
{
	struct out o = {.p = out};

	put_time(&o, enqueued_ns);
	put_id(&o, id);
	if (given && *given) {
		put(&o, "-", 1);
		put_given(&o, given);
	} else if (suffix) {
		put_given(&o, suffix);
	}
}

bool name_is_message(const char *name)
{
	return has_shape(name, TIME_SHAPE) && name[TIME_LEN];
}

const char *name_given(const char *name)
{
	const char *p;

	if (!name_is_message(name))
		return NULL;
	p = name + TIME_LEN;
	p += has_shape(p, UUID_SHAPE) ? UUID_LEN : strcspn(p, "-");
	return *p == '-' && p[1] ? p + 1 : NULL;
}

static const struct {
	const char *text;
	bool is_dir;
} reserved[NAME_RESERVED_END] = {
	[NAME_CONTROL] = {".control", false},
	[NAME_STATUS_JSON] = {".status.json", false},
	[NAME_METRICS] = {".metrics", false},
	[NAME_NEXT] = {".next", false},
	[NAME_INFLIGHT] = {".inflight", true},
	[NAME_PEEK] = {".peek", true},
	[NAME_DEAD] = {".dead", true},
	[NAME_OUTBOX] = {".outbox", true},
	[NAME_DRAFTS] = {".drafts", true},
	[NAME_SCHEDULED] = {".scheduled", true},
};

enum name_reserved name_reserved(const char *name)
{
	if (name[0] != '.')
		return NAME_NONE;
	for (enum name_reserved r = NAME_NONE + 1; r < NAME_RESERVED_END; r++) {
		if (strcmp(name, reserved[r].text) == 0)
			return r;
	}
	return NAME_NONE;
}

const char *name_reserved_text(enum name_reserved r)
{
	return r < NAME_RESERVED_END ? reserved[r].text : NULL;
}

bool name_reserved_is_dir(enum name_reserved r)
{
	return r < NAME_RESERVED_END && reserved[r].is_dir;
}

struct name_patterns {
	unsigned n;
	char globs[]; /* one after the other, each with its NUL */
};

struct name_patterns *name_patterns_create(const char *globs)
{
	struct name_patterns *p = calloc(1, sizeof(*p) + strlen(globs) + 1);
	char *to;

	if (!p)
		return NULL;
	to = p->globs;
	while (*globs) {
		size_t n = strcspn(globs, ":");

		if (n > 0) {
			memcpy(to, globs, n); /* calloc() has put the NUL */
			to += n + 1;
			p->n++;
		}
		globs += globs[n] ? n + 1 : n;
	}
	return p;
}

void name_patterns_destroy(struct name_patterns *p)
{
	free(p);
}

bool name_patterns_match(const struct name_patterns *p, const char *name)
{
	const char *glob = p->globs;

	for (unsigned i = 0; i < p->n; i++, glob += strlen(glob) + 1) {
		if (fnmatch(glob, name, 0) == 0)
			return true;
	}
	return false;
}
