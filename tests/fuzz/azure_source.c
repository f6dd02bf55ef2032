/* SPDX-License-Identifier: MIT */
/* The source of an Azure Storage queue. */
#include "backend/drivers/azure_source.h"

#include "fuzz.h"

#include <arpa/inet.h>
#include <errno.h>

#define LOWER "abcdefghijklmnopqrstuvwxyz0123456789"

/* Without TLS it is this machine, whoever answers for names. */
static void check_plain(const char *origin)
{
	char host[INET_ADDRSTRLEN + 1];
	struct in_addr ip;

	if (strncmp(origin, "https://", 8) == 0)
		return;
	MUST(strncmp(origin, "http://", 7) == 0);
	origin += 7;
	if (strncmp(origin, "[::1]", 5) == 0 || strncmp(origin, "localhost", 9) == 0)
		return;
	(void)snprintf(host, sizeof(host), "%.*s", (int)strcspn(origin, ":"), origin);
	MUST(inet_pton(AF_INET, host, &ip) == 1 && ntohl(ip.s_addr) >> 24 == 127);
}

static void check_pieces(const struct azure_source *s)
{
	MUST(strlen(s->account) >= 3 && strlen(s->account) <= 24);
	MUST(s->account[strspn(s->account, LOWER)] == '\0');
	MUST(strlen(s->queue) >= 3 && strlen(s->poison) <= 63);
	MUST(s->queue[strspn(s->queue, LOWER "-")] == '\0');
	MUST(strncmp(s->poison, s->queue, strlen(s->queue)) == 0);
	MUST(strcmp(s->poison + strlen(s->queue), AZURE_POISON_SUFFIX) == 0);
	MUST(s->prefix[0] == '\0' || strcmp(s->prefix + 1, s->account) == 0);
	/* A request's URL begins with it. */
	MUST(fuzz_printable(s->origin) && !strpbrk(s->origin, " ?#@\\\"%"));
	check_plain(s->origin);
}

/* The source that the pieces make is the same source. */
static void check_round_trip(const struct azure_source *s)
{
	struct azure_source again;
	char *text, err[256];

	MUST(asprintf(&text, "%s%s%s/%s", s->prefix[0] ? "azure-queue+" : "", s->origin,
		     s->prefix, s->queue) > 0);
	MUST(azure_source_parse(text, &again, err, sizeof(err)) == 0);
	MUST(strcmp(again.origin, s->origin) == 0);
	MUST(strcmp(again.prefix, s->prefix) == 0);
	MUST(strcmp(again.account, s->account) == 0);
	MUST(strcmp(again.queue, s->queue) == 0);
	azure_source_fini(&again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), err[256] = "";
	struct azure_source s;
	int r = azure_source_parse(text, &s, err, sizeof(err));

	MUST(r == 0 || r == -EINVAL);
	MUST((r < 0) == fuzz_says(err, sizeof(err)));
	MUST(r == 0 || (!s.origin && !s.prefix && !s.account && !s.queue && !s.poison));
	if (r == 0) {
		MUST(azure_source_is(text));
		check_pieces(&s);
		check_round_trip(&s);
	}
	(void)azure_source_is(text);
	azure_source_fini(&s);
	free(text);
	return 0;
}
