/* SPDX-License-Identifier: MIT */
/* What is written to .control, line by line, to one configuration. */
#include "fuzz.h"

#include <errno.h>

#include "backend/base/clock.h"
#include "fs/control.h"

#define DELAY_MAX (365 * 24 * 3600 * NS_PER_S)

/* All options as text. */
static void show(const struct config *cfg, struct buf *out)
{
	size_t n;
	const struct opt *table = config_table(&n);
	char value[2048];

	buf_clear(out);
	for (size_t i = 0; i < n; i++) {
		MUST((size_t)opt_format(&table[i], cfg, value, sizeof(value)) <
			sizeof(value));
		MUST(buf_printf(out, "%s=%s\n", table[i].name, value) == 0);
	}
}

/* A refusal changes nothing; what was taken can be taken again. */
static void set(struct config *cfg, const char *assignment)
{
	struct buf before = {0}, after = {0}, again = {0};
	char err[CONFIG_ERR_LEN] = "";
	int r;

	show(cfg, &before);
	r = config_set(cfg, assignment, err, sizeof(err));
	show(cfg, &after);
	MUST(r == 0 || r == -EINVAL);
	if (r < 0) {
		MUST(fuzz_says(err, sizeof(err)));
		MUST(strcmp(before.p, after.p) == 0);
	} else {
		MUST(config_set(cfg, assignment, err, sizeof(err)) == 0);
		MUST(config_check(cfg, err, sizeof(err)) == 0);
		show(cfg, &again);
		MUST(strcmp(after.p, again.p) == 0);
	}
	buf_fini(&before);
	buf_fini(&after);
	buf_fini(&again);
}

static void run_line(struct config *cfg, char *line)
{
	const char *end = line + strlen(line);
	struct control_line out = {0};
	char err[CONFIG_ERR_LEN] = "";
	int r = control_parse(line, &out, err, sizeof(err));
	bool named;

	MUST(r == 0 || r == -EINVAL || r == -ENODATA);
	MUST((r == -EINVAL) == fuzz_says(err, sizeof(err)));
	if (r < 0)
		return;
	named = out.command == CONTROL_RELEASE || out.command == CONTROL_SET;
	MUST(named == (out.name != NULL));
	MUST(out.delay_ns >= -1 && out.delay_ns <= DELAY_MAX);
	MUST(out.delay_ns == -1 || out.command == CONTROL_RELEASE);
	if (!named)
		return;
	MUST(out.name > line && *out.name && out.name + strlen(out.name) <= end);
	MUST(!strpbrk(out.name, " \t\r\n"));
	if (out.command == CONTROL_SET)
		set(cfg, out.name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *next = text;
	struct config cfg;

	MUST(config_init(&cfg) == 0);
	while (next)
		run_line(&cfg, strsep(&next, "\n"));
	config_fini(&cfg);
	free(text);
	return 0;
}
