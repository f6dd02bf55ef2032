/* SPDX-License-Identifier: MIT */
/*
 * What the user asked for: the command line, the option table, `set`.
 * Pure: reads no file and no environment, prints only where it is told to.
 *
 *	struct config cfg;
 *	char err[CONFIG_ERR_LEN];
 *
 *	if (config_init(&cfg) < 0)             every default
 *	if (config_args(&cfg, argc, argv, err, sizeof(err)) < 0)     "spoolfs: ERR"
 *	switch (cfg.action)                    help, version, or mount
 *	...
 *	config_fini(&cfg);
 *
 * One table has every option: parsing, `set`, help, .status.json and the check
 * of the man page read it. FUSE's and mount(8)'s own words are beside it.
 */
#ifndef SPOOLFS_FS_CONFIG_H
#define SPOOLFS_FS_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "../backend/engine/backoff.h"
#include "../backend/engine/budget.h"
#include "../backend/engine/lease.h"
#include "opt.h"

enum config_action {
	CONFIG_MOUNT,
	CONFIG_HELP,    /* -h: config_help(stdout), exit 0; nothing else is set */
	CONFIG_VERSION, /* -V: likewise */
};

enum config_announce {
	CONFIG_ANNOUNCE_CREATE, /* create and close: IN_CREATE, IN_CLOSE_WRITE */
	CONFIG_ANNOUNCE_RENAME, /* rename from .announce/: IN_MOVED_TO */
	CONFIG_ANNOUNCE_OFF,    /* list at once, raise nothing, no announcer */
};

enum config_claims {
	CONFIG_CLAIMS_OWNER,
	CONFIG_CLAIMS_SHARED, /* anyone may delete what anyone has claimed */
};

enum config_rm_unread { CONFIG_UNREAD_BURY, CONFIG_UNREAD_DELETE };

enum config_role {
	CONFIG_ROLE_BOTH,
	CONFIG_ROLE_IN,  /* creating is EACCES */
	CONFIG_ROLE_OUT, /* never receives */
};

enum config_encoding { CONFIG_ENCODING_TEXT, CONFIG_ENCODING_BASE64 };

/* Strings are NULL when empty. Times are ns, sizes bytes. */
struct config {
	enum config_action action;
	bool foreground;  /* -f, or -d */
	char *source;     /* SOURCE and MOUNTPOINT as given: relative ones are */
	char *mountpoint; /* meant from where the command was started */
	/*
	 * For libfuse: `-o` and this, escaped as it wants it. Has fsname,
	 * subtype and default_permissions always, then ro, allow_other and
	 * what of mount's own words is FUSE's business (nosuid, noexec, ...).
	 */
	char *fuse_opts;

	struct lease_policy lease;   /* visibility ... max_attempts */
	struct backoff_config poll;  /* poll_*, after idle_time was applied */
	int64_t idle_time_ns;        /* 0: not given. Else floor and ceiling are it */
	struct budget_config budget; /* run_for (0: not bounded) and its margin */
	int64_t idle_timeout_ns;     /* 0: never */
	unsigned window;             /* messages; 0: as many as suit the driver */
	uint64_t window_bytes;

	enum config_announce announce;
	enum config_claims claims;
	enum config_rm_unread rm_unread;
	enum config_role role;
	char *drafts; /* globs with ':' between; NULL: no name is a draft's */
	char *done;   /* name of a visible directory, or NULL */
	char *failed;
	char *suffix;
	bool show_control, adopt;
	bool create; /* make the queue at the service */
	char *state; /* NULL: the daemon's choice */
	char *credentials, *ca_file;
	enum config_encoding encoding;
	char *debug; /* "lease,http", "all", or NULL; for log_set_debug() */

	unsigned uid, gid; /* of everything in the mount; the mounter's own */
	unsigned umask;    /* taken off 0666 and 0777: the default leaves 0600 and 0700 */
	bool allow_other;
	bool ro; /* implies announce=off */

	uint64_t given; /* private: bit i: option i was given, or set later */
};

#define CONFIG_ERR_LEN 256

/*
 * All below return 0, -ENOMEM, or -EINVAL with one line in ERR that names the
 * option, without a prefix and a newline.
 */

/* Every default. ERR-less: 0 or -ENOMEM. Must be undone also after a failure. */
int config_init(struct config *cfg);
void config_fini(struct config *cfg); /* takes one that is all zeros */

/*
 * spoolfs [-f] [-d] [-o OPT,...] SOURCE MOUNTPOINT, and how mount.fuse3 calls it:
 * options behind, -n -s -v ignored. -d is -f and debug=all. Checks everything
 * and makes fuse_opts. Moves getopt's state: not for two threads.
 */
int config_args(struct config *cfg, int argc, char **argv, char *err, size_t err_len);

/*
 * "opt,opt=value,...", as after -o. `\,` is a comma and `\\` a backslash in a
 * value. Checks each option by itself only: config_check() looks at the whole.
 */
int config_options(struct config *cfg, const char *list, char *err, size_t err_len);

/* One of the table: "opt" or "opt=value". Likewise. */
int config_give(struct config *cfg, const char *text, char *err, size_t err_len);

/* Refuses what contradicts itself, and applies idle_time, which run_for implies
 * (5 s) where no poll option was given. Not needed after config_args() and
 * config_set(). */
int config_check(struct config *cfg, char *err, size_t err_len);

/*
 * "OPTION=VALUE" of the `set` command, while mounted: only live options, and
 * only what does not contradict the others; else nothing is changed. idle_time
 * overrides poll_floor and poll_ceiling, either of these ends idle_time. The
 * caller hands the new lease, poll, window and debug to those who copied them.
 */
int config_set(struct config *cfg, const char *assignment, char *err, size_t err_len);

bool config_given(const struct config *cfg, const char *name); /* of the table */
/* The table, for those who go through it (*n entries); opt_format() on &cfg
 * gives an option's current value. */
const struct opt *config_table(size_t *n);

/* What --help prints: usage and the table. */
void config_help(FILE *out);

#endif
