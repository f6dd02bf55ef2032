/* SPDX-License-Identifier: MIT */
#include "fs/control.h"

#include "backend/engine/histogram.h"
#include "tests/test.h"

/* What .control says of a backend that has said LAST_ERROR. */
static void render(const char *last_error, struct buf *out)
{
	struct histogram h = {0};
	struct control_view v = {.driver = "sqlite", .announcer = "up"};
	static char source[] = "/var/spool/a\nb.db";
	struct config cfg;

	CHECK_INT(config_init(&cfg), 0);
	v.cfg = &cfg;
	cfg.source = source;
	v.stats.handling = &h;
	v.stats.last_error = last_error;
	CHECK_INT(control_render(&v, out), 0);
	cfg.source = NULL;
	config_fini(&cfg);
}

TEST(a_text_cannot_forge_a_second_line)
{
	struct buf out = {0};

	render("no\nstate=polling\r\x1b[2J", &out);
	CHECK(strstr(out.p, "\nsource=/var/spool/a?b.db\n"));
	CHECK(strstr(out.p, "\nlast_error=no?state=polling??[2J\n"));
	buf_fini(&out);
}

TEST(letters_of_any_language_stay)
{
	struct buf out = {0};

	render("geht nicht: \xc3\xa4\xc3\xb6\xc3\xbc", &out);
	CHECK(strstr(out.p, "\nlast_error=geht nicht: \xc3\xa4\xc3\xb6\xc3\xbc\n"));
	buf_fini(&out);
}
