/* SPDX-License-Identifier: MIT */
/* The headers of an answer (the status is the first two bytes), and what the
 * Azure driver makes of them. */
#include "fuzz.h"

#include "backend/drivers/azure_error.h"
#include "backend/wire/http.h"

static void look_up(const struct http_req *req, const char *name)
{
	static const size_t sizes[] = {1, 2, 5, 64};
	bool there;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char *out = malloc(sizes[i]);

		MUST(out);
		memset(out, '#', sizes[i]);
		there = http_header(req, name, out, sizes[i]);
		MUST(memchr(out, '\0', sizes[i]) && !strpbrk(out, "\r\n"));
		MUST(there || !*out);
		MUST(*out != ' ' && *out != '\t');
		free(out);
	}
}

static void judge(const struct http_req *req)
{
	struct azure_error_text e = {0};
	char said[HTTP_DETAIL];

	(void)http_header(req, "x-ms-error-code", e.code, sizeof(e.code));
	for (enum azure_verb verb = AZURE_GET; verb <= AZURE_CREATE; verb++) {
		struct azure_verdict v = azure_judge(verb, req->status, &e);

		MUST(v.err <= 0 && v.retry_after_ns >= 0);
		MUST(!v.retry_after_ns || v.err);
		MUST(req->status / 100 == 2 || v.err);
	}
	memset(said, '#', sizeof(said));
	azure_describe(req->status, &e, said, sizeof(said));
	MUST(fuzz_says(said, sizeof(said)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_req req = {0};

	if (size < 2)
		return 0;
	req.status = data[0] * 4 + data[1];
	MUST(buf_add(&req.answer_headers, data + 2, size - 2) == 0);
	look_up(&req, "Date");
	look_up(&req, "x-ms-request-id");
	look_up(&req, "a");
	MUST(http_date_ns(&req) >= -1);
	MUST(http_retry_after_ns(&req) >= 0);
	judge(&req);
	buf_fini(&req.answer_headers);
	return 0;
}
