/* SPDX-License-Identifier: MIT */
/* What who gives out tokens answers: two bytes of status, one for the kind, then
 * headers, then the body. */
#include "fuzz.h"

#include <errno.h>

#include "backend/wire/token_int.h"

#define SECRET "dont-tell-anybody"

static void check(const struct token_answer *a)
{
	MUST(a->err == 0 || a->err == -EAGAIN || a->err == -EACCES);
	MUST((a->err == 0) == (a->value != NULL));
	MUST(!a->value || (fuzz_printable(a->value) && !strchr(a->value, ' ')));
	MUST(!a->value || (*a->value && a->life_ns > 0));
	MUST(a->wait_ns >= 0 && !a->nobody);
	MUST(a->err == 0 || fuzz_says(a->detail, sizeof(a->detail)));
	MUST(!strstr(a->detail, SECRET));
	for (const char *c = a->detail; *c; c++)
		MUST((unsigned char)*c >= ' ' && *c != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char secret[] = SECRET;
	struct token t = {.secret = secret};
	struct token_answer a;
	char *headers;

	if (size < 3)
		return 0;
	t.req.status = data[0] * 4 + data[1];
	t.kind = data[2] & 1 ? TOKEN_IMDS : TOKEN_SECRET;
	data += 3;
	size -= 3;
	headers = fuzz_field(&data, &size);
	MUST(buf_addstr(&t.req.answer_headers, headers) == 0);
	MUST(buf_add(&t.req.answer, data, size) == 0);
	token_read(&t, &a);
	check(&a);
	free(a.value);
	free(headers);
	buf_fini(&t.req.answer_headers);
	buf_fini(&t.req.answer);
	return 0;
}
