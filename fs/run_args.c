/* SPDX-License-Identifier: MIT */
#include "run_args.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

enum { WORD_DRAIN = 256, WORD_GRACE };

/* What is about a directory means nothing to a run. */
static const char *const of_mounts[] = {"inherit", "announce", "claims", "rm_unread",
	"role", "drafts", "done", "failed", "show_control", "adopt", "uid", "gid",
	"umask", "allow_other", "ro"};

static int refuse(char *err, size_t err_len, const char *line)
{
	snprintf(err, err_len, "%s", line);
	return -EINVAL;
}

static int check_options(struct run_args *a, char *err, size_t err_len)
{
	for (size_t i = 0; i < sizeof(of_mounts) / sizeof(of_mounts[0]); i++) {
		if (!config_given(&a->cfg, of_mounts[i]))
			continue;
		snprintf(err, err_len, "%s: is for a mount, spoolfs run has none",
			of_mounts[i]);
		return -EINVAL;
	}
	if (a->cfg.fuse_opts)
		return refuse(
			err, err_len, "an option is for a mount, spoolfs run has none");
	return config_check(&a->cfg, err, err_len);
}

static int take_parallel(struct run_args *a, char *err, size_t err_len)
{
	static const struct opt o = {.name = "-P",
		.kind = OPT_COUNT,
		.offset = offsetof(struct run_args, parallel),
		.min = 1,
		.max = RUN_PARALLEL_MAX};

	return opt_parse(&o, a, optarg, err, err_len);
}

static int take_grace(struct run_args *a, char *err, size_t err_len)
{
	static const struct opt o = {.name = "--grace",
		.kind = OPT_DURATION,
		.offset = offsetof(struct run_args, grace_ns),
		.min = 0,
		.max = 86400 * SECOND};

	return opt_parse(&o, a, optarg, err, err_len);
}

static int take(struct run_args *a, int letter, char *err, size_t err_len)
{
	switch (letter) {
	case 'h':
		a->help = true;
		return 0;
	case 'v':
		a->verbose = true;
		return 0;
	case WORD_DRAIN:
		a->drain = true;
		return 0;
	case WORD_GRACE:
		return take_grace(a, err, err_len);
	case 'P':
		return take_parallel(a, err, err_len);
	case 'o':
		return config_options(&a->cfg, optarg, err, err_len);
	case ':':
		return refuse(err, err_len, "an option needs a value; try run --help");
	default:
		return refuse(err, err_len, "unknown argument; try run --help");
	}
}

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* Of a program: as the shell looks for it, once and not for each message. */
static char *find_program(const char *name)
{
	const char *dirs = getenv("PATH"), *end;
	char *path;

	if (strchr(name, '/'))
		return is_program(name) ? strdup(name) : NULL;
	for (dirs = dirs ? dirs : "/usr/bin:/bin"; *dirs; dirs = *end ? end + 1 : end) {
		end = strchrnul(dirs, ':');
		if (asprintf(&path, "%.*s/%s", end > dirs ? (int)(end - dirs) : 1,
			    end > dirs ? dirs : ".", name) < 0)
			return NULL;
		if (is_program(path))
			return path;
		free(path);
	}
	return NULL;
}

static int take_command(struct run_args *a, char **argv, char *err, size_t err_len)
{
	a->command = argv;
	a->path = find_program(argv[0]);
	for (char **arg = argv + 1; *arg; arg++)
		a->wants_file |= strstr(*arg, "{}") != NULL;
	if (a->path)
		return 0;
	snprintf(err, err_len, "%s: no such program", argv[0]);
	return -EINVAL;
}

/* getopt ends at SOURCE, so that "--" behind it is still there. */
static int take_positionals(
	struct run_args *a, int argc, char **argv, char *err, size_t err_len)
{
	if (argc < 1 || argv[0][0] == '\0')
		return refuse(err, err_len, "needs a SOURCE, -- and a COMMAND");
	if (argc < 3 || strcmp(argv[1], "--") != 0)
		return refuse(err, err_len, "needs -- and a COMMAND behind the SOURCE");
	a->cfg.source = strdup(argv[0]);
	if (!a->cfg.source)
		return -ENOMEM;
	return take_command(a, argv + 2, err, err_len);
}

int run_args_parse(struct run_args *a, int argc, char **argv, char *err, size_t err_len)
{
	static const struct option words[] = {{"help", no_argument, NULL, 'h'},
		{"drain", no_argument, NULL, WORD_DRAIN},
		{"grace", required_argument, NULL, WORD_GRACE}, {NULL, 0, NULL, 0}};
	int letter, rc;

	*a = (struct run_args){.parallel = 1, .grace_ns = 10 * SECOND};
	rc = config_init(&a->cfg);
	optind = 0; /* glibc: begin anew */
	opterr = 0;
	while (rc == 0 && !a->help &&
		(letter = getopt_long(argc, argv, "+:ho:P:v", words, NULL)) != -1)
		rc = take(a, letter, err, err_len);
	if (rc < 0 || a->help)
		return rc;
	rc = check_options(a, err, err_len);
	return rc ? rc : take_positionals(a, argc - optind, argv + optind, err, err_len);
}

void run_args_fini(struct run_args *a)
{
	config_fini(&a->cfg);
	free(a->path);
}

void run_args_help(FILE *out)
{
	fputs("usage: spoolfs run [-v] [-P N] [--drain] [--grace T] [-o OPT,...]\n"
	      "                   SOURCE -- COMMAND [ARG...]\n"
	      "\n"
	      "  -P N       so many at a time (1)\n"
	      "  -v         one line for each message\n"
	      "  --drain    end when nothing is waiting\n"
	      "  --grace T  what handlers have to end, at a signal (10s)\n"
	      "  -o OPT,... options, see spoolfs --help: those of leases, polling, runs\n"
	      "  -h, --help this text\n"
	      "\n"
	      "COMMAND has the body on standard input, {} is a file with it, and\n"
	      "SPOOLFS_ID NAME GIVEN ATTEMPTS ENQUEUED SOURCE are in its environment.\n"
	      "Exit 0 deletes the message; all else gives it back.\n",
		out);
}
