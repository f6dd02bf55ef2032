/* SPDX-License-Identifier: MIT */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#define LOG_LINE_MAX 1024

static char *debug_list;
static bool to_syslog;

int log_set_debug(const char *list)
{
	char *copy = NULL;

	if (list) {
		copy = strdup(list);
		if (!copy)
			return -ENOMEM;
	}
	free(debug_list);
	debug_list = copy;
	return 0;
}

/* Whether the N bytes at ITEM say WORD. */
static bool is_word(const char *item, size_t n, const char *word)
{
	return strlen(word) == n && memcmp(item, word, n) == 0;
}

bool log_debug_on(const char *module)
{
	const char *item = debug_list;

	while (item) {
		size_t n = strcspn(item, ",");

		if (is_word(item, n, "all") || is_word(item, n, module))
			return true;
		item = item[n] ? item + n + 1 : NULL;
	}
	return false;
}

void log_to_syslog(void)
{
	openlog("spoolfs", LOG_PID, LOG_DAEMON);
	to_syslog = true;
}

/* A name that somebody gave a file must not be able to forge a second line. */
static void clean(char *s)
{
	for (; *s; s++) {
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			*s = '?';
	}
}

static void emit(int priority, const char *level, const char *module, const char *fmt,
	va_list ap) __attribute__((format(printf, 4, 0)));

/*
 * The line is made whole and written by one write(2), so that lines of several
 * threads and processes on one terminal or file do not mix. A longer one is cut.
 */
static void emit(
	int priority, const char *level, const char *module, const char *fmt, va_list ap)
{
	int saved_errno = errno;
	char line[LOG_LINE_MAX + 1];
	int head = snprintf(line, LOG_LINE_MAX, "%s %s: ", level, module);
	size_t n = head < 0 ? 0 : (size_t)head;

	if (n >= LOG_LINE_MAX)
		n = LOG_LINE_MAX - 1;
	(void)vsnprintf(line + n, LOG_LINE_MAX - n, fmt, ap);
	clean(line);
	if (to_syslog)
		syslog(priority, "%s", line);
	n = strlen(line);
	line[n++] = '\n';
	/* When it fails there is nowhere to complain to. */
	(void)!write(STDERR_FILENO, line, n);
	errno = saved_errno;
}

void log_error(const char *module, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	emit(LOG_ERR, "error", module, fmt, ap);
	va_end(ap);
}

void log_warn(const char *module, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	emit(LOG_WARNING, "warning", module, fmt, ap);
	va_end(ap);
}

void log_info(const char *module, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	emit(LOG_INFO, "info", module, fmt, ap);
	va_end(ap);
}

void log_debug(const char *module, const char *fmt, ...)
{
	va_list ap;

	if (!log_debug_on(module))
		return;
	va_start(ap, fmt);
	emit(LOG_DEBUG, "debug", module, fmt, ap);
	va_end(ap);
}
