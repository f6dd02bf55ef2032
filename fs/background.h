/* SPDX-License-Identifier: MIT */
/* Going to the background, once the mount answers. */
#ifndef SPOOLFS_FS_BACKGROUND_H
#define SPOOLFS_FS_BACKGROUND_H

#include <stdbool.h>

/*
 * Forks; the parent stays until the child says it is ready or ends, and exits
 * with 0 or the child's exit code: it does not return from here. Must come
 * before any thread. Exits when there is no process to be had.
 */
void background_start(void);
/* The child is ready: tells the user where .control is, lets the parent go,
 * and logs to syslog from now on (unless FOREGROUND). Does so once. */
void background_ready(bool foreground, const char *mountpoint);

#endif
