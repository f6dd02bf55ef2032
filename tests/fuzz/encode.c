/* SPDX-License-Identifier: MIT */
/* Base64 and %XX, there and back. */
#include "backend/wire/encode.h"

#include "fuzz.h"

#include <errno.h>

static void base64(const uint8_t *data, size_t size)
{
	struct buf there = {0}, back = {0};

	MUST(base64_encode(data, size, &there) == 0);
	MUST(there.len == (size + 2) / 3 * 4);
	MUST(!there.p || strlen(there.p) == there.len);
	MUST(base64_decode(there.p ? there.p : "", there.len, &back) == 0);
	MUST(back.len == size && (size == 0 || memcmp(back.p, data, size) == 0));
	buf_fini(&there);
	buf_fini(&back);
}

/* What is taken means something, and what is not leaves no trace. */
static void base64_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size ? size : 1);
	struct buf out = {0}, again = {0}, once = {0};
	int r;

	MUST(text);
	if (size > 0)
		memcpy(text, data, size);
	MUST(buf_addstr(&out, "before") == 0);
	r = base64_decode(text, size, &out);
	MUST(r == 0 || r == -EINVAL);
	MUST(strncmp(out.p, "before", 6) == 0 && out.len >= 6);
	MUST(r == 0 || out.len == 6);
	if (r == 0) {
		MUST(base64_encode(out.p + 6, out.len - 6, &again) == 0);
		MUST(again.len == size);
		MUST(base64_decode(again.p ? again.p : "", again.len, &once) == 0);
		MUST(once.len == out.len - 6);
		MUST(once.len == 0 || memcmp(once.p, out.p + 6, once.len) == 0);
	}
	buf_fini(&out);
	buf_fini(&again);
	buf_fini(&once);
	free(text);
}

static void percent(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct buf there = {0}, back = {0}, any = {0};

	MUST(percent_encode(text, &there) == 0);
	MUST(there.len <= 3 * strlen(text) && !strpbrk(there.p, " /?&#+\n"));
	MUST(percent_decode(there.p, there.len, &back) == 0);
	MUST(strcmp(back.p, text) == 0 && back.len == strlen(text));
	MUST(percent_decode(text, size, &any) == 0);
	MUST(any.len <= size);
	buf_fini(&there);
	buf_fini(&back);
	buf_fini(&any);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	base64(data, size);
	base64_text(data, size);
	percent(data, size);
	return 0;
}
