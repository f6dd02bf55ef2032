/* SPDX-License-Identifier: MIT */
#include "sign.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../base/clock.h"

/* The N bytes behind "NAME=" in the query string SAS, or NULL. */
static const char *param(const char *sas, const char *name, size_t *n)
{
	size_t len = strlen(name);

	sas += strspn(sas, "?&");
	while (*sas) {
		*n = strcspn(sas, "&");
		if (*n > len && strncmp(sas, name, len) == 0 && sas[len] == '=') {
			*n -= len + 1;
			return sas + len + 1;
		}
		sas += *n + strspn(sas + *n, "&");
	}
	return NULL;
}

/* 64 bits of nanoseconds end in 2262; who wants no end says 9999. */
static int64_t to_ns(time_t s)
{
	if (s < 0)
		return 0;
	return s > CLOCK_NEVER / NS_PER_S ? CLOCK_NEVER : (int64_t)s * NS_PER_S;
}

/* Seconds may be missing or have a fraction, and so may the time of day. */
static int64_t iso_time(const char *text)
{
	static const char *const forms[] = {
		"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct tm tm = {0};
		const char *end = strptime(text, forms[i], &tm);

		if (end && i == 0 && *end == '.')
			end += 1 + strspn(end + 1, "0123456789");
		if (end && (*end == '\0' || strcmp(end, "Z") == 0))
			return to_ns(timegm(&tm));
	}
	return -1;
}

static int64_t time_param(const char *sas, const char *name)
{
	struct buf text = {0};
	size_t n;
	const char *value = param(sas, name, &n);
	int64_t ns = -1;

	if (value && percent_decode(value, n, &text) == 0)
		ns = iso_time(text.p);
	buf_fini(&text);
	return ns;
}

int sas_check(const char *sas, int64_t *expires_ns, char *err, size_t err_len)
{
	size_t n;
	const char *sig = param(sas, "sig", &n);
	const char *wrong = !sig || n == 0 ? "it has no sig=" : NULL;

	*expires_ns = -1;
	/* It becomes a part of a URL as it is. */
	for (const char *c = sas; *c && !wrong; c++) {
		if (*c <= ' ' || *c >= 0x7f || strchr("#\"<>\\", *c))
			wrong = "it has characters that must be encoded";
	}
	if (wrong) {
		snprintf(err, err_len, "this is no shared access signature: %s", wrong);
		return -EINVAL;
	}
	*expires_ns = time_param(sas, "se");
	return 0;
}

int64_t sas_start_ns(const char *sas)
{
	return time_param(sas, "st");
}
