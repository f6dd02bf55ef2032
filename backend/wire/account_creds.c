/* SPDX-License-Identifier: MIT */
#include "account_creds.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "account_conn.h"
#include "account_file.h"
#include "sign.h"

#define AUTHORITY "https://login.microsoftonline.com"
#define IMDS      "http://169.254.169.254"

/* What one decision is made of. */
struct choice {
	struct creds *c;
	creds_get_fn *get;
	const void *arg;
	char *err;
	size_t err_len;
};

static const char *const labels[] = {
	[CREDS_KEY] = "shared key",
	[CREDS_SAS] = "SAS",
	[CREDS_SECRET] = "client secret",
	[CREDS_FEDERATED] = "workload identity",
	[CREDS_ENDPOINT] = "managed identity",
	[CREDS_IMDS] = "managed identity",
};

void creds_fini(struct creds *c)
{
	if (c->key)
		OPENSSL_cleanse(c->key, c->key_len);
	free(c->key);
	account_wipe(c->name);
	account_wipe(c->sas);
	account_wipe(c->authority);
	account_wipe(c->tenant);
	account_wipe(c->client);
	account_wipe(c->secret);
	account_wipe(c->file);
	account_wipe(c->header);
	*c = (struct creds){0};
}

static int say(const struct choice *ch, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int say(const struct choice *ch, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(ch->err, ch->err_len, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* What is set to nothing is not set. */
static const char *value(const struct choice *ch, const char *name)
{
	const char *v = ch->get(ch->arg, name);

	return v && *v ? v : NULL;
}

/* It goes into a header line or a URL: nothing that could end either. */
static int copy(const struct choice *ch, const char *name, char **to)
{
	const char *v = value(ch, name);

	for (const char *c = v; c && *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return say(ch, "%s: it has control characters", name);
	}
	*to = v ? strdup(v) : NULL;
	return v && !*to ? -ENOMEM : 0;
}

static bool is_name(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				"0123456789-_");

	return n > 0 && n < 64 && name[n] == '\0';
}

static int set_name(const struct choice *ch, const char *from, const char *name)
{
	if (!name)
		return 0;
	if (!is_name(name))
		return say(ch, "%s: this is no name of an account", from);
	ch->c->name = strdup(name);
	return ch->c->name ? 0 : -ENOMEM;
}

static int set_key(const struct choice *ch, const char *from, const char *text)
{
	struct buf key = {0};
	int r = base64_decode(text, strlen(text), &key);

	ch->c->kind = CREDS_KEY;
	if (r == 0 && key.len > 0)
		ch->c->key = (unsigned char *)buf_take(&key, &ch->c->key_len);
	account_buf_wipe(&key);
	if (r == -ENOMEM)
		return r;
	return ch->c->key ? 0 : say(ch, "%s: this is no base64", from);
}

static int set_sas(const struct choice *ch, const char *from, const char *text)
{
	char wrong[128];
	struct creds *c = ch->c;

	c->kind = CREDS_SAS;
	if (sas_check(text, &c->sas_expires_ns, wrong, sizeof(wrong)) < 0)
		return say(ch, "%s: %s", from, wrong);
	c->sas_start_ns = sas_start_ns(text);
	c->sas = strdup(text + strspn(text, "?&"));
	return c->sas ? 0 : -ENOMEM;
}

static int from_conn(const struct choice *ch, const char *text, size_t len)
{
	struct account_conn conn;
	char name[64];
	int r = account_conn_parse(text, len, &conn, ch->err, ch->err_len);

	if (r < 0)
		return r;
	if (conn.name)
		r = set_name(ch, "connection string: AccountName", conn.name);
	else if (conn.queue && account_of_url(conn.queue, name, sizeof(name)) == 0)
		r = set_name(ch, "connection string: QueueEndpoint", name);
	if (r == 0)
		r = conn.sas ? set_sas(ch, "connection string: SharedAccessSignature",
				       conn.sas)
			     : set_key(ch, "connection string: AccountKey", conn.key);
	account_conn_fini(&conn);
	ch->c->label = "connection string";
	return r;
}

static int authority(const struct choice *ch)
{
	struct creds *c = ch->c;
	int r = copy(ch, "AZURE_AUTHORITY_HOST", &c->authority);

	if (r == 0 && !c->authority) {
		c->authority = strdup(AUTHORITY);
		r = c->authority ? 0 : -ENOMEM;
	}
	if (r == 0 && !creds_safe_url(c->authority))
		r = say(ch, "AZURE_AUTHORITY_HOST: this is no https:// address");
	return r;
}

static int from_client(const struct choice *ch, enum creds_kind kind)
{
	struct creds *c = ch->c;
	const char *what = kind == CREDS_FEDERATED ? "AZURE_FEDERATED_TOKEN_FILE"
						   : "AZURE_CLIENT_SECRET";
	int r = authority(ch);

	c->kind = kind;
	if (r == 0)
		r = copy(ch, "AZURE_TENANT_ID", &c->tenant);
	if (r == 0)
		r = copy(ch, "AZURE_CLIENT_ID", &c->client);
	if (r == 0)
		r = copy(ch, what, kind == CREDS_FEDERATED ? &c->file : &c->secret);
	if (r == 0 && (!c->tenant || !c->client))
		r = say(ch, "%s is there, but not %s", what,
			c->tenant ? "AZURE_CLIENT_ID" : "AZURE_TENANT_ID");
	return r;
}

static int from_machine(const struct choice *ch)
{
	struct creds *c = ch->c;
	bool endpoint = value(ch, "IDENTITY_ENDPOINT") && value(ch, "IDENTITY_HEADER");
	const char *where =
		endpoint ? "IDENTITY_ENDPOINT" : "AZURE_POD_IDENTITY_AUTHORITY_HOST";
	int r = copy(ch, where, &c->authority);

	c->kind = endpoint ? CREDS_ENDPOINT : CREDS_IMDS;
	if (r == 0 && endpoint)
		r = copy(ch, "IDENTITY_HEADER", &c->header);
	if (r == 0)
		r = copy(ch, "AZURE_CLIENT_ID", &c->client);
	c->guessed = !c->authority && !c->client;
	if (r == 0 && !c->authority) {
		c->authority = strdup(IMDS);
		r = c->authority ? 0 : -ENOMEM;
	}
	return r;
}

static int choose(const struct choice *ch)
{
	const char *conn = value(ch, "AZURE_STORAGE_CONNECTION_STRING");
	const char *sas = value(ch, "AZURE_STORAGE_SAS_TOKEN");
	const char *key = value(ch, "AZURE_STORAGE_KEY");
	int r;

	if (conn)
		return from_conn(ch, conn, strlen(conn));
	r = set_name(ch, "AZURE_STORAGE_ACCOUNT", value(ch, "AZURE_STORAGE_ACCOUNT"));
	if (r < 0)
		return r;
	if (sas)
		return set_sas(ch, "AZURE_STORAGE_SAS_TOKEN", sas);
	if (key)
		return set_key(ch, "AZURE_STORAGE_KEY", key);
	if (value(ch, "AZURE_FEDERATED_TOKEN_FILE"))
		return from_client(ch, CREDS_FEDERATED);
	if (value(ch, "AZURE_CLIENT_SECRET"))
		return from_client(ch, CREDS_SECRET);
	return from_machine(ch);
}

static int decided(const struct choice *ch, int r)
{
	if (r == -ENOMEM)
		snprintf(ch->err, ch->err_len, "out of memory");
	if (r < 0)
		creds_fini(ch->c);
	else if (!ch->c->label)
		ch->c->label = labels[ch->c->kind];
	return r;
}

int creds_decide(
	struct creds *c, creds_get_fn *get, const void *arg, char *err, size_t err_len)
{
	struct choice ch = {c, get, arg, err, err_len};

	*c = (struct creds){0};
	return decided(&ch, choose(&ch));
}

static const char *get_env(const void *arg, const char *name)
{
	(void)arg;
	return getenv(name);
}

int creds_from_env(struct creds *c, char *err, size_t err_len)
{
	return creds_decide(c, get_env, NULL, err, err_len);
}

/* NAME=VALUE, each ended by a NUL. */
struct lines {
	const char *begin, *end;
};

static const char *get_line(const void *arg, const char *name)
{
	const struct lines *l = arg;
	size_t n = strlen(name);

	for (const char *line = l->begin; line < l->end; line += strlen(line) + 1) {
		if (strncmp(line, name, n) == 0 && line[n] == '=')
			return line + n + 1;
	}
	return NULL;
}

/* Blanks around a line and quotes around its value go. Ends it with a NUL and
 * returns its new length. */
static size_t clean_line(char *to, const char *line, size_t n)
{
	const char *eq;
	size_t name;

	while (n > 0 && strchr(" \t\r", line[n - 1]))
		n--;
	eq = memchr(line, '=', n);
	name = eq ? (size_t)(eq + 1 - line) : n;
	memmove(to, line, name);
	line += name;
	n -= name;
	if (n >= 2 && (*line == '"' || *line == '\'') && line[n - 1] == *line) {
		line++;
		n -= 2;
	}
	memmove(to + name, line, n);
	to[name + n] = '\0';
	return name + n;
}

/* In place: what comes out is never longer than what went in. Returns its end. */
static char *clean_lines(char *text)
{
	char *to = text;

	while (*text) {
		size_t n = strcspn(text, "\n"), blank = strspn(text, " \t");
		char *next = text + n + (text[n] == '\n');

		if (blank < n && text[blank] != '#' && text[blank] != '\r')
			to += clean_line(to, text + blank, n - blank) + 1;
		text = next;
	}
	return to;
}

/* Whether the first line that says something names a variable. */
static bool has_variables(const char *text)
{
	while (*text) {
		text += strspn(text, " \t\r\n");
		if (*text != '#')
			break;
		text += strcspn(text, "\n");
	}
	return strncmp(text, "AZURE_", 6) == 0 || strncmp(text, "IDENTITY_", 9) == 0;
}

int creds_from_text(struct creds *c, char *text, size_t len, char *err, size_t err_len)
{
	struct lines lines = {.begin = text};
	struct choice ch = {c, get_line, &lines, err, err_len};
	int r;

	*c = (struct creds){0};
	if (memchr(text, '\0', len))
		return decided(&ch, say(&ch, "it has a NUL byte"));
	if (!has_variables(text))
		return decided(&ch, from_conn(&ch, text, len));
	lines.end = clean_lines(text);
	r = choose(&ch);
	if (r == 0 && c->guessed)
		r = say(&ch, "it names no credentials");
	return decided(&ch, r);
}

bool creds_safe_url(const char *url)
{
	static const char *const here[] = {"127.0.0.1", "[::1]", "localhost"};

	if (strncmp(url, "https://", 8) == 0)
		return true;
	if (strncmp(url, "http://", 7) != 0)
		return false;
	url += 7;
	/* What stands before an '@' is no host. */
	if (url[strcspn(url, "@/?#")] == '@')
		return false;
	for (size_t i = 0; i < sizeof(here) / sizeof(here[0]); i++) {
		size_t n = strlen(here[i]);

		if (strncmp(url, here[i], n) == 0 && strchr(":/", url[n]))
			return true;
	}
	return false;
}
