/* SPDX-License-Identifier: MIT */
/* The list behind -o. */
#include "fuzz.h"

#include <errno.h>

#include "backend/base/buf.h"
#include "fs/config.h"

#define VALUE_MAX 8192

static void format(const struct opt *o, const struct config *cfg, char out[VALUE_MAX])
{
	MUST((size_t)opt_format(o, cfg, out, VALUE_MAX) < VALUE_MAX);
}

/* ",NAME=VALUE" as somebody would have to write it. */
static void write_option(struct buf *list, const char *name, const char *value)
{
	MUST(buf_printf(list, "%s%s=", list->len ? "," : "", name) == 0);
	for (; *value; value++) {
		if (*value == ',' || *value == '\\')
			MUST(buf_addstr(list, "\\") == 0);
		MUST(buf_add(list, value, 1) == 0);
	}
}

/* Every option written out again as it is shown is the same option. */
static void check_round_trip(const struct config *cfg)
{
	size_t n;
	const struct opt *table = config_table(&n);
	char value[VALUE_MAX], other[VALUE_MAX], err[CONFIG_ERR_LEN];
	struct buf list = {0};
	struct config copy;

	for (size_t i = 0; i < n; i++) {
		format(&table[i], cfg, value);
		/* Nothing says "not given". */
		if (config_given(cfg, table[i].name) && !(table[i].optional && !*value))
			write_option(&list, table[i].name, value);
	}
	MUST(config_init(&copy) == 0);
	MUST(config_options(&copy, list.p ? list.p : "", err, sizeof(err)) == 0);
	for (size_t i = 0; i < n; i++) {
		format(&table[i], cfg, value);
		format(&table[i], &copy, other);
		MUST(strcmp(value, other) == 0);
	}
	buf_fini(&list);
	config_fini(&copy);
}

static void check_name(const char *name)
{
	if (!name)
		return;
	MUST(*name && !strchr(name, '/'));
	for (; *name; name++)
		MUST((unsigned char)*name >= ' ' && *name != 0x7f);
}

/* What holds of every configuration that a mount may begin with. */
static void check_whole(const struct config *cfg)
{
	check_name(cfg->done);
	check_name(cfg->failed);
	check_name(cfg->suffix);
	MUST(!cfg->done || *cfg->done != '.');
	MUST(!cfg->failed || *cfg->failed != '.');
	MUST(!cfg->done || !cfg->failed || strcmp(cfg->done, cfg->failed) != 0);
	MUST(cfg->poll.floor_ns > 0 && cfg->poll.floor_ns <= cfg->poll.ceiling_ns);
	MUST(cfg->poll.factor >= 1 && cfg->poll.jitter_percent <= 100);
	MUST(cfg->lease.visibility_ns > 0);
	MUST(cfg->lease.visibility_ns <= cfg->lease.max_lease_ns);
	MUST(cfg->lease.max_attempts >= 1 && cfg->umask <= 0777);
	MUST(budget_possible(&cfg->budget));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	char err[CONFIG_ERR_LEN] = "";
	struct config cfg;
	int r;

	MUST(config_init(&cfg) == 0);
	r = config_options(&cfg, text, err, sizeof(err));
	MUST(r == 0 || r == -EINVAL);
	MUST((r < 0) == fuzz_says(err, sizeof(err)));
	if (r == 0) {
		check_round_trip(&cfg);
		r = config_check(&cfg, err, sizeof(err));
		MUST(r == 0 || r == -EINVAL);
		MUST((r < 0) == fuzz_says(err, sizeof(err)));
		if (r == 0)
			check_whole(&cfg);
	}
	config_fini(&cfg);
	free(text);
	return 0;
}
