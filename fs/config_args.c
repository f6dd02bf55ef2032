/* SPDX-License-Identifier: MIT */
/* config.h, the part that reads the command line and the words after -o. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define N_OF(a) (sizeof(a) / sizeof((a)[0]))

/* What mount(8), fstab and libfuse use besides. A last '=' or '-' stands for
 * anything behind it. */
static const char *const ignored_words[] = {"defaults", "auto", "noauto", "nofail",
	"user", "user=", "nouser", "users", "owner", "group", "_netdev", "_rnetdev",
	"comment=", "x-", "X-", "suid", "dev", "exec", "atime", "noatime", "diratime",
	"nodiratime", "relatime", "norelatime", "strictatime", "nostrictatime",
	"lazytime", "nolazytime", "async", "sync", "dirsync", "silent", "loud",
	"default_permissions"};
static const char *const passed_words[] = {"nosuid", "nodev", "noexec", "auto_unmount",
	"context=", "fscontext=", "defcontext=", "rootcontext="};

static bool is_word_of(const char *const *words, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(words[i]);
		bool open = words[i][len - 1] == '=' || words[i][len - 1] == '-';

		if (open ? strncmp(text, words[i], len) == 0
			 : strcmp(text, words[i]) == 0)
			return true;
	}
	return false;
}

/* Appends ",WORD", its commas and backslashes escaped as libfuse reads them. */
static int append_word(char **list, const char *word)
{
	size_t have = *list != NULL ? strlen(*list) : 0;
	char *out = realloc(*list, have + 2 * strlen(word) + 2);

	if (out == NULL)
		return -ENOMEM;
	*list = out;
	out += have;
	if (have > 0)
		*out++ = ',';
	for (; *word != '\0'; word++) {
		if (*word == ',' || *word == '\\')
			*out++ = '\\';
		*out++ = *word;
	}
	*out = '\0';
	return 0;
}

static int option(struct config *cfg, const char *text, char *err, size_t err_len)
{
	if (*text == '\0' || is_word_of(ignored_words, N_OF(ignored_words), text))
		return 0;
	if (is_word_of(passed_words, N_OF(passed_words), text))
		return append_word(&cfg->fuse_opts, text);
	if (strcmp(text, "rw") == 0) /* the last of ro and rw counts */
		text = "ro=no";
	return config_give(cfg, text, err, err_len);
}

/* Takes one option off the front of *LIST and copies it to OUT, unescaped. */
static void split(const char **list, char *out)
{
	const char *p = *list;

	while (*p != '\0' && *p != ',') {
		if (*p == '\\' && (p[1] == ',' || p[1] == '\\'))
			p++;
		*out++ = *p++;
	}
	*out = '\0';
	*list = p + (*p == ',');
}

int config_options(struct config *cfg, const char *list, char *err, size_t err_len)
{
	char *one = malloc(strlen(list) + 1);
	int rc = 0;

	if (one == NULL)
		return -ENOMEM;
	while (rc == 0 && *list != '\0') {
		split(&list, one);
		rc = option(cfg, one, err, err_len);
	}
	free(one);
	return rc;
}

static int refuse(char *err, size_t err_len, const char *line)
{
	snprintf(err, err_len, "%s", line);
	return -EINVAL;
}

static int make_fuse_opts(struct config *cfg)
{
	char *fsname;
	int rc;

	if (asprintf(&fsname, "fsname=%s", cfg->source) < 0)
		return -ENOMEM;
	rc = append_word(&cfg->fuse_opts, fsname);
	free(fsname);
	if (rc == 0)
		rc = append_word(&cfg->fuse_opts, "subtype=spoolfs");
	if (rc == 0)
		rc = append_word(&cfg->fuse_opts, "default_permissions");
	if (rc == 0 && cfg->ro)
		rc = append_word(&cfg->fuse_opts, "ro");
	if (rc == 0 && cfg->allow_other)
		rc = append_word(&cfg->fuse_opts, "allow_other");
	return rc;
}

static int take_positionals(
	struct config *cfg, int argc, char **argv, char *err, size_t err_len)
{
	if (argc != 2)
		return refuse(err, err_len,
			argc < 2
				? "needs a SOURCE and a MOUNTPOINT"
				: "too many arguments: SOURCE and MOUNTPOINT are wanted");
	if (argv[0][0] == '\0' || argv[1][0] == '\0')
		return refuse(err, err_len, "SOURCE and MOUNTPOINT must not be empty");
	cfg->source = strdup(argv[0]);
	cfg->mountpoint = strdup(argv[1]);
	return cfg->source != NULL && cfg->mountpoint != NULL ? 0 : -ENOMEM;
}

static int take_letter(struct config *cfg, int letter, char *err, size_t err_len)
{
	switch (letter) {
	case 'h':
		cfg->action = CONFIG_HELP;
		return 0;
	case 'V':
		cfg->action = CONFIG_VERSION;
		return 0;
	case 'd':
		cfg->foreground = true;
		return config_options(cfg, "debug", err, err_len);
	case 'f':
		cfg->foreground = true;
		return 0;
	case 'o':
		return config_options(cfg, optarg, err, err_len);
	case ':':
		return refuse(err, err_len, "-o: needs options");
	case '?':
		return refuse(err, err_len, "unknown argument; try --help");
	default: /* n, s, v: from mount(8), of no meaning here */
		return 0;
	}
}

int config_args(struct config *cfg, int argc, char **argv, char *err, size_t err_len)
{
	static const struct option words[] = {{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'}, {NULL, 0, NULL, 0}};
	int letter, rc = 0;

	optind = 0; /* glibc: begin anew */
	opterr = 0;
	while (rc == 0 && cfg->action == CONFIG_MOUNT &&
		(letter = getopt_long(argc, argv, ":hVfdo:nsv", words, NULL)) != -1)
		rc = take_letter(cfg, letter, err, err_len);
	if (rc < 0 || cfg->action != CONFIG_MOUNT)
		return rc;
	rc = take_positionals(cfg, argc - optind, argv + optind, err, err_len);
	if (rc == 0)
		rc = config_check(cfg, err, err_len);
	return rc < 0 ? rc : make_fuse_opts(cfg);
}

static void help_option(FILE *out, const struct opt *o)
{
	char left[64];

	if (o->kind == OPT_FLAG)
		snprintf(left, sizeof(left), "%s", o->name);
	else if (o->kind == OPT_ENUM)
		snprintf(left, sizeof(left), "%s=%s", o->name, o->choices);
	else if (*o->def == '\0' || strlen(o->def) > 12)
		snprintf(left, sizeof(left), "%s=%s", o->name, opt_kind_name(o->kind));
	else
		snprintf(left, sizeof(left), "%s=%s", o->name, o->def);
	fprintf(out, "  %c %-29s %s\n", o->live ? '*' : ' ', left, o->help);
}

void config_help(FILE *out)
{
	size_t n;
	const struct opt *table = config_table(&n);

	fputs("usage: spoolfs [-f] [-o OPT,...] SOURCE MOUNTPOINT\n"
	      "       spoolfs run [-o OPT,...] SOURCE -- COMMAND [ARG...], see run --help\n"
	      "\n"
	      "  -f             stay in the foreground\n"
	      "  -d             the same, and trace everything\n"
	      "  -o OPT,...     options, below\n"
	      "  -h, --help     this text\n"
	      "  -V, --version  the version\n"
	      "\n"
	      "Options and their defaults. Durations take ms s m h d, sizes K M G.\n"
	      "Those with a star can be changed while mounted:\n"
	      "echo 'set OPTION=VALUE' > MOUNTPOINT/.control\n"
	      "\n",
		out);
	for (size_t i = 0; i < n; i++)
		help_option(out, &table[i]);
}
