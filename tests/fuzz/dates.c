/* SPDX-License-Identifier: MIT */
/* Dates of answers, and of shared access signatures. */
#include "fuzz.h"

#include <errno.h>

#include "backend/base/clock.h"
#include "backend/wire/sign.h"

static void date(const char *text)
{
	int64_t ns = sign_date_parse(text);
	char out[SIGN_DATE_LEN];

	MUST(ns >= -1);
	if (ns < 0)
		return;
	MUST(ns % NS_PER_S == 0);
	sign_date(ns, out);
	MUST(strlen(out) == SIGN_DATE_LEN - 1);
	MUST(sign_date_parse(out) == ns);
}

static void signature(const char *text)
{
	char err[160] = "";
	int64_t expires = 0;
	int r = sas_check(text, &expires, err, sizeof(err));

	MUST(r == 0 || r == -EINVAL);
	MUST((r < 0) == fuzz_says(err, sizeof(err)));
	MUST(expires >= -1 && (r == 0 || expires == -1));
	MUST(r < 0 || (fuzz_printable(text) && !strpbrk(text, " #\"<>\\")));
	MUST(r < 0 || strstr(text, "sig="));
	MUST(sas_start_ns(text) >= -1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);

	date(text);
	signature(text);
	free(text);
	return 0;
}
