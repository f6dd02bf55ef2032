/* SPDX-License-Identifier: MIT */
/*
 * The log: standard error, one line per event, `level module: text key=value`.
 * Never give it a secret, a receipt or a message body.
 */
#ifndef SPOOLFS_BASE_LOG_H
#define SPOOLFS_BASE_LOG_H

#include <stdbool.h>

/* Debug lines are written for the modules named in LIST ("lease,http"),
 * for all when it is "all", for none when it is NULL or empty. Copies LIST.
 * 0 or -ENOMEM. */
int log_set_debug(const char *list);
bool log_debug_on(const char *module);
/* From now on lines go to syslog(3) too (daemon, identity "spoolfs"). */
void log_to_syslog(void);

void log_error(const char *module, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void log_warn(const char *module, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void log_info(const char *module, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Formats only when log_debug_on(module). */
void log_debug(const char *module, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
