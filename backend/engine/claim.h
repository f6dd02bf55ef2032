/* SPDX-License-Identifier: MIT */
/* One claim; the engine's own (see claim.c). */
#ifndef SPOOLFS_ENGINE_CLAIM_H
#define SPOOLFS_ENGINE_CLAIM_H

#include "engine_int.h"

struct holder;

struct claim {
	struct message *m;
	struct owner_chain chain; /* referenced */
	struct holder *holder;    /* of the owner */
	struct holder *passed_by; /* of the one before, until its end is known */
	TAILQ_ENTRY(claim) link;
	TAILQ_ENTRY(claim) passed_link;
	struct lease_claim t;
	int64_t claimed_wall_ns;
	bool explicit; /* by a rename or .next: not undone by a close */
	bool read;     /* something of it was read */
	unsigned opens;
};

TAILQ_HEAD(claim_list, claim);

int claim_start(struct engine *e, struct message *m, struct proc *caller, bool explicit);
/* Nobody read it: back to the window, no attempt. */
void claim_undo(struct engine *e, struct message *m);
/* Takes over a claim of an earlier daemon. M is in no list. */
void claim_restore(struct engine *e, struct message *m);
/* Ends M's claim without a deletion; calls left(). */
void claim_end(
	struct engine *e, struct message *m, enum lease_cause cause, int64_t delay_ns);
/* Looks at M's lease now. */
void claim_look(struct engine *e, struct message *m);
/* Its owner says it still works on it: inherited anew, and not left. */
void claim_touch(struct claim *c);
/* M, CLAIMED until now, is handled no more: its claim is freed. */
void claim_leave_flight(struct engine *e, struct message *m);
/* Frees M's claim; M's state is the caller's to set. */
void claim_free(struct engine *e, struct message *m);
bool claim_allows(struct engine *e, struct message *m, struct proc *caller);
/* Formats the record for the driver. 0 or -ENOSPC. */
int claim_record(struct engine *e, const struct message *m, char *buf, size_t len);
void claim_exited(void *arg, struct proc *p);
void claim_ended(void *arg, struct proc *p, const struct proc_end *end);

#endif
