/* SPDX-License-Identifier: MIT */
/* Command lines for the tests of fs/config.h, and what they set. */
#ifndef SPOOLFS_TESTS_UNIT_CONFIG_ARGS_H
#define SPOOLFS_TESTS_UNIT_CONFIG_ARGS_H

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "fs/config.h"
#include "tests/test.h"

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)

static char err[CONFIG_ERR_LEN];

/* Parses the command line up to NULL into CFG, which it initialises. */
#define ARGS(cfg, ...) parse_args(cfg, (const char *[]){"spoolfs", __VA_ARGS__, NULL})

static inline int parse_args(struct config *cfg, const char *const *words)
{
	char *argv[16];
	int argc = 0, rc;

	err[0] = '\0';
	for (; words[argc] != NULL; argc++)
		argv[argc] = strdup(words[argc]);
	argv[argc] = NULL;
	CHECK_INT(config_init(cfg), 0);
	rc = config_args(cfg, argc, argv, err, sizeof(err));
	/* getopt only reorders what argv points to. */
	for (int i = 0; i < argc; i++)
		free(argv[i]);
	return rc;
}

static inline void check_refused(const char *opts, const char *line)
{
	struct config cfg;
	int rc = ARGS(&cfg, "-o", opts, "q.db", "mnt");

	config_fini(&cfg);
	CHECK_STR(err, line);
	CHECK_INT(rc, -EINVAL);
}

static inline void check_taken(struct config *cfg, const char *opts)
{
	int rc = ARGS(cfg, "-o", opts, "q.db", "mnt");

	CHECK_STR(err, "");
	CHECK_INT(rc, 0);
}

static inline const struct opt *entry(const char *name)
{
	size_t n;
	const struct opt *table = config_table(&n);
	const struct opt *o = opt_find(table, n, name, strlen(name));

	CHECK(o != NULL);
	return o;
}

static inline void check_shown(
	const struct config *cfg, const char *name, const char *want)
{
	char text[1100];

	opt_format(entry(name), cfg, text, sizeof(text));
	CHECK_STR(text, want);
}

#endif
