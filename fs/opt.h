/* SPDX-License-Identifier: MIT */
/*
 * One option: its text, its bounds, and where its value lives in a struct.
 * Pure. config.c has the table; nothing here knows what an option means.
 */
#ifndef SPOOLFS_FS_OPT_H
#define SPOOLFS_FS_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum opt_kind {
	OPT_DURATION, /* int64_t ns. "500ms" "0.5s" "30" (seconds) "15m" "12h" "7d";
			 kept to the millisecond */
	OPT_SIZE,     /* uint64_t bytes. "64M" "1.5G" "4096"; K M G are 1024s */
	OPT_COUNT,    /* unsigned, decimal */
	OPT_OCTAL,    /* unsigned, octal: a umask */
	OPT_FRACTION, /* double, decimal */
	OPT_ENUM,     /* unsigned (any enum): index of the word in choices */
	OPT_STRING,   /* char *, heap, NULL when empty; max is its length */
	OPT_FLAG,     /* bool. "yes" or "no" */
};

struct opt {
	const char *name;
	enum opt_kind kind;
	size_t offset;       /* of the value in the struct */
	const char *def;     /* default, as text; "": left as it was initialised */
	int64_t min, max;    /* in the unit of the value, both allowed */
	const char *choices; /* OPT_ENUM: "create|rename|off", in the enum's order */
	const char *bare;    /* what the name without "=" means; NULL: it needs a value */
	bool optional;       /* OPT_DURATION: 0 means "not given", shown as "" */
	bool live;           /* may be changed while mounted (`set`) */
	const char *help;    /* one line */
};

/*
 * Sets the value of O in the struct at BASE from TEXT. A string that was there
 * is freed. 0, -ENOMEM, or -EINVAL; then BASE is unchanged and ERR has one line
 * that begins with "NAME=TEXT: ".
 */
int opt_parse(
	const struct opt *o, void *base, const char *text, char *err, size_t err_len);

/*
 * The value as text that opt_parse() takes back ("" for an unset one), cut to
 * LEN - 1 bytes. Returns its whole length, as snprintf does.
 */
int opt_format(const struct opt *o, const void *base, char *text, size_t len);

/* "duration", "size", ... */
const char *opt_kind_name(enum opt_kind kind);

/* The one called NAME (LEN bytes), or NULL. */
const struct opt *opt_find(
	const struct opt *table, size_t n, const char *name, size_t len);

/* The one whose name is the fewest typing errors away from NAME. N >= 1. */
const struct opt *opt_nearest(const struct opt *table, size_t n, const char *name);

#endif
