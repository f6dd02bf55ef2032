/* SPDX-License-Identifier: MIT */
#include "account_conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Known to everybody: every emulator of Azure Storage has this account. */
#define EMULATOR_NAME "devstoreaccount1"
#define EMULATOR_KEY                                   \
	"Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6" \
	"IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

/* Some bytes of the text. */
struct span {
	const char *p;
	size_t len;
};

static const struct {
	const char *key;
	size_t offset;
} known[] = {
	{"DefaultEndpointsProtocol", offsetof(struct account_conn, protocol)},
	{"AccountName", offsetof(struct account_conn, name)},
	{"AccountKey", offsetof(struct account_conn, key)},
	{"EndpointSuffix", offsetof(struct account_conn, suffix)},
	{"QueueEndpoint", offsetof(struct account_conn, queue)},
	{"SharedAccessSignature", offsetof(struct account_conn, sas)},
};

#define N_KNOWN (sizeof(known) / sizeof(known[0]))

void account_wipe(char *s)
{
	if (s)
		OPENSSL_cleanse(s, strlen(s));
	free(s);
}

static char **field(struct account_conn *c, size_t i)
{
	return (char **)((char *)c + known[i].offset);
}

void account_conn_fini(struct account_conn *c)
{
	for (size_t i = 0; i < N_KNOWN; i++)
		account_wipe(*field(c, i));
	*c = (struct account_conn){0};
}

static struct span trimmed(struct span s)
{
	while (s.len > 0 && memchr(" \t\r\n", *s.p, 4)) {
		s.p++;
		s.len--;
	}
	while (s.len > 0 && memchr(" \t\r\n", s.p[s.len - 1], 4))
		s.len--;
	return s;
}

static bool is(struct span s, const char *word)
{
	return s.len == strlen(word) && strncasecmp(s.p, word, s.len) == 0;
}

static int set(char **to, struct span value, const char *key, char *err, size_t err_len)
{
	const char *wrong = NULL;

	if (*to)
		wrong = "is there twice";
	else if (value.len == 0)
		wrong = "is empty";
	if (wrong) {
		snprintf(err, err_len, "connection string: %s %s", key, wrong);
		return -EINVAL;
	}
	*to = strndup(value.p, value.len);
	return *to ? 0 : -ENOMEM;
}

static int emulator(struct account_conn *c, struct span value, char *err, size_t err_len)
{
	if (is(value, "true")) {
		c->emulator = true;
		return 0;
	}
	snprintf(err, err_len,
		"connection string: UseDevelopmentStorage can only be true");
	return -EINVAL;
}

static int take(struct account_conn *c, struct span key, struct span value, char *err,
	size_t err_len)
{
	if (is(key, "UseDevelopmentStorage"))
		return emulator(c, value, err, err_len);
	for (size_t i = 0; i < N_KNOWN; i++) {
		if (is(key, known[i].key))
			return set(field(c, i), value, known[i].key, err, err_len);
	}
	return 0;
}

/* One part; an empty one is what a ';' at the end leaves. */
static int part(
	struct account_conn *c, struct span s, unsigned number, char *err, size_t err_len)
{
	const char *eq;
	struct span key, value;

	s = trimmed(s);
	if (s.len == 0)
		return 0;
	eq = memchr(s.p, '=', s.len);
	if (!eq) {
		snprintf(err, err_len, "connection string: part %u has no '='", number);
		return -EINVAL;
	}
	key = (struct span){s.p, (size_t)(eq - s.p)};
	value = (struct span){eq + 1, s.len - key.len - 1};
	return take(c, trimmed(key), trimmed(value), err, err_len);
}

static int all_parts(struct account_conn *c, struct span text, char *err, size_t err_len)
{
	unsigned number = 1;
	int r = 0;

	while (text.len > 0 && r == 0) {
		const char *end = memchr(text.p, ';', text.len);
		size_t n = end ? (size_t)(end - text.p) : text.len;

		r = part(c, (struct span){text.p, n}, number++, err, err_len);
		n += end != NULL;
		text.p += n;
		text.len -= n;
	}
	return r;
}

/* What is not there goes without saying, or is missed. */
static int complete(struct account_conn *c, char *err, size_t err_len)
{
	if (c->emulator && !c->name && !c->key) {
		c->name = strdup(EMULATOR_NAME);
		c->key = strdup(EMULATOR_KEY);
		return c->name && c->key ? 0 : -ENOMEM;
	}
	if (c->key || c->sas)
		return 0;
	snprintf(err, err_len,
		"connection string: neither AccountKey nor SharedAccessSignature");
	return -EINVAL;
}

int account_conn_parse(
	const char *text, size_t len, struct account_conn *out, char *err, size_t err_len)
{
	int r;

	*out = (struct account_conn){0};
	if (len > 0 && memchr(text, '\0', len)) {
		snprintf(err, err_len, "connection string: it has a NUL byte");
		return -EINVAL;
	}
	r = all_parts(out, (struct span){text, len}, err, err_len);
	if (r == 0)
		r = complete(out, err, err_len);
	if (r == -ENOMEM)
		snprintf(err, err_len, "out of memory");
	if (r < 0)
		account_conn_fini(out);
	return r;
}

/* An address, or a name that belongs to no domain, has the account in its path. */
static bool names_no_account(struct span host)
{
	char text[INET6_ADDRSTRLEN];
	struct in_addr ip;

	if (host.len > 0 && *host.p == '[')
		return true;
	if (!memchr(host.p, '.', host.len))
		return true;
	if (host.len >= sizeof(text))
		return false;
	memcpy(text, host.p, host.len);
	text[host.len] = '\0';
	return inet_pton(AF_INET, text, &ip) == 1;
}

int account_of_url(const char *url, char *out, size_t len)
{
	const char *scheme = strstr(url, "://");
	struct span host, name;

	if (!scheme)
		return -EINVAL;
	host.p = scheme + 3;
	host.len = *host.p == '[' ? strcspn(host.p, "/?") : strcspn(host.p, ":/?");
	if (names_no_account(host)) {
		name.p = host.p + strcspn(host.p, "/?");
		name.p += *name.p == '/';
		name.len = strcspn(name.p, "/?");
	} else {
		name.p = host.p;
		name.len = strcspn(host.p, ".");
	}
	if (name.len == 0 || name.len >= len)
		return -EINVAL;
	memcpy(out, name.p, name.len);
	out[name.len] = '\0';
	return 0;
}
