/* SPDX-License-Identifier: MIT */
/* Where the state of a far queue is kept on this machine. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/log.h"
#include "relay.h"

/* FNV-1a, 64 bits: its authors' constants. */
static uint64_t hash(const char *s)
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * UINT64_C(1099511628211);
	return h;
}

/* Readable, and distinct by the hash: "acct.queue.core.windows.net_jobs-9f...". */
void relay_state_name(const char *source, char *out, size_t len)
{
	const char *rest = strstr(source, "://");
	char readable[101];
	size_t n = 0;

	for (rest = rest ? rest + 3 : source; *rest && n < sizeof(readable) - 1; rest++) {
		bool plain = isalnum((unsigned char)*rest) || *rest == '-' ||
			     (*rest == '.' && n > 0);

		readable[n++] = plain ? *rest : '_';
	}
	readable[n] = '\0';
	snprintf(out, len, "%s-%016llx", readable, (unsigned long long)hash(source));
}

static int make_dirs(char *path)
{
	for (char *p = path + 1;; p++) {
		char c = *p;

		if (c && c != '/')
			continue;
		*p = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return -errno;
		*p = c;
		if (!c)
			return 0;
	}
}

static int join(char *out, size_t len, const char *a, const char *b)
{
	int n = snprintf(out, len, "%s%s", a, b);

	return n < 0 || (size_t)n >= len ? -ENAMETOOLONG : 0;
}

/* The place where such things belong; -ENOENT: none is known. */
static int usual_dir(char *out, size_t len)
{
	const char *dir = getenv("STATE_DIRECTORY");

	if (dir && *dir)
		return join(out, len, dir, "");
	if (geteuid() == 0)
		return join(out, len, "/var/lib/spoolfs", "");
	dir = getenv("XDG_STATE_HOME");
	if (dir && *dir == '/')
		return join(out, len, dir, "/spoolfs");
	dir = getenv("HOME");
	if (dir && *dir == '/' && dir[1])
		return join(out, len, dir, "/.local/state/spoolfs");
	return -ENOENT;
}

/* Ours, and closed to others: /tmp is everybody's. */
static int check_private(const char *dir)
{
	struct stat st;

	if (lstat(dir, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077)
		return -EACCES;
	return access(dir, W_OK) < 0 ? -errno : 0;
}

static int usable(char *dir)
{
	int r = make_dirs(dir);

	if (r == 0 && access(dir, W_OK) < 0)
		r = -errno;
	return r;
}

static int choose_dir(const char *given, char *dir, size_t len, char *err, size_t err_len)
{
	int r = given ? join(dir, len, given, "") : usual_dir(dir, len);

	if (r == 0)
		r = usable(dir);
	if (r < 0 && given) {
		snprintf(err, err_len, "state=%s: %s", given, strerror(-r));
		return r;
	}
	if (r == 0)
		return 0;
	snprintf(dir, len, "/tmp/spoolfs-state-%u", (unsigned)geteuid());
	r = make_dirs(dir);
	if (r == 0)
		r = check_private(dir);
	if (r < 0)
		snprintf(err, err_len, "no place for state (%s): give state=DIR",
			strerror(-r));
	else
		log_warn("relay", "state is kept in %s: give state=DIR so that it lasts",
			dir);
	return r;
}

/* Of the closed set. */
static int known_error(int err)
{
	if (err == -EACCES || err == -EPERM || err == -EROFS)
		return -EACCES;
	return err == -ENOSPC || err == -ENOMEM ? err : -EINVAL;
}

int relay_state_path(const char *given, const char *source, char *out, size_t len,
	char *err, size_t err_len)
{
	char dir[PATH_MAX], name[160];
	int r = choose_dir(given, dir, sizeof(dir), err, err_len);
	int n;

	if (r < 0)
		return known_error(r);
	relay_state_name(source, name, sizeof(name));
	n = snprintf(out, len, "%s/%s.db", dir, name);
	if (n >= 0 && (size_t)n < len)
		return 0;
	snprintf(err, err_len, "the state directory's path is too long");
	return -EINVAL;
}

int relay_state_check(const char *path, char *err, size_t err_len)
{
	const char *wrong = NULL;
	struct stat st;

	if (lstat(path, &st) < 0)
		return 0; /* there is none, or opening it will tell */
	if (!S_ISREG(st.st_mode))
		wrong = "is no regular file";
	else if (st.st_uid != geteuid())
		wrong = "belongs to another user";
	else if (st.st_mode & (S_IWGRP | S_IWOTH))
		wrong = "can be written to by others";
	if (!wrong)
		return 0;
	snprintf(err, err_len, "the state %s %s", path, wrong);
	return -EACCES;
}
