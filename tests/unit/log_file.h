/* SPDX-License-Identifier: MIT */
/* The log, at its most talkative, in a file: to be looked at. */
#ifndef SPOOLFS_TESTS_UNIT_LOG_FILE_H
#define SPOOLFS_TESTS_UNIT_LOG_FILE_H

#include <fcntl.h>
#include <unistd.h>

#include "backend/base/log.h"
#include "tests/test.h"

struct log_file {
	int fd, stderr_fd;
};

static inline void log_file_start(struct log_file *f)
{
	f->fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	f->stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	CHECK(f->fd >= 0 && f->stderr_fd >= 0);
	CHECK(dup2(f->fd, STDERR_FILENO) >= 0);
	CHECK_INT(log_set_debug("all"), 0);
}

/* All that was said so far. Gone with the next call. */
static inline const char *log_file_text(const struct log_file *f)
{
	static char text[65536];
	ssize_t n = pread(f->fd, text, sizeof(text) - 1, 0);

	CHECK(n >= 0 && n < (ssize_t)sizeof(text) - 1);
	text[n] = '\0';
	return text;
}

static inline unsigned log_file_count(const struct log_file *f, const char *what)
{
	unsigned n = 0;

	for (const char *at = log_file_text(f); (at = strstr(at, what)); at++)
		n++;
	return n;
}

static inline void log_file_stop(struct log_file *f)
{
	CHECK(dup2(f->stderr_fd, STDERR_FILENO) >= 0);
	close(f->stderr_fd);
	close(f->fd);
	CHECK_INT(log_set_debug(NULL), 0);
}

#endif
