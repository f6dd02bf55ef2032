/* SPDX-License-Identifier: MIT */
#include "config_args.h"

TEST(defaults_are_those_of_the_manual)
{
	struct config cfg;

	CHECK_INT(config_init(&cfg), 0);
	CHECK_INT(cfg.lease.visibility_ns, 30 * SECOND);
	CHECK_INT(cfg.lease.max_lease_ns, 12 * HOUR);
	CHECK_INT(cfg.lease.inherit_ns, 15 * MINUTE);
	CHECK_INT(cfg.lease.max_attempts, 5);
	CHECK_INT(cfg.lease.retry_delay_ns, 30 * SECOND);
	CHECK_INT(cfg.window, 0);
	CHECK_INT(cfg.window_bytes, 64 << 20);
	CHECK_INT(cfg.poll.floor_ns, SECOND);
	CHECK_INT(cfg.poll.ceiling_ns, 60 * SECOND);
	CHECK(cfg.poll.factor >= 2 && cfg.poll.factor <= 2);
	CHECK_INT(cfg.poll.decrease, BACKOFF_RESET);
	CHECK_INT(cfg.poll.jitter_percent, 20);
	CHECK_INT(cfg.idle_time_ns, 0);
	CHECK_INT(cfg.announce, CONFIG_ANNOUNCE_CREATE);
	CHECK_INT(cfg.claims, CONFIG_CLAIMS_OWNER);
	CHECK_INT(cfg.rm_unread, CONFIG_UNREAD_BURY);
	CHECK_INT(cfg.role, CONFIG_ROLE_BOTH);
	CHECK_STR(cfg.drafts, ".*:*.tmp:tmp.*:*.part:*.filepart:*.swp:*~");
	CHECK(!cfg.done && !cfg.failed && !cfg.suffix && !cfg.state && !cfg.debug);
	CHECK(!cfg.show_control && !cfg.adopt && cfg.create);
	CHECK(!cfg.allow_other && !cfg.ro && !cfg.foreground);
	CHECK_INT(cfg.uid, getuid());
	CHECK_INT(cfg.gid, getgid());
	CHECK_INT(cfg.umask, 077);
	config_fini(&cfg);
}

TEST(units_and_fractions)
{
	struct config cfg;

	check_taken(&cfg, "visibility=0.5s,inherit=90,retry_delay=1.5h,max_lease=2d,"
			  "poll_floor=250ms,poll_ceiling=2m,window_bytes=1.5M,"
			  "poll_factor=1.25,umask=027,uid=12");
	CHECK_INT(cfg.lease.visibility_ns, SECOND / 2);
	CHECK_INT(cfg.lease.inherit_ns, 90 * SECOND);
	CHECK_INT(cfg.lease.retry_delay_ns, 90 * MINUTE);
	CHECK_INT(cfg.lease.max_lease_ns, 48 * HOUR);
	CHECK_INT(cfg.poll.floor_ns, SECOND / 4);
	CHECK_INT(cfg.poll.ceiling_ns, 2 * MINUTE);
	CHECK_INT(cfg.window_bytes, 3 << 19);
	CHECK_INT(cfg.umask, 027);
	CHECK_INT(cfg.uid, 12);
	check_shown(&cfg, "visibility", "500ms");
	check_shown(&cfg, "inherit", "90s");
	check_shown(&cfg, "retry_delay", "90m");
	check_shown(&cfg, "max_lease", "2d");
	check_shown(&cfg, "window_bytes", "1536K");
	check_shown(&cfg, "poll_factor", "1.25");
	check_shown(&cfg, "umask", "027");
	check_shown(&cfg, "idle_time", "");
	config_fini(&cfg);
}

TEST(words_set_their_enum)
{
	struct config cfg;

	check_taken(&cfg, "announce=rename,claims=shared,rm_unread=delete,role=out,"
			  "poll_decrease=halve");
	CHECK_INT(cfg.announce, CONFIG_ANNOUNCE_RENAME);
	CHECK_INT(cfg.claims, CONFIG_CLAIMS_SHARED);
	CHECK_INT(cfg.rm_unread, CONFIG_UNREAD_DELETE);
	CHECK_INT(cfg.role, CONFIG_ROLE_OUT);
	CHECK_INT(cfg.poll.decrease, BACKOFF_HALVE);
	check_shown(&cfg, "role", "out");
	config_fini(&cfg);
	check_taken(&cfg, "announce=off,role=in");
	CHECK_INT(cfg.announce, CONFIG_ANNOUNCE_OFF);
	CHECK_INT(cfg.role, CONFIG_ROLE_IN);
	config_fini(&cfg);
}

TEST(flags_and_bare_names)
{
	struct config cfg;

	check_taken(&cfg, "adopt,create=no,show_control,show_control=no,debug");
	CHECK(cfg.adopt && !cfg.create && !cfg.show_control);
	CHECK_STR(cfg.debug, "all");
	config_fini(&cfg);
	check_refused("visibility", "visibility: needs a value (visibility=duration)");
	check_refused("done", "done: needs a value (done=string)");
	check_refused("adopt=1", "adopt=1: not yes or no");
}

TEST(backslash_escapes_a_comma)
{
	struct config cfg;

	check_taken(&cfg, "drafts=a\\,b:\\\\c:\\*d,done=x");
	CHECK_STR(cfg.drafts, "a,b:\\c:\\*d");
	CHECK_STR(cfg.done, "x");
	config_fini(&cfg);
}

TEST(empty_string_unsets)
{
	struct config cfg;

	check_taken(&cfg, "drafts=,done=a,done=,,suffix=.xml,");
	CHECK(cfg.drafts == NULL && cfg.done == NULL);
	CHECK_STR(cfg.suffix, ".xml");
	config_fini(&cfg);
}

TEST(unknown_options_name_the_nearest)
{
	check_refused(
		"visibilty=3", "unknown option 'visibilty', the nearest is 'visibility'");
	check_refused(
		"max-lease=1", "unknown option 'max-lease', the nearest is 'max_lease'");
	check_refused("polls_floor",
		"unknown option 'polls_floor', the nearest is 'poll_floor'");
	check_refused("nonempty",
		"nonempty: a mount point must be empty; adopt sends the "
		"files found in it");
}

TEST(malformed_values_say_why)
{
	check_refused("inherit=soon",
		"inherit=soon: not a duration (such as 500ms, 30s, 15m, 12h or 7d)");
	check_refused("max_attempts=0", "max_attempts=0: less than 1");
	check_refused("poll_jitter=101", "poll_jitter=101: more than 100");
	check_refused("visibility=8d", "visibility=8d: more than 7d");
	check_refused("window_bytes=1K", "window_bytes=1K: less than 64K");
	check_refused("umask=008", "umask=008: not an octal number (such as 077)");
	check_refused("role=inout", "role=inout: not one of both|in|out");
}

TEST(contradictions_are_refused)
{
	const char *idle = "idle_time sets poll_floor and poll_ceiling: give it or them";

	check_refused("idle_time=5s,poll_floor=1s", idle);
	check_refused("poll_ceiling=9,idle_time=5s", idle);
	check_refused("poll_floor=61s", "poll_floor is above poll_ceiling");
	check_refused("visibility=13h", "visibility is longer than max_lease");
	check_refused("ro,role=out", "ro and role=out: nothing would be left to do");
	check_refused("adopt,ro", "ro and adopt: a read-only mount sends nothing");
	check_refused("ro,announce=create",
		"ro and announce: a read-only mount announces nothing");
	check_refused("done=a,failed=a", "done and failed must differ");
	check_refused("done=a/b", "done: must be a plain name without a leading dot");
	check_refused("failed=.f", "failed: must be a plain name without a leading dot");
	check_refused(
		"failed=a\nb", "failed: must be a plain name without a leading dot");
	check_refused("suffix=/x", "suffix: must have no slash and no control character");
}

TEST(idle_time_is_floor_and_ceiling)
{
	struct config cfg;

	check_taken(&cfg, "idle_time=90s");
	CHECK_INT(cfg.poll.floor_ns, 90 * SECOND);
	CHECK_INT(cfg.poll.ceiling_ns, 90 * SECOND);
	config_fini(&cfg);
}

TEST(read_only_announces_nothing)
{
	struct config cfg;

	check_taken(&cfg, "ro");
	CHECK_INT(cfg.announce, CONFIG_ANNOUNCE_OFF);
	CHECK_STR(cfg.fuse_opts, "fsname=q.db,subtype=spoolfs,default_permissions,ro");
	config_fini(&cfg);
	check_taken(&cfg, "ro,rw");
	CHECK(!cfg.ro);
	CHECK_INT(cfg.announce, CONFIG_ANNOUNCE_CREATE);
	config_fini(&cfg);
}

TEST(words_of_mount_are_passed_or_ignored)
{
	struct config cfg;

	check_taken(&cfg,
		"rw,defaults,noauto,nofail,user,user=joe,_netdev,x-systemd.automount,"
		"X-mount.mkdir=0755,comment=hi,dev,suid,exec,relatime,noatime,"
		"nosuid,nodev,noexec,allow_other,default_permissions");
	CHECK_STR(cfg.fuse_opts, "nosuid,nodev,noexec,fsname=q.db,subtype=spoolfs,"
				 "default_permissions,allow_other");
	config_fini(&cfg);
}

TEST(positionals_before_and_behind_options)
{
	struct config cfg;

	CHECK_INT(
		ARGS(&cfg, "-f", "a,b\\", "/m", "-o", "role=in", "-nsv", "-o", "rw"), 0);
	CHECK_STR(cfg.source, "a,b\\");
	CHECK_STR(cfg.mountpoint, "/m");
	CHECK_INT(cfg.role, CONFIG_ROLE_IN);
	CHECK(cfg.foreground);
	CHECK_STR(cfg.fuse_opts, "fsname=a\\,b\\\\,subtype=spoolfs,default_permissions");
	config_fini(&cfg);
	CHECK_INT(ARGS(&cfg, "-d", "--", "-q", "m"), 0);
	CHECK_STR(cfg.source, "-q");
	CHECK(cfg.foreground);
	CHECK_STR(cfg.debug, "all");
	config_fini(&cfg);
}

TEST(help_and_version_need_nothing_else)
{
	static const struct {
		const char *word;
		enum config_action action;
	} cases[] = {{"-h", CONFIG_HELP}, {"--help", CONFIG_HELP}, {"-V", CONFIG_VERSION},
		{"--version", CONFIG_VERSION}};

	for (size_t i = 0; i < 4; i++) {
		struct config cfg;

		CHECK_INT(ARGS(&cfg, cases[i].word), 0);
		CHECK_INT(cfg.action, cases[i].action);
		config_fini(&cfg);
	}
}

static void check_args_refused(int rc, struct config *cfg, const char *line)
{
	config_fini(cfg);
	CHECK_INT(rc, -EINVAL);
	CHECK_STR(err, line);
}

TEST(wrong_command_lines_are_refused)
{
	struct config cfg;

	check_args_refused(ARGS(&cfg, "a"), &cfg, "needs a SOURCE and a MOUNTPOINT");
	check_args_refused(ARGS(&cfg, "a", "b", "c"), &cfg,
		"too many arguments: SOURCE and MOUNTPOINT are wanted");
	check_args_refused(
		ARGS(&cfg, "", "b"), &cfg, "SOURCE and MOUNTPOINT must not be empty");
	check_args_refused(ARGS(&cfg, "a", "b", "-o"), &cfg, "-o: needs options");
	check_args_refused(
		ARGS(&cfg, "-x", "a", "b"), &cfg, "unknown argument; try --help");
	check_args_refused(
		ARGS(&cfg, "--idle", "a", "b"), &cfg, "unknown argument; try --help");
}

TEST(help_has_every_option)
{
	size_t n, len;
	const struct opt *table = config_table(&n);
	char *text, word[40];
	FILE *out = open_memstream(&text, &len);

	CHECK(out != NULL);
	config_help(out);
	fclose(out);
	for (size_t i = 0; i < n; i++) {
		snprintf(word, sizeof(word), "\n  %c %s", table[i].live ? '*' : ' ',
			table[i].name);
		CHECK(strstr(text, word) != NULL);
		CHECK(strstr(text, table[i].help) != NULL);
	}
	free(text);
}

/* A value other than the default that contradicts nothing. */
static const char *other_value(const struct opt *o)
{
	switch (o->kind) {
	case OPT_DURATION:
		return "45s";
	case OPT_SIZE:
		return "1M";
	case OPT_ENUM:
		return strrchr(o->choices, '|') + 1;
	case OPT_FLAG:
		return "yes";
	case OPT_OCTAL:
		return "027";
	default:
		return "7";
	}
}

TEST(set_changes_live_options_and_refuses_the_others)
{
	size_t n;
	const struct opt *table = config_table(&n);

	for (size_t i = 0; i < n; i++) {
		struct config cfg;
		char text[64], line[CONFIG_ERR_LEN];

		check_taken(&cfg, "");
		snprintf(text, sizeof(text), "%s=%s", table[i].name,
			other_value(&table[i]));
		if (table[i].live) {
			CHECK_INT(config_set(&cfg, text, err, sizeof(err)), 0);
			check_shown(&cfg, table[i].name, other_value(&table[i]));
		} else {
			CHECK_INT(config_set(&cfg, text, err, sizeof(err)), -EINVAL);
			snprintf(line, sizeof(line),
				"%s: cannot be changed while mounted", table[i].name);
			CHECK_STR(err, line);
		}
		config_fini(&cfg);
	}
}

static void check_set_refused(struct config *cfg, const char *text, const char *line)
{
	CHECK_INT(config_set(cfg, text, err, sizeof(err)), -EINVAL);
	CHECK_STR(err, line);
}

TEST(refused_set_changes_nothing)
{
	struct config cfg;

	check_taken(&cfg, "debug=lease");
	check_set_refused(&cfg, "poll_floor=2m", "poll_floor is above poll_ceiling");
	CHECK_INT(cfg.poll.floor_ns, SECOND);
	check_set_refused(&cfg, "visibility=1d", "visibility is longer than max_lease");
	CHECK_INT(cfg.lease.visibility_ns, 30 * SECOND);
	check_set_refused(&cfg, "ro=yes", "ro: cannot be changed while mounted");
	check_set_refused(&cfg, "rw", "unknown option 'rw', the nearest is 'ro'");
	check_set_refused(
		&cfg, "visibility", "visibility: needs a value (visibility=duration)");
	check_set_refused(&cfg, "", "unknown option '', the nearest is 'ro'");
	CHECK_STR(cfg.debug, "lease");
	CHECK_INT(config_set(&cfg, "debug=http,poll", err, sizeof(err)), 0);
	CHECK_STR(cfg.debug, "http,poll");
	CHECK_INT(config_set(&cfg, "debug=", err, sizeof(err)), 0);
	CHECK(cfg.debug == NULL);
	config_fini(&cfg);
}

TEST(set_lets_the_later_of_idle_time_and_bounds_win)
{
	struct config cfg;

	check_taken(&cfg, "poll_floor=2s,poll_ceiling=20s");
	CHECK_INT(config_set(&cfg, "idle_time=5s", err, sizeof(err)), 0);
	CHECK_INT(cfg.poll.floor_ns, 5 * SECOND);
	CHECK_INT(cfg.poll.ceiling_ns, 5 * SECOND);
	CHECK_INT(config_set(&cfg, "poll_ceiling=30s", err, sizeof(err)), 0);
	CHECK_INT(cfg.poll.floor_ns, 5 * SECOND);
	CHECK_INT(cfg.poll.ceiling_ns, 30 * SECOND);
	check_shown(&cfg, "idle_time", "");
	CHECK_INT(config_set(&cfg, "visibility=40s", err, sizeof(err)), 0);
	CHECK_INT(cfg.poll.ceiling_ns, 30 * SECOND);
	config_fini(&cfg);
}

TEST(options_may_be_repeated_and_the_last_counts)
{
	struct config cfg;

	CHECK_INT(ARGS(&cfg, "-o", "done=a,window=3", "-o", "done=b", "q", "m"), 0);
	CHECK_STR(cfg.done, "b");
	CHECK_INT(cfg.window, 3);
	config_fini(&cfg);
}

TEST(fini_takes_one_that_is_all_zeros)
{
	struct config cfg = {0};

	config_fini(&cfg);
	config_fini(&cfg);
	CHECK(cfg.source == NULL);
}
