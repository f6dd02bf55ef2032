/* SPDX-License-Identifier: MIT */
/* The texts of .control, .status.json and .metrics, whatever the source is called
 * and the backend says: SOURCE, MOUNTPOINT, LAST_ERROR. */
#include "fuzz.h"

#include <cjson/cJSON.h>

#include "backend/engine/histogram.h"
#include "fs/control.h"

/* One line for each key, in their order. */
static void check_lines(const struct control_view *v)
{
	struct buf out = {0};
	size_t i = 0;

	MUST(control_render(v, &out) == 0);
	for (char *next = out.p, *line; (line = strsep(&next, "\n")) && next; i++) {
		size_t n = strcspn(line, "=");

		MUST(control_key(i) && strlen(control_key(i)) == n);
		MUST(memcmp(line, control_key(i), n) == 0);
	}
	MUST(!control_key(i));
	buf_fini(&out);
}

static void check_json(const struct control_view *v)
{
	struct buf out = {0};
	cJSON *json;

	MUST(control_render_json(v, &out) == 0);
	json = cJSON_Parse(out.p);
	MUST(json);
	for (size_t i = 0; control_key(i); i++)
		MUST(cJSON_GetObjectItemCaseSensitive(json, control_key(i)));
	MUST(strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(json, "source")),
		     v->cfg->source) == 0);
	cJSON_Delete(json);
	buf_fini(&out);
}

static void check_metrics(const struct control_view *v)
{
	struct buf out = {0};
	bool ended = false;

	MUST(control_render_metrics(v, &out) == 0);
	for (char *next = out.p, *line; (line = strsep(&next, "\n")) && next;) {
		MUST(!ended);
		ended = strcmp(line, "# EOF") == 0;
		MUST(ended || strncmp(line, "# HELP spoolfs_", 15) == 0 ||
			strncmp(line, "# TYPE spoolfs_", 15) == 0 ||
			strncmp(line, "spoolfs_", 8) == 0);
	}
	MUST(ended);
	buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct histogram h = {0};
	struct control_view v = {.driver = "sqlite", .announcer = "up"};
	struct config cfg;
	char *said;

	MUST(config_init(&cfg) == 0);
	cfg.source = fuzz_field(&data, &size);
	cfg.mountpoint = fuzz_field(&data, &size);
	said = fuzz_field(&data, &size);
	v.cfg = &cfg;
	v.stats.handling = &h;
	v.stats.last_error = said;
	check_lines(&v);
	check_json(&v);
	check_metrics(&v);
	free(said);
	config_fini(&cfg);
	return 0;
}
