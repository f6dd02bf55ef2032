/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS            INT64_C(1000000)
#define SECOND        (1000 * MS)
#define MINUTE        (60 * SECOND)
#define HOUR          (60 * MINUTE)
#define DAY           (24 * HOUR)
#define KIB           INT64_C(1024)
#define GIB           (KIB * KIB * KIB)
#define RUN_IDLE_TIME (5 * SECOND)
#define ID_MAX        INT64_C(4294967294) /* (uid_t)-1 means "none" to the kernel */

#define AT(member) offsetof(struct config, member)

#define DRAFTS ".*:*.tmp:tmp.*:*.part:*.filepart:*.swp:*~"

/* clang-format off */
#define DURATION(n, m, d, lo, hi, h) { .name = n, .kind = OPT_DURATION, \
	.offset = AT(m), .def = d, .min = lo, .max = hi, .live = true, .help = h }
#define NUMBER(n, k, m, d, lo, hi, l, h) { .name = n, .kind = k, \
	.offset = AT(m), .def = d, .min = lo, .max = hi, .live = l, .help = h }
#define ENUM(n, m, d, c, l, h) { .name = n, .kind = OPT_ENUM, \
	.offset = AT(m), .def = d, .choices = c, .live = l, .help = h }
#define STRING(n, m, d, hi, h) { .name = n, .kind = OPT_STRING, \
	.offset = AT(m), .def = d, .max = hi, .help = h }
#define FLAG(n, m, h) { .name = n, .kind = OPT_FLAG, \
	.offset = AT(m), .def = "no", .bare = "yes", .help = h }

static const struct opt table[] = {
	DURATION("visibility", lease.visibility_ns, "30s", 100 * MS, 7 * DAY,
		"lease of a message, renewed while its owner lives"),
	DURATION("max_lease", lease.max_lease_ns, "12h", 100 * MS, 30 * DAY,
		"a claim is never kept longer than this"),
	DURATION("inherit", lease.inherit_ns, "15m", 0, 30 * DAY,
		"how long a parent keeps what an ended child has read"),
	NUMBER("max_attempts", OPT_COUNT, lease.max_attempts, "5", 1, 1000, true,
		"failed handlings after which a message is a dead letter"),
	DURATION("retry_delay", lease.retry_delay_ns, "30s", 0, 7 * DAY,
		"wait before a redelivery, doubled each time up to 15m"),
	NUMBER("window", OPT_COUNT, window, "0", 0, 100000, true,
		"messages held for listing; 0: 1024 embedded, 32 remote"),
	NUMBER("window_bytes", OPT_SIZE, window_bytes, "64M", 64 * KIB, 64 * GIB, true,
		"bytes held for listing"),
	DURATION("poll_floor", poll.floor_ns, "1s", MS, DAY,
		"shortest sleep after an empty poll"),
	DURATION("poll_ceiling", poll.ceiling_ns, "60s", MS, DAY,
		"longest sleep after an empty poll"),
	NUMBER("poll_factor", OPT_FRACTION, poll.factor, "2", 1, 100, true,
		"the sleep grows by this with each empty poll"),
	ENUM("poll_decrease", poll.decrease, "reset", "reset|halve", true,
		"after a message: back to the floor, or divided by the factor"),
	NUMBER("poll_jitter", OPT_COUNT, poll.jitter_percent, "20", 0, 100, true,
		"per cent by which each sleep is varied"),
	{ .name = "idle_time", .kind = OPT_DURATION, .offset = AT(idle_time_ns), .def = "",
		.min = MS, .max = DAY, .optional = true, .live = true,
		.help = "poll at this fixed interval: floor and ceiling at once" },
	{ .name = "run_for", .kind = OPT_DURATION, .offset = AT(budget.run_for_ns),
		.def = "", .max = 30 * DAY, .optional = true, .live = true,
		.help = "end within this time, handing out no message too late for it" },
	DURATION("estimated_duration", budget.estimated_ns, "2s", MS, DAY,
		"of a handling, while none was seen; for run_for"),
	NUMBER("tolerance_factor", OPT_FRACTION, budget.tolerance, "5", 0, 1000, true,
		"average handlings that must fit into the rest of run_for"),
	{ .name = "idle_timeout", .kind = OPT_DURATION, .offset = AT(idle_timeout_ns),
		.def = "", .max = 30 * DAY, .optional = true, .live = true,
		.help = "end when nothing was handled for so long" },
	ENUM("announce", announce, "create", "create|rename|off", false,
		"how inotify learns of a message: IN_CREATE, IN_MOVED_TO, not at all"),
	ENUM("claims", claims, "owner", "owner|shared", false,
		"who may delete a claimed message: its owner, or anyone"),
	ENUM("rm_unread", rm_unread, "bury", "bury|delete", true,
		"what rm does to a message nobody has read"),
	ENUM("role", role, "both", "both|in|out", false,
		"in: nothing can be sent; out: nothing is received"),
	STRING("drafts", drafts, DRAFTS, 1024,
		"names (globs) not sent before they are renamed"),
	STRING("done", done, "", 64, "visible directory: what is moved there is deleted"),
	STRING("failed", failed, "", 64, "visible directory: what is moved there is buried"),
	STRING("suffix", suffix, "", 32, "ends the name of a message that was given none"),
	FLAG("show_control", show_control, "list the dot entries too"),
	FLAG("adopt", adopt, "send the plain files found in the mount point first"),
	{ .name = "create", .kind = OPT_FLAG, .offset = AT(create), .def = "yes", .bare = "yes",
		.help = "make the queue if it is missing" },
	STRING("state", state, "", 4000, "directory for drafts and claims of a remote queue"),
	STRING("credentials", credentials, "", 4000,
		"file that gives access to a remote queue; private to its owner"),
	STRING("ca_file", ca_file, "", 4000, "authorities (PEM) that a service is trusted by"),
	ENUM("encoding", encoding, "text", "text|base64", false,
		"how a body travels in a service that takes text only"),
	{ .name = "debug", .kind = OPT_STRING, .offset = AT(debug), .def = "", .max = 256,
		.bare = "all", .live = true,
		.help = "modules to trace (lease,http), or all" },
	NUMBER("uid", OPT_COUNT, uid, "", 0, ID_MAX, false,
		"owner of the entries (default: who mounts)"),
	NUMBER("gid", OPT_COUNT, gid, "", 0, ID_MAX, false,
		"group of the entries (default: who mounts)"),
	NUMBER("umask", OPT_OCTAL, umask, "077", 0, 0777, false,
		"taken off the modes 0666 and 0777"),
	FLAG("allow_other", allow_other, "let other users in"),
	FLAG("ro", ro, "nothing can be sent or deleted; nothing is announced"),
};
/* clang-format on */

#define N_TABLE (sizeof(table) / sizeof(table[0]))
_Static_assert(N_TABLE <= 64, "config.given has 64 bits");

const struct opt *config_table(size_t *n)
{
	*n = N_TABLE;
	return table;
}

static uint64_t bit(const struct opt *o)
{
	return UINT64_C(1) << (o - table);
}

static bool was_given(const struct config *cfg, const char *name)
{
	return (cfg->given & bit(opt_find(table, N_TABLE, name, strlen(name)))) != 0;
}

bool config_given(const struct config *cfg, const char *name)
{
	return was_given(cfg, name);
}

static void forget_given(struct config *cfg, const char *name)
{
	cfg->given &= ~bit(opt_find(table, N_TABLE, name, strlen(name)));
}

int config_init(struct config *cfg)
{
	char err[CONFIG_ERR_LEN];

	memset(cfg, 0, sizeof(*cfg));
	cfg->uid = getuid();
	cfg->gid = getgid();
	for (size_t i = 0; i < N_TABLE; i++) {
		int rc = 0;

		if (*table[i].def != '\0')
			rc = opt_parse(&table[i], cfg, table[i].def, err, sizeof(err));
		if (rc < 0)
			return rc;
	}
	return 0;
}

void config_fini(struct config *cfg)
{
	for (size_t i = 0; i < N_TABLE; i++) {
		if (table[i].kind == OPT_STRING)
			free(*(char **)((char *)cfg + table[i].offset));
	}
	free(cfg->source);
	free(cfg->mountpoint);
	free(cfg->fuse_opts);
	memset(cfg, 0, sizeof(*cfg));
}

static int refuse_unknown(const char *text, char *err, size_t err_len)
{
	int len = (int)strcspn(text, "=");
	char name[64];

	snprintf(name, sizeof(name), "%.*s", len, text);
	if (strcmp(name, "nonempty") == 0)
		snprintf(err, err_len,
			"nonempty: a mount point must be empty; "
			"adopt sends the files found in it");
	else
		snprintf(err, err_len, "unknown option '%s', the nearest is '%s'", name,
			opt_nearest(table, N_TABLE, name)->name);
	return -EINVAL;
}

/* The option that TEXT ("name" or "name=value") is about, its value in *VALUE. */
static int find(const char *text, const struct opt **o, const char **value, char *err,
	size_t err_len)
{
	size_t len = strcspn(text, "=");

	*o = opt_find(table, N_TABLE, text, len);
	if (*o == NULL)
		return refuse_unknown(text, err, err_len);
	*value = text[len] == '=' ? text + len + 1 : (*o)->bare;
	if (*value == NULL) {
		snprintf(err, err_len, "%s: needs a value (%s=%s)", (*o)->name,
			(*o)->name, opt_kind_name((*o)->kind));
		return -EINVAL;
	}
	return 0;
}

int config_give(struct config *cfg, const char *text, char *err, size_t err_len)
{
	const struct opt *o;
	const char *value;
	int rc = find(text, &o, &value, err, err_len);

	if (rc < 0)
		return rc;
	cfg->given |= bit(o);
	return opt_parse(o, cfg, value, err, err_len);
}

static int refuse(char *err, size_t err_len, const char *line)
{
	snprintf(err, err_len, "%s", line);
	return -EINVAL;
}

/* NAME as part of a file name. A leading dot would hide a directory. */
static bool is_plain(const char *name, bool dot_allowed)
{
	if (name == NULL)
		return true;
	if (*name == '.' && !dot_allowed)
		return false;
	for (const char *p = name; *p != '\0'; p++) {
		if (*p == '/' || (unsigned char)*p < ' ' || *p == 0x7f)
			return false;
	}
	return true;
}

static int check_names(const struct config *cfg, char *err, size_t err_len)
{
	if (!is_plain(cfg->done, false))
		return refuse(
			err, err_len, "done: must be a plain name without a leading dot");
	if (!is_plain(cfg->failed, false))
		return refuse(err, err_len,
			"failed: must be a plain name without a leading dot");
	if (!is_plain(cfg->suffix, true))
		return refuse(err, err_len,
			"suffix: must have no slash and no control character");
	if (cfg->done != NULL && cfg->failed != NULL &&
		strcmp(cfg->done, cfg->failed) == 0)
		return refuse(err, err_len, "done and failed must differ");
	return 0;
}

/* A run that is started once a minute is to find what comes meanwhile. */
static void imply_idle_time(struct config *cfg)
{
	static const char *const others[] = {"poll_floor", "poll_ceiling", "poll_factor",
		"poll_decrease", "poll_jitter"};

	if (cfg->budget.run_for_ns == 0 || cfg->idle_time_ns > 0)
		return;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (was_given(cfg, others[i]))
			return;
	}
	cfg->idle_time_ns = RUN_IDLE_TIME;
}

static int check_budget(struct config *cfg, char *err, size_t err_len)
{
	if (!budget_possible(&cfg->budget))
		return refuse(err, err_len,
			"run_for: too short to hand out a message, as estimated_duration "
			"times tolerance_factor is not less");
	imply_idle_time(cfg);
	return 0;
}

static int check_times(struct config *cfg, char *err, size_t err_len)
{
	if (cfg->idle_time_ns > 0) {
		if (was_given(cfg, "poll_floor") || was_given(cfg, "poll_ceiling"))
			return refuse(err, err_len,
				"idle_time sets poll_floor and poll_ceiling: give it or them");
		cfg->poll.floor_ns = cfg->idle_time_ns;
		cfg->poll.ceiling_ns = cfg->idle_time_ns;
	}
	if (cfg->poll.floor_ns > cfg->poll.ceiling_ns)
		return refuse(err, err_len, "poll_floor is above poll_ceiling");
	if (cfg->lease.visibility_ns > cfg->lease.max_lease_ns)
		return refuse(err, err_len, "visibility is longer than max_lease");
	return 0;
}

static int check_ro(struct config *cfg, char *err, size_t err_len)
{
	if (!cfg->ro)
		return 0;
	if (cfg->role == CONFIG_ROLE_OUT)
		return refuse(
			err, err_len, "ro and role=out: nothing would be left to do");
	if (cfg->adopt)
		return refuse(
			err, err_len, "ro and adopt: a read-only mount sends nothing");
	if (was_given(cfg, "announce") && cfg->announce != CONFIG_ANNOUNCE_OFF)
		return refuse(err, err_len,
			"ro and announce: a read-only mount announces nothing");
	/* The announcer creates and unlinks: EROFS. */
	cfg->announce = CONFIG_ANNOUNCE_OFF;
	return 0;
}

int config_check(struct config *cfg, char *err, size_t err_len)
{
	int rc = check_budget(cfg, err, err_len);

	if (rc == 0)
		rc = check_times(cfg, err, err_len);
	if (rc == 0)
		rc = check_ro(cfg, err, err_len);
	if (rc == 0)
		rc = check_names(cfg, err, err_len);
	return rc;
}

/* While mounted the later one of idle_time and poll_floor or poll_ceiling wins. */
static void settle_idle_time(struct config *cfg, const struct opt *o)
{
	if (o->offset == AT(idle_time_ns)) {
		forget_given(cfg, "poll_floor");
		forget_given(cfg, "poll_ceiling");
	} else if (o->offset == AT(poll.floor_ns) || o->offset == AT(poll.ceiling_ns)) {
		cfg->idle_time_ns = 0;
	}
	cfg->given |= bit(o);
}

/*
 * Tries the change on a copy, so that a refusal changes nothing. The copy
 * shares every string with the original but the one that is being set.
 */
static int try_set(struct config *cfg, const struct opt *o, const char *value, char *err,
	size_t err_len)
{
	struct config next = *cfg;
	char **mine = (char **)(void *)((char *)cfg + o->offset);
	char **its = (char **)(void *)((char *)&next + o->offset);
	int rc;

	if (o->kind == OPT_STRING)
		*its = NULL;
	rc = opt_parse(o, &next, value, err, err_len);
	if (rc == 0) {
		settle_idle_time(&next, o);
		rc = config_check(&next, err, err_len);
	}
	if (o->kind == OPT_STRING)
		free(rc == 0 ? *mine : *its);
	if (rc == 0)
		*cfg = next;
	return rc;
}

int config_set(struct config *cfg, const char *assignment, char *err, size_t err_len)
{
	const struct opt *o;
	const char *value;
	int rc = find(assignment, &o, &value, err, err_len);

	if (rc < 0)
		return rc;
	if (!o->live) {
		snprintf(err, err_len, "%s: cannot be changed while mounted", o->name);
		return -EINVAL;
	}
	return try_set(cfg, o, value, err, err_len);
}
