/* SPDX-License-Identifier: MIT */
/* Reading an answer's headers. Dates are left to curl. */
#include <curl/curl.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../base/clock.h"
#include "http.h"

/* Longer than any date or number. */
#define VALUE_MAX 64

static const char *next_line(const char *line)
{
	const char *end = strchr(line, '\n');

	return end ? end + 1 : line + strlen(line);
}

static void copy_value(const char *from, char *out, size_t len)
{
	const char *end;

	from += strspn(from, " \t");
	end = from + strcspn(from, "\r\n");
	while (end > from && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	if ((size_t)(end - from) < len)
		len = (size_t)(end - from) + 1;
	memcpy(out, from, len - 1);
	out[len - 1] = '\0';
}

bool http_header(const struct http_req *req, const char *name, char *out, size_t len)
{
	const char *line = req->answer_headers.p;
	size_t n = strlen(name);

	out[0] = '\0';
	for (; line && *line; line = next_line(line)) {
		if (strncasecmp(line, name, n) == 0 && line[n] == ':') {
			copy_value(line + n + 1, out, len);
			return true;
		}
	}
	return false;
}

static int64_t seconds(uint64_t s)
{
	return s > (uint64_t)(CLOCK_NEVER / NS_PER_S) ? CLOCK_NEVER
						      : (int64_t)s * NS_PER_S;
}

/* -1 when TEXT is no date, or one before 1970. */
static int64_t parse_date_ns(const char *text)
{
	time_t t = curl_getdate(text, NULL);

	return t < 0 ? -1 : seconds((uint64_t)t);
}

int64_t http_date_ns(const struct http_req *req)
{
	char text[VALUE_MAX];

	return http_header(req, "Date", text, sizeof(text)) ? parse_date_ns(text) : -1;
}

int64_t http_retry_after_ns(const struct http_req *req)
{
	char text[VALUE_MAX];
	int64_t at, now = http_date_ns(req);

	if (!http_header(req, "Retry-After", text, sizeof(text)))
		return 0;
	/* A number too large for strtoull is its largest. */
	if (*text && text[strspn(text, "0123456789")] == '\0')
		return seconds(strtoull(text, NULL, 10));
	at = parse_date_ns(text);
	if (now < 0)
		now = clock_wall();
	return at > now ? at - now : 0;
}
