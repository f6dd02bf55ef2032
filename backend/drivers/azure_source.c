/* SPDX-License-Identifier: MIT */
#include "azure_source.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_FORM "azure-queue+"
#define LOWER     "abcdefghijklmnopqrstuvwxyz"
#define DIGITS    "0123456789"

/* A stretch of the source. */
struct part {
	const char *p;
	size_t len;
};

/* The source in pieces. */
struct pieces {
	bool path_form; /* the account is in the path */
	bool plain;     /* http */
	struct part host, port;
	const char *path; /* behind the host: "" or begins with '/' */
};

struct complaint {
	char *text;
	size_t len;
};

static int refuse(const struct complaint *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int refuse(const struct complaint *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(err->text, err->len, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static bool skip(const char **s, const char *prefix)
{
	size_t len = strlen(prefix);

	if (strncmp(*s, prefix, len) != 0)
		return false;
	*s += len;
	return true;
}

static bool part_is(struct part a, const char *text)
{
	return a.len == strlen(text) && memcmp(a.p, text, a.len) == 0;
}

/* Whether all of A is of the characters in SET. */
static bool part_has_only(struct part a, const char *set)
{
	for (size_t i = 0; i < a.len; i++)
		if (!a.p[i] || !strchr(set, a.p[i]))
			return false;
	return true;
}

/* What comes before the first SEP of A, which is cut off with it. */
static struct part part_cut(struct part *a, char sep)
{
	const char *at = memchr(a->p, sep, a->len);
	struct part head = {a->p, at ? (size_t)(at - a->p) : a->len};
	size_t gone = head.len + (at ? 1 : 0);

	a->p += gone;
	a->len -= gone;
	return head;
}

/* "queue.REST" or "zNN.queue.REST": what follows the account in a host name. */
static bool is_queue_host(struct part rest)
{
	struct part label = part_cut(&rest, '.');

	if (label.len == 3 && label.p[0] == 'z' &&
		part_has_only((struct part){label.p + 1, 2}, DIGITS))
		label = part_cut(&rest, '.');
	return part_is(label, "queue") && rest.len > 0;
}

/* Digits and dots that are no whole address go to a name server, and may come
 * back as anybody's. */
static bool is_loopback(struct part host)
{
	char text[INET_ADDRSTRLEN];
	struct in_addr ip;

	if (part_is(host, "localhost") || part_is(host, "[::1]"))
		return true;
	if (host.len >= sizeof(text))
		return false;
	memcpy(text, host.p, host.len);
	text[host.len] = '\0';
	return inet_pton(AF_INET, text, &ip) == 1 && ntohl(ip.s_addr) >> 24 == 127;
}

/* Scheme, host and path. False: there is no host. */
static bool take_apart(const char *source, struct pieces *out)
{
	struct part rest;

	*out = (struct pieces){.path_form = skip(&source, PATH_FORM)};
	out->plain = skip(&source, "http://");
	if (!out->plain && !skip(&source, "https://"))
		return false;
	rest = (struct part){source, strcspn(source, "/?#")};
	out->path = source + rest.len;
	if (rest.len && rest.p[0] == '[') {
		const char *end = memchr(rest.p, ']', rest.len);

		out->host = (struct part){rest.p, end ? (size_t)(end + 1 - rest.p) : 0};
		rest.p += out->host.len;
		rest.len -= out->host.len;
		if (rest.len && rest.p[0] != ':')
			return false;
		(void)part_cut(&rest, ':');
		out->port = rest;
	} else {
		out->host = part_cut(&rest, ':');
		out->port = rest;
	}
	return out->host.len > 0;
}

bool azure_source_is(const char *source)
{
	struct pieces p;

	if (strncmp(source, PATH_FORM, strlen(PATH_FORM)) == 0)
		return true;
	if (!take_apart(source, &p))
		return false;
	(void)part_cut(&p.host, '.');
	return is_queue_host(p.host);
}

static int check_host(const struct pieces *p, const struct complaint *err)
{
	struct part host = p->host;

	if (host.p[0] == '[')
		host = (struct part){host.p + 1, host.len - 2};
	if (!part_has_only(host, LOWER DIGITS "-."
					      ":") ||
		(host.p == p->host.p && memchr(host.p, ':', host.len)))
		return refuse(
			err, "a host name is of lower-case letters, digits, - and .");
	if (p->port.len > 5 || !part_has_only(p->port, DIGITS))
		return refuse(err, "a port is a number");
	if (p->plain && !is_loopback(p->host))
		return refuse(
			err, "http is for this machine only (127.0.0.1): use https");
	return 0;
}

static int check_account(struct part account, const struct complaint *err)
{
	if (account.len < 3 || account.len > 24 || !part_has_only(account, LOWER DIGITS))
		return refuse(err, "an account's name has 3 to 24 lower-case letters "
				   "and digits");
	return 0;
}

static int check_queue(struct part queue, const struct complaint *err)
{
	size_t room = 63 - strlen(AZURE_POISON_SUFFIX);
	bool edge = queue.len && (queue.p[0] == '-' || queue.p[queue.len - 1] == '-');

	if (queue.len < 3 || queue.len > 63 || edge ||
		!part_has_only(queue, LOWER DIGITS "-") ||
		memmem(queue.p, queue.len, "--", 2))
		return refuse(err,
			"a queue's name has 3 to 63 lower-case letters, digits and single "
			"dashes, and neither begins nor ends with a dash");
	if (queue.len > room)
		return refuse(err,
			"a queue's name may have %zu characters at most: its dead letters go "
			"to a queue called " AZURE_POISON_SUFFIX " behind it",
			room);
	return 0;
}

static char *copy(const char *before, struct part a, const char *behind)
{
	char *text;

	if (asprintf(&text, "%s%.*s%s", before, (int)a.len, a.p, behind) < 0)
		return NULL;
	return text;
}

static int fill(struct azure_source *out, const struct pieces *p, struct part account,
	struct part queue)
{
	struct part host = {p->host.p, (size_t)(p->path - p->host.p)};

	out->origin = copy(p->plain ? "http://" : "https://", host, "");
	out->prefix = p->path_form ? copy("/", account, "") : strdup("");
	out->account = copy("", account, "");
	out->queue = copy("", queue, "");
	out->poison = copy("", queue, AZURE_POISON_SUFFIX);
	return out->origin && out->prefix && out->account && out->queue && out->poison
		       ? 0
		       : -ENOMEM;
}

/* Account and queue. A slash at the very end means nothing. */
static int name_both(const struct pieces *p, struct part *account, struct part *queue,
	const struct complaint *err)
{
	struct part host = p->host;
	struct part path = {p->path, strlen(p->path)};

	(void)part_cut(&path, '/');
	if (p->path_form) {
		*account = part_cut(&path, '/');
	} else {
		*account = part_cut(&host, '.');
		if (!is_queue_host(host))
			return refuse(err, "the host is not ACCOUNT.queue.SUFFIX");
	}
	*queue = part_cut(&path, '/');
	if (!queue->len || path.len)
		return refuse(err, p->path_form ? "the path is not /ACCOUNT/QUEUE"
						: "the path is not /QUEUE");
	return 0;
}

int azure_source_parse(
	const char *source, struct azure_source *out, char *err, size_t err_len)
{
	const struct complaint why = {err, err_len};
	struct part account = {0}, queue = {0};
	struct pieces p;
	int r;

	*out = (struct azure_source){0};
	if (strchr(source, '@'))
		return refuse(&why, "a user has no place in a source");
	if (strpbrk(source, "?#"))
		return refuse(&why, "a query has no place in a source: a signature "
				    "comes from the environment or a credentials file");
	if (!take_apart(source, &p))
		return refuse(&why,
			"not https://ACCOUNT.queue.SUFFIX/QUEUE nor " PATH_FORM
			"https://HOST/ACCOUNT/QUEUE");
	r = check_host(&p, &why);
	if (r == 0)
		r = name_both(&p, &account, &queue, &why);
	if (r == 0)
		r = check_account(account, &why);
	if (r == 0)
		r = check_queue(queue, &why);
	if (r == 0)
		r = fill(out, &p, account, queue);
	if (r < 0)
		azure_source_fini(out);
	return r;
}

void azure_source_fini(struct azure_source *s)
{
	free(s->origin);
	free(s->prefix);
	free(s->account);
	free(s->queue);
	free(s->poison);
	*s = (struct azure_source){0};
}
