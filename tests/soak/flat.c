// SPDX-License-Identifier: MIT
/*
 * Preloaded into stress-ng: its directory tmp-stress-ng-NAME-PID-INSTANCE is not
 * made, and what it does to files in there it does to those of the directory
 * above. A spool directory has no directories, but all else it can be stressed
 * with.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#define MARK "/tmp-stress-ng-"

struct flat {
	char path[PATH_MAX];
	int is_dir; /* it was the directory itself */
};

static const char *flat(const char *path, struct flat *f)
{
	const char *mark = path ? strstr(path, MARK) : NULL;
	const char *rest = mark ? strchr(mark + 1, '/') : NULL;

	f->is_dir = mark && (!rest || !rest[1]);
	if (!mark)
		return path;
	snprintf(f->path, sizeof(f->path), "%.*s%s", (int)(mark - path), path,
		rest && rest[1] ? rest : "");
	return f->path;
}

#define NEXT(name) ((typeof(&name))dlsym(RTLD_NEXT, #name))

int mkdir(const char *path, mode_t mode)
{
	struct flat f;

	path = flat(path, &f);
	return f.is_dir ? 0 : NEXT(mkdir)(path, mode);
}

int rmdir(const char *path)
{
	struct flat f;

	path = flat(path, &f);
	return f.is_dir ? 0 : NEXT(rmdir)(path);
}

static mode_t mode_of(int flags, va_list args)
{
	return (flags & (O_CREAT | __O_TMPFILE)) ? (mode_t)va_arg(args, int) : 0;
}

#define OPENER(name)                                            \
	int name(const char *path, int flags, ...)              \
	{                                                       \
		struct flat f;                                  \
		va_list args;                                   \
		mode_t mode;                                    \
                                                                \
		va_start(args, flags);                          \
		mode = mode_of(flags, args);                    \
		va_end(args);                                   \
		return NEXT(name)(flat(path, &f), flags, mode); \
	}
OPENER(open)
OPENER(open64)

#define OPENER_AT(name)                                              \
	int name(int dir, const char *path, int flags, ...)          \
	{                                                            \
		struct flat f;                                       \
		va_list args;                                        \
		mode_t mode;                                         \
                                                                     \
		va_start(args, flags);                               \
		mode = mode_of(flags, args);                         \
		va_end(args);                                        \
		return NEXT(name)(dir, flat(path, &f), flags, mode); \
	}
OPENER_AT(openat)
OPENER_AT(openat64)

/* A call whose first argument is a path, and that is all there is to it. */
#define BY_PATH(type, name, params, ...)                \
	type name params                                \
	{                                               \
		struct flat f;                          \
                                                        \
		path = flat(path, &f);                  \
		return NEXT(name)(path, ##__VA_ARGS__); \
	}
BY_PATH(int, creat, (const char *path, mode_t mode), mode)
BY_PATH(int, creat64, (const char *path, mode_t mode), mode)
BY_PATH(FILE *, fopen, (const char *path, const char *mode), mode)
BY_PATH(FILE *, fopen64, (const char *path, const char *mode), mode)
BY_PATH(int, statvfs, (const char *path, struct statvfs *st), st)
BY_PATH(int, unlink, (const char *path))
BY_PATH(int, access, (const char *path, int mode), mode)
BY_PATH(int, chmod, (const char *path, mode_t mode), mode)
BY_PATH(int, truncate, (const char *path, off_t n), n)
BY_PATH(int, stat, (const char *path, struct stat *st), st)
BY_PATH(int, lstat, (const char *path, struct stat *st), st)
BY_PATH(int, utime, (const char *path, const struct utimbuf *t), t)
BY_PATH(int, utimes, (const char *path, const struct timeval t[2]), t)
BY_PATH(int, chdir, (const char *path))
BY_PATH(int, setxattr, (const char *path, const char *n, const void *v, size_t s, int x),
	n, v, s, x)
BY_PATH(ssize_t, getxattr, (const char *path, const char *n, void *v, size_t s), n, v, s)
BY_PATH(ssize_t, listxattr, (const char *path, char *v, size_t s), v, s)

DIR *opendir(const char *path)
{
	struct flat f;

	path = flat(path, &f);
	return NEXT(opendir)(path);
}

int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	struct flat f;

	path = flat(path, &f);
	return NEXT(inotify_add_watch)(fd, path, mask);
}

/* Two paths. */
#define BY_TWO(name)                               \
	int name(const char *from, const char *to) \
	{                                          \
		struct flat f, g;                  \
                                                   \
		from = flat(from, &f);             \
		to = flat(to, &g);                 \
		return NEXT(name)(from, to);       \
	}
BY_TWO(rename)
BY_TWO(link)
BY_TWO(symlink)
