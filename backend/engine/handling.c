/* SPDX-License-Identifier: MIT */
/* What users of the engine do with one message (engine.h, "messages"). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "claim.h"

int engine_may(struct engine *e, struct message *m, struct proc *caller)
{
	if (m->state == MESSAGE_READY)
		return engine_hands_out(e) ? 0 : -EAGAIN;
	if (m->state == MESSAGE_CLAIMED && claim_allows(e, m, caller))
		return 0;
	return m->state == MESSAGE_SETTLING ? -ENOENT : -EBUSY;
}

int engine_claim(struct engine *e, struct message *m, struct proc *caller, bool explicit,
	bool opens)
{
	int err = engine_may(e, m, caller);

	if (!err && m->state == MESSAGE_READY)
		err = claim_start(e, m, caller, explicit);
	if (err)
		return err;
	m->claim->explicit |= explicit;
	m->claim->opens += opens;
	return 0;
}

void engine_was_read(struct engine *e, struct message *m)
{
	if (!m->claim || m->claim->read)
		return;
	m->claim->read = true;
	if (m->recorded || m->busy)
		ledger_want(e, m, WANT_CLAIM);
}

void engine_close(struct engine *e, struct message *m)
{
	struct claim *c = m->claim;

	if (m->state != MESSAGE_CLAIMED || !c->opens)
		return;
	c->opens--;
	if (!c->opens && !c->read && !c->explicit)
		claim_undo(e, m);
}

bool engine_is_opener(const struct message *m, const struct proc *caller)
{
	return m->claim && m->claim->chain.n && m->claim->chain.p[0] == caller;
}

int engine_owner_pid(const struct message *m)
{
	int i = m->claim ? owner_index(&m->claim->chain) : -1;

	return i < 0 ? -1 : m->claim->chain.p[i]->pid;
}

static void finish(struct engine *e, struct message *m, const struct settle *final)
{
	e->consumed_ns = clock_wall();
	run_end_observe(e, m, clock_mono());
	window_detach(e, m);
	m->final = *final;
	e->n_settling++;
	ledger_want(e, m, WANT_FINAL);
	engine_check_end(e);
}

int engine_bury(
	struct engine *e, struct message *m, struct proc *caller, const char *reason)
{
	int err = engine_may(e, m, caller);

	if (err)
		return err;
	log_info("lease", "buried id=%s reason=%s", m->d.id, reason);
	engine_count_burial(e);
	finish(e, m,
		&(struct settle){
			.op = SETTLE_BURY, .attempts = m->d.attempts, .reason = reason});
	return 0;
}

int engine_remove(struct engine *e, struct message *m, struct proc *caller)
{
	int err = engine_may(e, m, caller);
	bool read = m->claim && m->claim->read;

	if (err)
		return err;
	if (!read && !e->cfg.rm_unread_deletes)
		return engine_bury(e, m, caller, "unread");
	e->stats.handled_total++;
	engine_count_own(e, -1);
	finish(e, m, &(struct settle){.op = SETTLE_DELETE});
	return 0;
}

int engine_release(struct engine *e, struct message *m, int64_t delay_ns)
{
	if (m->state != MESSAGE_CLAIMED)
		return -EINVAL;
	claim_end(e, m, LEASE_RELEASED, delay_ns);
	return 0;
}

int engine_unclaim(struct engine *e, struct message *m)
{
	if (m->state != MESSAGE_CLAIMED)
		return -EINVAL;
	claim_undo(e, m);
	return 0;
}

void engine_touch(struct engine *e, struct message *m)
{
	if (m->state != MESSAGE_CLAIMED)
		return;
	claim_touch(m->claim);
	m->renew_ns = e->cfg.lease.visibility_ns;
	ledger_want(e, m, WANT_RENEW);
}

int engine_alias(struct engine *e, struct message *m, const char *alias)
{
	char *copy = strdup(alias);

	if (!copy)
		return -ENOMEM;
	free(m->alias);
	m->alias = copy;
	ledger_want(e, m, WANT_CLAIM);
	return 0;
}
