/* SPDX-License-Identifier: MIT */
/* The command line of spoolfs run. */
#ifndef SPOOLFS_FS_RUN_ARGS_H
#define SPOOLFS_FS_RUN_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"

#define RUN_PARALLEL_MAX 1024

struct run_args {
	struct config cfg; /* source and options; no mountpoint */
	unsigned parallel; /* -P */
	bool verbose, drain, help;
	int64_t grace_ns;
	char **command;  /* COMMAND ARG... NULL, within argv */
	char *path;      /* of COMMAND, found in PATH */
	bool wants_file; /* "{}" stands in an ARG */
};

/*
 * spoolfs run [-o OPT,...] [-P N] [-v] [--drain] [--grace T] SOURCE -- COMMAND
 * [ARG...]; ARGV[0] is "run". 0, -ENOMEM, or -EINVAL with a line in ERR. To be
 * undone also after a failure.
 */
int run_args_parse(struct run_args *a, int argc, char **argv, char *err, size_t err_len);
void run_args_fini(struct run_args *a);
void run_args_help(FILE *out);

#endif
