/* SPDX-License-Identifier: MIT */
#include "backend/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/test.h"

static int saved_stderr;
static int pipe_fds[2];

/* From here on standard error goes into a pipe. */
static void capture(void)
{
	CHECK_INT(pipe(pipe_fds), 0);
	saved_stderr = dup(STDERR_FILENO);
	CHECK(saved_stderr >= 0);
	CHECK(dup2(pipe_fds[1], STDERR_FILENO) >= 0);
	close(pipe_fds[1]);
}

/* What was written since, NUL-terminated. */
static const char *captured(void)
{
	static char text[8192];
	ssize_t n;

	CHECK(dup2(saved_stderr, STDERR_FILENO) >= 0);
	close(saved_stderr);
	n = read(pipe_fds[0], text, sizeof(text) - 1);
	CHECK(n >= 0);
	text[n] = '\0';
	close(pipe_fds[0]);
	return text;
}

TEST(line_has_level_module_and_text)
{
	capture();
	log_warn("lease", "lost id=%d", 17);
	log_error("loop", "gone");
	log_info("main", "mounted");
	CHECK_STR(captured(),
		"warning lease: lost id=17\nerror loop: gone\ninfo main: mounted\n");
}

TEST(a_name_cannot_forge_a_line)
{
	capture();
	log_info("name", "%s", "a\nerror main: b\033[1m");
	CHECK_STR(captured(), "info name: a?error main: b?[1m\n");
}

TEST(long_line_is_cut_and_still_one_line)
{
	char word[3000];
	const char *text;

	memset(word, 'x', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	capture();
	log_info("m", "%s", word);
	log_info(word, "%s", "y");
	text = captured();
	CHECK(strlen(text) < 2100);
	CHECK_INT(text[strlen(text) - 1], '\n');
	CHECK(strchr(text, '\n') < strrchr(text, '\n'));
	CHECK(strchr(strchr(text, '\n') + 1, '\n') == strrchr(text, '\n'));
}

TEST(debug_is_off_until_named)
{
	CHECK(!log_debug_on("lease"));
	CHECK_INT(log_set_debug("lease,http"), 0);
	CHECK(log_debug_on("lease"));
	CHECK(log_debug_on("http"));
	CHECK(!log_debug_on("leas"));
	CHECK(!log_debug_on("leases"));
	CHECK(!log_debug_on("loop"));
	CHECK_INT(log_set_debug("all"), 0);
	CHECK(log_debug_on("loop"));
	CHECK_INT(log_set_debug(""), 0);
	CHECK(!log_debug_on("loop"));
	CHECK_INT(log_set_debug("x"), 0);
	CHECK_INT(log_set_debug(NULL), 0);
	CHECK(!log_debug_on("x"));
}

TEST(debug_lines_come_for_named_modules_only)
{
	CHECK_INT(log_set_debug("lease"), 0);
	capture();
	log_debug("lease", "renewed");
	log_debug("http", "sent");
	CHECK_STR(captured(), "debug lease: renewed\n");
	CHECK_INT(log_set_debug(NULL), 0);
}

TEST(errno_is_left_alone)
{
	capture();
	close(STDERR_FILENO);
	errno = EXDEV;
	log_info("m", "nowhere");
	CHECK_INT(errno, EXDEV);
	captured();
}
