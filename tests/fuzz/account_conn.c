/* SPDX-License-Identifier: MIT */
/* Connection strings, and the files that may hold one or a list of variables. */
#include "backend/wire/account_conn.h"

#include "fuzz.h"

#include <errno.h>

#include "backend/wire/account_creds.h"

/* No refusal has a '!' of its own: one that has it repeats a value. */
static void check_refusal(const char *err, size_t len)
{
	MUST(fuzz_says(err, len));
	MUST(!strchr(err, '!'));
}

static void check_value(const char *value)
{
	if (!value)
		return;
	MUST(*value && !strchr(value, ';'));
	MUST(!strchr(" \t\r\n", *value));
	MUST(!strchr(" \t\r\n", value[strlen(value) - 1]));
}

static void check_account_of(const char *url)
{
	char name[8] = "#######";
	int r = account_of_url(url, name, sizeof(name));

	MUST(r == 0 || r == -EINVAL);
	MUST(r < 0 || (fuzz_says(name, sizeof(name)) && !strpbrk(name, "/?")));
}

static void connection_string(const uint8_t *data, size_t size)
{
	char *text = malloc(size ? size : 1), err[160] = "";
	struct account_conn c;
	int r;

	MUST(text);
	if (size > 0)
		memcpy(text, data, size);
	r = account_conn_parse(text, size, &c, err, sizeof(err));
	MUST(r == 0 || r == -EINVAL);
	if (r < 0)
		check_refusal(err, sizeof(err));
	MUST((r == 0) == (c.key || c.sas));
	check_value(c.protocol);
	check_value(c.name);
	check_value(c.key);
	check_value(c.suffix);
	check_value(c.queue);
	check_value(c.sas);
	if (c.queue)
		check_account_of(c.queue);
	account_conn_fini(&c);
	free(text);
}

static void check_creds(const struct creds *c)
{
	MUST(c->label && *c->label);
	MUST(c->kind != CREDS_KEY || (c->key && c->key_len > 0));
	MUST(c->kind != CREDS_SAS || (c->sas && c->sas[0] != '?'));
	MUST(c->kind != CREDS_SECRET || (c->tenant && c->client && c->secret));
	MUST(c->sas_start_ns >= -1 && c->sas_expires_ns >= -1);
}

static void file(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), err[256] = "";
	struct creds c = {0};
	int r = creds_from_text(&c, text, size, err, sizeof(err));

	MUST(r == 0 || r == -EINVAL);
	if (r == 0)
		check_creds(&c);
	else
		check_refusal(err, sizeof(err));
	creds_fini(&c);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);

	connection_string(data, size);
	file(data, size);
	check_account_of(text);
	(void)creds_safe_url(text);
	free(text);
	return 0;
}
