/* SPDX-License-Identifier: MIT */
/*
 * The announcer's keeper: starts spoolfs-announcer, tells it what to perform
 * through the mount so that the kernel raises inotify events, and restarts it
 * when it ends. Never waits for it; without it everything else works on.
 */
#ifndef SPOOLFS_FS_ANNOUNCE_H
#define SPOOLFS_FS_ANNOUNCE_H

#include "entry.h"

struct announce;

/* Starts nothing yet. NULL when out of memory. */
struct announce *announce_create_keeper(struct fs *fs);
/* Takes NULL. Ends the announcer (it ends itself at the end of its pipe). */
void announce_destroy(struct announce *a);
/* The mount answers: starts the program, unless announce=off. */
void announce_start(struct announce *a);
/* A child of the daemon ended. */
void announce_reap(struct announce *a);

/* Has NAME created; false when nobody will: list it at once. */
bool announce_create(struct announce *a, const char *name);
/* Has EN, which has left, unlinked: until then its name resolves for the
 * announcer alone. */
void announce_delete(struct announce *a, struct entry *en);
/* Has NAME opened for writing and closed. */
void announce_touch(struct announce *a, const char *name);

bool announce_is(const struct announce *a, pid_t tid);
/* "up", "down" or "off". */
const char *announce_state(const struct announce *a);

/* The announcer's own calls. */
struct entry *announce_departing(struct announce *a, const char *name);
void announce_departed(struct announce *a, const char *name);

#endif
