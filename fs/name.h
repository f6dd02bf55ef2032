/* SPDX-License-Identifier: MIT */
/*
 * How things in the mount are called. Pure.
 *
 * A message is TIME-ID[-GIVEN]: UTC enqueue time to the microsecond, the
 * backend's id, and the name its writer gave. IDs and given names come from
 * outside and may hold anything, so of both
 *   - '/', control characters (also DEL and U+0080..U+009F) and bytes that are
 *     no valid UTF-8 become %XX, and so does a '%' that two hexadecimal digits
 *     follow, which makes the encoding reversible;
 *   - what is too long is shortened, with a '~' where something is missing: an
 *     id keeps its beginning and gets a hash, a given name keeps both ends, and
 *     so its extension. No character and no %XX is cut in two.
 * In ids '-' and '~' become %XX as well, so that distinct ids make distinct
 * names and GIVEN can be told from ID, but for a UUID: that stays as it is (and
 * an id of eight hexadecimal digits, how a UUID begins, has its first encoded).
 */
#ifndef SPOOLFS_FS_NAME_H
#define SPOOLFS_FS_NAME_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Writes the name of a message, always NUL-terminated and of at most NAME_MAX
 * bytes. ENQUEUED_NS is wall clock. GIVEN may be NULL or empty; SUFFIX (may be
 * NULL) is appended then. The same arguments always give the same name.
 */
void name_format(char out[NAME_MAX + 1], int64_t enqueued_ns, const char *id,
	const char *given, const char *suffix);

/* Whether NAME has the shape TIME-ID[-GIVEN]. Such a name cannot be created. */
bool name_is_message(const char *name);
/* The GIVEN part of a message's name, still encoded and so fit for a file name
 * (but it may begin with a dot), within NAME. NULL: it has none, or is none. */
const char *name_given(const char *name);

/* The entries of the top directory that start with a dot. */
enum name_reserved {
	NAME_NONE, /* not one of them */
	NAME_CONTROL,
	NAME_STATUS_JSON,
	NAME_METRICS,
	NAME_NEXT,
	NAME_INFLIGHT,
	NAME_PEEK,
	NAME_DEAD,
	NAME_OUTBOX,
	NAME_DRAFTS,
	NAME_SCHEDULED,
	NAME_RESERVED_END, /* for loops over all: NAME_NONE + 1 .. END - 1 */
};

enum name_reserved name_reserved(const char *name);
/* ".control" for NAME_CONTROL; NULL for NAME_NONE and NAME_RESERVED_END. */
const char *name_reserved_text(enum name_reserved r);
/* Whether it is a directory. */
bool name_reserved_is_dir(enum name_reserved r);

/* What names are drafts: globs separated by colons, each for a whole name;
 * '*' matches a leading dot too. */
struct name_patterns;

#define NAME_DRAFTS_DEFAULT ".*:*.tmp:tmp.*:*.part:*.filepart:*.swp:*~"

/* Copies GLOBS; empty ones are skipped. NULL and errno ENOMEM. */
struct name_patterns *name_patterns_create(const char *globs);
void name_patterns_destroy(struct name_patterns *p); /* takes NULL */
bool name_patterns_match(const struct name_patterns *p, const char *name);

#endif
