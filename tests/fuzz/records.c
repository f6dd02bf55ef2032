/* SPDX-License-Identifier: MIT */
/* Who owned a claim, as the state keeps it. */
#include "fuzz.h"

#include <errno.h>

#include "backend/engine/owner.h"

static void check_record(const struct owner_record *rec)
{
	struct owner_record again;
	struct proc procs[OWNER_CHAIN_MAX] = {0};
	struct owner_chain chain = {.n = rec->n, .has_leader = rec->has_leader};
	char text[sizeof(rec->boot) + OWNER_CHAIN_MAX * 40];

	MUST(rec->n >= 1 && rec->n <= OWNER_CHAIN_MAX);
	MUST(!rec->has_leader || rec->n > 1);
	MUST(fuzz_says(rec->boot, sizeof(rec->boot)) && !strchr(rec->boot, ' '));
	for (unsigned i = 0; i < rec->n; i++) {
		MUST(rec->p[i].pid >= 0);
		procs[i].pid = rec->p[i].pid;
		procs[i].start = rec->p[i].start;
		chain.p[i] = &procs[i];
	}
	MUST(owner_record_format(&chain, rec->boot, text, sizeof(text)) == 0);
	MUST(owner_record_parse(text, &again) == 0);
	MUST(memcmp(&again, rec, sizeof(again)) == 0);
	/* And in every room that is too small for it. */
	for (size_t len = 1; len <= strlen(text); len++) {
		char *small = malloc(len);

		MUST(small);
		MUST(owner_record_format(&chain, rec->boot, small, len) == -ENOSPC);
		free(small);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct owner_record rec;
	int r = owner_record_parse(text, &rec);

	MUST(r == 0 || r == -EINVAL);
	if (r == 0)
		check_record(&rec);
	free(text);
	return 0;
}
