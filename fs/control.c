/* SPDX-License-Identifier: MIT */
#include "control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "../backend/base/clock.h"
#include "../backend/engine/histogram.h"

enum value_kind { NOTHING, NUMBER, TEXT };

struct value {
	enum value_kind kind;
	double number;
	const char *text;
};

static struct value none(const struct control_view *v)
{
	(void)v;
	return (struct value){NOTHING, 0, NULL};
}

static struct value number(double n)
{
	return (struct value){NUMBER, n, NULL};
}

static struct value text(const char *s)
{
	return (struct value){TEXT, 0, s};
}

static struct value ms(int64_t ns)
{
	return ns < 0 ? none(NULL) : number((double)(ns / NS_PER_MS));
}

static struct value seconds(int64_t ns)
{
	return ns < 0 ? none(NULL) : number((double)(ns / NS_PER_S));
}

#define GETTER(name, expression)                               \
	static struct value name(const struct control_view *v) \
	{                                                      \
		return expression;                             \
	}

GETTER(get_state, text(poller_state_name(v->stats.state)))
GETTER(get_source, text(v->cfg->source))
GETTER(get_driver, text(v->driver))
GETTER(get_interval, ms(v->stats.backoff_interval_ns))
GETTER(get_floor, ms(v->cfg->poll.floor_ns))
GETTER(get_ceiling, ms(v->cfg->poll.ceiling_ns))
GETTER(get_factor, number(v->cfg->poll.factor))
GETTER(get_decrease, text(v->cfg->poll.decrease == BACKOFF_HALVE ? "halve" : "reset"))
GETTER(get_next_poll, ms(v->stats.next_poll_in_ns))
GETTER(get_polls, number((double)v->stats.polls_total))
GETTER(get_empty, number((double)v->stats.polls_empty))
GETTER(get_in_a_row, number((double)v->stats.polls_empty_in_a_row))
GETTER(get_requests, number((double)v->stats.requests_total))
GETTER(get_depth, v->stats.depth_known ? number((double)v->stats.depth) : none(v))
GETTER(get_ready, number(v->stats.ready))
GETTER(get_in_flight, number(v->stats.in_flight))
GETTER(get_outbox, number(v->stats.outbox))
GETTER(get_drafts, number(v->stats.drafts))
GETTER(get_stale, number(v->stats.drafts_stale))
GETTER(get_dead, number((double)v->stats.dead))
GETTER(get_claims, number((double)v->stats.claims_total))
GETTER(get_handled, number((double)v->stats.handled_total))
GETTER(get_received, number((double)v->stats.received_total))
GETTER(get_sent, number((double)v->stats.sent_total))
GETTER(get_released, number((double)v->stats.released_total))
GETTER(get_buried, number((double)v->stats.buried_total))
GETTER(get_lost, number((double)v->stats.leases_lost))
GETTER(get_oldest_claim, seconds(v->stats.oldest_claim_ns))
GETTER(get_oldest_ready, seconds(v->stats.oldest_ready_ns))
GETTER(get_average, ms(v->stats.avg_handling_ns))
GETTER(get_margin, ms(v->stats.margin_ns))
GETTER(get_stop_in, ms(v->stats.stop_in_ns))
GETTER(get_idle_timer, text(idle_state_name(v->stats.idle)))
GETTER(get_idle_left, ms(v->stats.idle_left_ns))
GETTER(get_announcer, text(v->announcer))
GETTER(get_errors, number((double)v->stats.errors_total))
GETTER(get_last_error, v->stats.last_error[0] ? text(v->stats.last_error) : none(NULL))

/* metric: its name there without the prefix and _total; NULL: not a metric. In
 * .metrics times are seconds. */
static const struct key {
	const char *name;
	struct value (*get)(const struct control_view *v);
	const char *metric;
	bool counter;
	const char *help;
} keys[] = {
	{"state", get_state, NULL, false, NULL},
	{"source", get_source, NULL, false, NULL},
	{"driver", get_driver, NULL, false, NULL},
	{"backoff_interval_ms", get_interval, "backoff_interval_seconds", false,
		"Sleep after an empty poll"},
	{"backoff_floor_ms", get_floor, NULL, false, NULL},
	{"backoff_ceiling_ms", get_ceiling, NULL, false, NULL},
	{"backoff_factor", get_factor, NULL, false, NULL},
	{"backoff_decrease", get_decrease, NULL, false, NULL},
	{"next_poll_in_ms", get_next_poll, "next_poll_in_seconds", false,
		"Time to the next poll"},
	{"polls_total", get_polls, "polls", true, "Polls made"},
	{"polls_empty", get_empty, "polls_empty", true, "Polls that brought nothing"},
	{"polls_empty_in_a_row", get_in_a_row, "polls_empty_in_a_row", false,
		"Polls that brought nothing since one that did"},
	{"requests_total", get_requests, "requests", true, "Requests to the backend"},
	{"depth", get_depth, "depth", false, "Messages in the queue"},
	{"ready", get_ready, "ready", false, "Messages listed and unclaimed here"},
	{"in_flight", get_in_flight, "in_flight", false, "Messages claimed here"},
	{"outbox", get_outbox, "outbox", false, "Messages not accepted yet"},
	{"drafts", get_drafts, "drafts", false, "Drafts"},
	{"drafts_stale", get_stale, "drafts_stale", false, "Drafts left for 10 min"},
	{"dead", get_dead, "dead", false, "Dead letters"},
	{"received_total", get_received, "received", true, "Messages leased"},
	{"claims_total", get_claims, "claims", true, "Messages given to a consumer"},
	{"handled_total", get_handled, "handled", true, "Messages deleted"},
	{"sent_total", get_sent, "sent", true, "Messages accepted"},
	{"released_total", get_released, "released", true, "Handlings that failed"},
	{"buried_total", get_buried, "buried", true, "Messages made dead letters"},
	{"leases_lost", get_lost, "leases_lost", true, "Leases lost"},
	{"oldest_claim_s", get_oldest_claim, "oldest_claim_seconds", false,
		"Age of the oldest claim"},
	{"oldest_ready_s", get_oldest_ready, "oldest_ready_seconds", false,
		"Age of the oldest listed message"},
	{"avg_handling_ms", get_average, NULL, false, NULL},
	{"margin_ms", get_margin, "margin_seconds", false,
		"Time before the end in which nothing is handed out"},
	{"stop_in_ms", get_stop_in, "stop_in_seconds", false,
		"Time to the end of the run"},
	{"idle_timer", get_idle_timer, NULL, false, NULL},
	{"idle_left_ms", get_idle_left, "idle_left_seconds", false,
		"Time to the end of the mount when nothing is handled"},
	{"announcer", get_announcer, NULL, false, NULL},
	{"errors_total", get_errors, NULL, false, NULL}, /* by kind */
	{"last_error", get_last_error, NULL, false, NULL},
};

#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

const char *control_key(size_t i)
{
	return i < N_KEYS ? keys[i].name : NULL;
}

/* ---- .control ---- */

/* A text must not be able to end its line. */
static int put_text(struct buf *out, const char *s)
{
	int err = 0;

	for (; *s && !err; s++) {
		bool control = (unsigned char)*s < ' ' || *s == 0x7f;

		err = buf_add(out, control ? "?" : s, 1);
	}
	return err;
}

static int put_value(struct buf *out, const struct value *val)
{
	if (val->kind == TEXT)
		return put_text(out, val->text);
	return val->kind == NUMBER ? buf_printf(out, "%.15g", val->number) : 0;
}

int control_render(const struct control_view *v, struct buf *out)
{
	int err = 0;

	for (size_t i = 0; i < N_KEYS && !err; i++) {
		struct value val = keys[i].get(v);

		err = buf_printf(out, "%s=", keys[i].name);
		if (!err)
			err = put_value(out, &val);
		if (!err)
			err = buf_addstr(out, "\n");
	}
	return err;
}

/* ---- .status.json ---- */

static bool add_value(cJSON *object, const char *name, const struct value *val)
{
	if (val->kind == TEXT)
		return cJSON_AddStringToObject(object, name, val->text);
	if (val->kind == NUMBER)
		return cJSON_AddNumberToObject(object, name, val->number);
	return cJSON_AddNullToObject(object, name);
}

static bool add_options(cJSON *root, const struct config *cfg)
{
	size_t n;
	const struct opt *table = config_table(&n);
	cJSON *options = cJSON_AddObjectToObject(root, "options");
	char value[512];

	for (size_t i = 0; options && i < n; i++) {
		opt_format(&table[i], cfg, value, sizeof(value));
		if (!cJSON_AddStringToObject(options, table[i].name, value))
			return false;
	}
	return options != NULL;
}

int control_render_json(const struct control_view *v, struct buf *out)
{
	cJSON *root = cJSON_CreateObject();
	bool ok = root && cJSON_AddStringToObject(root, "mountpoint", v->cfg->mountpoint);
	char *printed = NULL;
	int err = -ENOMEM;

	for (size_t i = 0; ok && i < N_KEYS; i++) {
		struct value val = keys[i].get(v);

		ok = add_value(root, keys[i].name, &val);
	}
	if (ok && add_options(root, v->cfg))
		printed = cJSON_Print(root);
	if (printed)
		err = buf_printf(out, "%s\n", printed);
	cJSON_free(printed);
	cJSON_Delete(root);
	return err;
}

/* ---- .metrics ---- */

/* A label value: backslash, quote and newline are escaped. */
static int put_label(struct buf *out, const char *s)
{
	int err = 0;

	for (; *s && !err; s++) {
		if (*s == '\n')
			err = buf_addstr(out, "\\n");
		else if (*s == '\\' || *s == '"')
			err = buf_printf(out, "\\%c", *s);
		else
			err = buf_add(out, s, 1);
	}
	return err;
}

static int put_family(
	struct buf *out, const char *name, const char *type, const char *help)
{
	return buf_printf(out, "# HELP spoolfs_%s %s.\n# TYPE spoolfs_%s %s\n", name,
		help, name, type);
}

/* One line; LABEL may be NULL. */
static int put_sample(struct buf *out, const struct control_view *v, const char *name,
	const char *label, const char *label_value, double number)
{
	int err = buf_printf(out, "spoolfs_%s{queue=\"", name);

	if (!err)
		err = put_label(out, v->cfg->source);
	if (!err && label)
		err = buf_printf(out, "\",%s=\"%s", label, label_value);
	return err ? err : buf_printf(out, "\"} %.15g\n", number);
}

static int put_metric(struct buf *out, const struct control_view *v, const struct key *k)
{
	struct value val = k->get(v);
	size_t len = strlen(k->name);
	char name[64];
	int err;

	if (val.kind != NUMBER)
		return 0;
	if (len > 3 && strcmp(k->name + len - 3, "_ms") == 0)
		val.number /= 1000;
	snprintf(name, sizeof(name), "%s%s", k->metric, k->counter ? "_total" : "");
	err = put_family(out, k->metric, k->counter ? "counter" : "gauge", k->help);
	return err ? err : put_sample(out, v, name, NULL, NULL, val.number);
}

static int put_states(struct buf *out, const struct control_view *v)
{
	int err = put_family(out, "state", "gauge", "1 for the state of the poller");

	for (int s = 0; s <= POLLER_STOPPED && !err; s++)
		err = put_sample(out, v, "state", "state",
			poller_state_name((enum poller_state)s),
			v->stats.state == (enum poller_state)s);
	return err;
}

static int put_errors(struct buf *out, const struct control_view *v)
{
	int err = put_family(out, "errors", "counter", "Errors of the backend");

	for (int k = 0; k < ERROR_KINDS && !err; k++)
		err = put_sample(out, v, "errors_total", "kind",
			error_kind_name((enum error_kind)k), (double)v->stats.errors[k]);
	return err;
}

static int put_handling(struct buf *out, const struct control_view *v)
{
	const struct histogram *h = v->stats.handling;
	int err = put_family(out, "handling_seconds", "histogram",
		"From a claim to its deletion or release");

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS && !err; i++)
		err = put_sample(out, v, "handling_seconds_bucket", "le", histogram_le(i),
			(double)histogram_at_most(h, i));
	if (!err)
		err = put_sample(out, v, "handling_seconds_count", NULL, NULL,
			(double)histogram_count(h));
	return err ? err
		   : put_sample(out, v, "handling_seconds_sum", NULL, NULL,
			     (double)h->sum_s + (double)h->sum_ns / (double)NS_PER_S);
}

int control_render_metrics(const struct control_view *v, struct buf *out)
{
	int err = 0;

	for (size_t i = 0; i < N_KEYS && !err; i++)
		if (keys[i].metric)
			err = put_metric(out, v, &keys[i]);
	if (!err)
		err = put_states(out, v);
	if (!err)
		err = put_errors(out, v);
	if (!err)
		err = put_handling(out, v);
	return err ? err : buf_addstr(out, "# EOF\n");
}

/* ---- commands ---- */

static const struct {
	const char *name;
	enum control_command command;
	int min_args, max_args;
	const char *usage;
} commands[] = {
	{"poll", CONTROL_POLL, 0, 0, "poll"},
	{"pause", CONTROL_PAUSE, 0, 0, "pause"},
	{"resume", CONTROL_RESUME, 0, 0, "resume"},
	{"drain", CONTROL_DRAIN, 0, 0, "drain"},
	{"stop", CONTROL_STOP, 0, 0, "stop"},
	{"release", CONTROL_RELEASE, 1, 2, "release NAME [DELAY]"},
	{"set", CONTROL_SET, 1, 1, "set OPTION=VALUE"},
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int parse_delay(const char *s, int64_t *ns, char *err, size_t err_len)
{
	static const struct opt delay = {.name = "delay",
		.kind = OPT_DURATION,
		.min = 0,
		.max = 365 * 24 * 3600 * NS_PER_S};

	return opt_parse(&delay, ns, s, err, err_len);
}

int control_parse(char *line, struct control_line *out, char *err, size_t err_len)
{
	char *save = NULL, *word = strtok_r(line, " \t\r", &save);
	char *args[3] = {NULL};
	int n = 0;
	size_t i = 0;

	if (!word)
		return -ENODATA;
	while (n < 3 && (args[n] = strtok_r(NULL, " \t\r", &save)))
		n++;
	while (i < N_COMMANDS && strcmp(commands[i].name, word) != 0)
		i++;
	if (i == N_COMMANDS) {
		snprintf(err, err_len, "unknown command: %.60s", word);
		return -EINVAL;
	}
	if (n < commands[i].min_args || n > commands[i].max_args) {
		snprintf(err, err_len, "usage: %s", commands[i].usage);
		return -EINVAL;
	}
	*out = (struct control_line){commands[i].command, args[0], -1};
	return args[1] ? parse_delay(args[1], &out->delay_ns, err, err_len) : 0;
}
