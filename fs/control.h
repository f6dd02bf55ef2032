/* SPDX-License-Identifier: MIT */
/*
 * The texts of .control, .status.json and .metrics, and the commands written to
 * .control. Pure: figures in, text out. One table of keys feeds all three.
 */
#ifndef SPOOLFS_FS_CONTROL_H
#define SPOOLFS_FS_CONTROL_H

#include "../backend/base/buf.h"
#include "../backend/engine/engine.h"
#include "config.h"

/* What is told. Everything is borrowed. */
struct control_view {
	struct engine_stats stats;
	const struct config *cfg;
	const char *driver;
	const char *announcer;
};

/* All append to OUT: 0, -ENOMEM or -EFBIG. */
int control_render(const struct control_view *v, struct buf *out);      /* key=value */
int control_render_json(const struct control_view *v, struct buf *out); /* and options */
int control_render_metrics(const struct control_view *v, struct buf *out);

/* The keys in their order, for the check of the man page; ended by NULL. */
const char *control_key(size_t i);

enum control_command {
	CONTROL_POLL,
	CONTROL_PAUSE,
	CONTROL_RESUME,
	CONTROL_DRAIN,
	CONTROL_STOP,
	CONTROL_RELEASE, /* name, delay_ns (-1: the usual) */
	CONTROL_SET,     /* name is "OPTION=VALUE" */
};

struct control_line {
	enum control_command command;
	char *name; /* points into the line */
	int64_t delay_ns;
};

/*
 * Cuts LINE (without its newline; changed) into a command. 0, or -EINVAL with
 * one line in ERR. An empty line is -ENODATA.
 */
int control_parse(char *line, struct control_line *out, char *err, size_t err_len);

#endif
