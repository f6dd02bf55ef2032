/* SPDX-License-Identifier: MIT */
/* The command lines of spoolfs and spoolfs run: each field is an argument. */
#include "fuzz.h"

#include <errno.h>

#include "fs/run_args.h"

#define ARGS_MAX 32

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* What may be FUSE's business; nothing else must get through to it. */
static bool is_fuse_word(const char *word)
{
	static const char *const words[] = {"nosuid", "nodev", "noexec", "auto_unmount",
		"subtype=spoolfs", "default_permissions", "ro", "allow_other"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(word, words[i]) == 0)
			return true;
	return begins(word, "context=") || begins(word, "fscontext=") ||
	       begins(word, "defcontext=") || begins(word, "rootcontext=");
}

/* Cut as libfuse does it: a backslash takes the next character as it is. */
static void check_fuse_opts(const struct config *cfg)
{
	char *word = malloc(strlen(cfg->fuse_opts) + 1), *to = word;
	bool named = false, checked = false;

	MUST(word);
	for (const char *p = cfg->fuse_opts;; p++) {
		if (*p && *p != ',') {
			p += *p == '\\';
			*to++ = *p;
			continue;
		}
		*to = '\0';
		if (begins(word, "fsname=")) {
			MUST(!named && strcmp(word + 7, cfg->source) == 0);
			named = true;
		} else {
			MUST(is_fuse_word(word));
		}
		checked |= strcmp(word, "default_permissions") == 0;
		to = word;
		if (!*p)
			break;
	}
	MUST(named && checked);
	free(word);
}

static void mount_command(int argc, char **argv)
{
	char err[CONFIG_ERR_LEN] = "";
	struct config cfg;
	int r;

	MUST(config_init(&cfg) == 0);
	r = config_args(&cfg, argc, argv, err, sizeof(err));
	MUST(r == 0 || r == -EINVAL);
	MUST((r < 0) == fuzz_says(err, sizeof(err)));
	if (r == 0 && cfg.action == CONFIG_MOUNT) {
		MUST(cfg.source && *cfg.source && cfg.mountpoint && *cfg.mountpoint);
		check_fuse_opts(&cfg);
	}
	config_fini(&cfg);
}

static void run_command(int argc, char **argv)
{
	char err[CONFIG_ERR_LEN] = "";
	struct run_args a;
	int r = run_args_parse(&a, argc, argv, err, sizeof(err));

	MUST(r == 0 || r == -EINVAL);
	MUST((r < 0) == fuzz_says(err, sizeof(err)));
	if (r == 0 && !a.help) {
		MUST(a.parallel >= 1 && a.parallel <= RUN_PARALLEL_MAX);
		MUST(a.grace_ns >= 0 && a.path && *a.path);
		MUST(a.command > argv && a.command < argv + argc && a.command[0]);
		MUST(a.cfg.source && *a.cfg.source && !a.cfg.mountpoint);
		MUST(!a.cfg.fuse_opts);
	}
	run_args_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *args[ARGS_MAX], *argv[ARGS_MAX + 1] = {NULL};
	int argc = 1;

	(void)setenv("PATH", "/bin", 1);
	args[0] = fuzz_text((const uint8_t *)"spoolfs", 7);
	while (size > 0 && argc < ARGS_MAX)
		args[argc++] = fuzz_field(&data, &size);
	memcpy(argv, args, sizeof(args[0]) * (size_t)argc);
	mount_command(argc, argv);
	/* getopt has put them into another order. */
	memcpy(argv, args, sizeof(args[0]) * (size_t)argc);
	run_command(argc, argv);
	for (int i = 0; i < argc; i++)
		free(args[i]);
	return 0;
}
