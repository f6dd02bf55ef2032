/* SPDX-License-Identifier: MIT */
/* Claims, and who owned them, as the state keeps it. */
#include "fuzz.h"

#include <errno.h>

#include "backend/engine/claim_record.h"

#define RECORD_MAX (40 + OWNER_CHAIN_MAX * 40)

/* The chain that REC is the record of, of PROCS. */
static struct owner_chain chain_of(
	const struct owner_record *rec, struct proc procs[OWNER_CHAIN_MAX])
{
	struct owner_chain chain = {.n = rec->n, .has_leader = rec->has_leader};

	for (unsigned i = 0; i < rec->n; i++) {
		MUST(rec->p[i].pid >= 0);
		procs[i] = (struct proc){.pid = rec->p[i].pid, .start = rec->p[i].start};
		chain.p[i] = &procs[i];
	}
	return chain;
}

static void check_owner(const struct owner_record *rec)
{
	struct proc procs[OWNER_CHAIN_MAX];
	struct owner_chain chain;
	struct owner_record again;
	char text[RECORD_MAX];

	MUST(rec->n >= 1 && rec->n <= OWNER_CHAIN_MAX);
	MUST(!rec->has_leader || rec->n > 1);
	MUST(fuzz_says(rec->boot, sizeof(rec->boot)) && !strchr(rec->boot, ' '));
	chain = chain_of(rec, procs);
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

static void check_claim(const struct claim_record *r, const struct owner_record *rec)
{
	struct proc procs[OWNER_CHAIN_MAX];
	struct owner_chain chain = chain_of(rec, procs);
	struct owner_record rec2;
	struct claim_record again;
	char text[RECORD_MAX + 300];

	MUST(r->claimed_ns >= 0 && r->left_ns >= 0);
	MUST(!r->alias || (*r->alias && !strchr(r->alias, '/')));
	MUST(claim_record_format(r, &chain, rec->boot, text, sizeof(text)) == 0);
	MUST(claim_record_parse(text, &again, &rec2) == 0);
	MUST(memcmp(&rec2, rec, sizeof(rec2)) == 0);
	MUST(again.claimed_ns == r->claimed_ns && again.left_ns == r->left_ns);
	MUST(again.read == r->read && again.explicit == r->explicit);
	MUST((again.alias != NULL) == (r->alias != NULL));
	MUST(!r->alias || strcmp(again.alias, r->alias) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct owner_record rec;
	struct claim_record claim;
	int r = owner_record_parse(text, &rec);

	MUST(r == 0 || r == -EINVAL);
	if (r == 0)
		check_owner(&rec);
	r = claim_record_parse(text, &claim, &rec);
	MUST(r == 0 || r == -EINVAL);
	if (r == 0)
		check_claim(&claim, &rec);
	free(text);
	return 0;
}
