/* SPDX-License-Identifier: MIT */
/*
 * Claims: who handles a message, and what happens when he ends.
 *
 * A claim records the chain of processes above its opener (owner.h). The first
 * one alive is the owner and keeps the claim in the list of its holder. When a
 * process ends, its claims pass on to the next one alive; how it ended is known
 * only once its parent has reaped it, so until then a claim also stands in the
 * `passed` list of the one that left it: a bad end takes it back from the heir.
 */
#include "claim.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "claim_record.h"

/* What one process holds. Hangs on proc->user while any list has a member. */
struct holder {
	struct proc *p;
	struct claim_list owned;  /* it is the owner */
	struct claim_list left;   /* the same, but it went on to other work */
	struct claim_list passed; /* it was, and how it ended is not known yet */
};

static struct holder *holder_of(struct proc *p)
{
	struct holder *h = p->user;

	if (h)
		return h;
	h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	h->p = procs_ref(p);
	TAILQ_INIT(&h->owned);
	TAILQ_INIT(&h->left);
	TAILQ_INIT(&h->passed);
	p->user = h;
	return h;
}

static void holder_put(struct engine *e, struct holder *h)
{
	if (!TAILQ_EMPTY(&h->owned) || !TAILQ_EMPTY(&h->left) || !TAILQ_EMPTY(&h->passed))
		return;
	h->p->user = NULL;
	procs_unref(e->procs, h->p);
	free(h);
}

static void hold(struct claim *c, struct holder *h)
{
	c->holder = h;
	if (c->t.left_ns == CLOCK_NEVER)
		TAILQ_INSERT_TAIL(&h->owned, c, link);
	else
		TAILQ_INSERT_TAIL(&h->left, c, link);
}

static void unhold(struct claim *c)
{
	if (!c->holder)
		return;
	if (c->t.left_ns == CLOCK_NEVER)
		TAILQ_REMOVE(&c->holder->owned, c, link);
	else
		TAILQ_REMOVE(&c->holder->left, c, link);
	c->holder = NULL;
}

static void forget_passed(struct engine *e, struct claim *c)
{
	struct holder *h = c->passed_by;

	if (!h)
		return;
	TAILQ_REMOVE(&h->passed, c, passed_link);
	c->passed_by = NULL;
	holder_put(e, h);
}

static struct claim *claim_create(struct engine *e, struct message *m)
{
	struct claim *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->m = m;
	c->t.claimed_ns = clock_mono();
	c->t.inherited_ns = CLOCK_NEVER;
	c->t.left_ns = CLOCK_NEVER;
	c->claimed_wall_ns = clock_wall();
	c->read = m->d.size == 0;
	(void)e;
	return c;
}

void claim_free(struct engine *e, struct message *m)
{
	struct claim *c = m->claim;
	struct holder *h;

	if (!c)
		return;
	h = c->holder;
	unhold(c);
	if (h)
		holder_put(e, h);
	forget_passed(e, c);
	for (unsigned i = 0; i < c->chain.n; i++)
		procs_unref(e->procs, c->chain.p[i]);
	free(c);
	m->claim = NULL;
	free(m->alias);
	m->alias = NULL;
}

/* The inheritors of CALLER's chain go on: what they inherited is finished. */
static void went_on(struct engine *e, const struct owner_chain *chain)
{
	int64_t now = clock_mono();
	struct claim *c, *next;

	for (unsigned i = 1; i < chain->n; i++) {
		struct holder *h = chain->p[i]->user;

		for (c = h ? TAILQ_FIRST(&h->owned) : NULL; c; c = next) {
			next = TAILQ_NEXT(c, link);
			if (c->chain.p[0] == h->p)
				continue;
			unhold(c);
			c->t.left_ns = now;
			hold(c, h);
			ledger_want(e, c->m, WANT_CLAIM);
			claim_look(e, c->m);
		}
	}
}

static void enter_flight(struct engine *e, struct message *m)
{
	m->state = MESSAGE_CLAIMED;
	TAILQ_INSERT_TAIL(&e->in_flight, m, link);
	e->n_in_flight++;
	e->in_flight_bytes += m->d.size;
	run_end_began(e);
}

void claim_leave_flight(struct engine *e, struct message *m)
{
	TAILQ_REMOVE(&e->in_flight, m, link);
	e->n_in_flight--;
	e->in_flight_bytes -= m->d.size;
	claim_free(e, m);
	run_end_ended(e);
}

/* The end of such a caller cannot be seen: as if inherited from the start. */
static void claim_unseen(struct engine *e, struct claim *c)
{
	c->t.inherited_ns = c->t.claimed_ns;
	if (!e->unseen_told)
		log_warn(
			"claim", "callers from another pid namespace share their claims");
	e->unseen_told = true;
}

int claim_start(struct engine *e, struct message *m, struct proc *caller, bool explicit)
{
	struct claim *c = claim_create(e, m);
	struct holder *h = c ? holder_of(caller) : NULL;

	if (!h) {
		free(c);
		return -ENOMEM;
	}
	c->explicit = explicit;
	owner_chain_init(&c->chain, caller);
	for (unsigned i = 0; i < c->chain.n; i++)
		procs_ref(c->chain.p[i]);
	if (!caller->pid)
		claim_unseen(e, c);
	window_take_ready(e, m);
	if (!e->n_ready)
		e->hold_off_ns = 0;
	m->claim = c;
	hold(c, h);
	enter_flight(e, m);
	went_on(e, &c->chain);
	e->consumed_ns = c->claimed_wall_ns;
	e->stats.claims_total++;
	claim_look(e, m);
	ledger_want(e, m, WANT_CLAIM);
	peers_check(e);
	return 0;
}

void claim_undo(struct engine *e, struct message *m)
{
	claim_leave_flight(e, m);
	window_add_ready(e, m);
	window_set_due(
		e, m, lease_renew_at(m->d.lease_until_ns, e->cfg.lease.visibility_ns));
	if (m->recorded || m->busy)
		ledger_want(e, m, WANT_UNCLAIM);
	else
		ledger_drop(e, m, WANT_CLAIM);
	e->ev.unclaimed(e->ev.arg, m);
	window_serve_waiters(e);
	if (e->stopping || e->draining || e->poller.paused)
		window_give_back(e, UINT32_MAX);
	engine_check_end(e);
}

void claim_touch(struct claim *c)
{
	struct holder *h = c->holder;

	unhold(c);
	c->t.left_ns = CLOCK_NEVER;
	hold(c, h);
	if (c->t.inherited_ns != CLOCK_NEVER)
		c->t.inherited_ns = clock_mono();
}

/* ---- the end of a claim ---- */

static void settle_as(struct engine *e, struct message *m, enum lease_cause cause,
	const struct lease_outcome *o)
{
	log_info("lease", "handling ended id=%s cause=%s attempts=%u %s", m->d.id,
		lease_cause_name(cause), o->attempts, o->bury ? "buried" : "released");
	if (o->bury) {
		m->final = (struct settle){.op = SETTLE_BURY,
			.attempts = o->attempts,
			.reason = lease_cause_name(cause)};
		engine_count_burial(e);
	} else {
		m->final = (struct settle){.op = SETTLE_RELEASE,
			.attempts = o->attempts,
			.delay_ns = o->delay_ns};
		e->stats.released_total++;
	}
	e->n_settling++;
	ledger_want(e, m, WANT_FINAL);
	engine_changed(e);
}

void claim_end(
	struct engine *e, struct message *m, enum lease_cause cause, int64_t delay_ns)
{
	const struct lease_claim *t = &m->claim->t;
	int64_t now = clock_mono();
	int64_t since = t->left_ns == CLOCK_NEVER ? 0 : now - t->left_ns;
	struct lease_outcome o;

	if (!m->claim->read && !m->claim->explicit && cause != LEASE_RELEASED)
		cause = LEASE_UNREAD;
	o = lease_outcome(&e->cfg.lease, cause, m->d.attempts, delay_ns, since);
	e->ev.left(e->ev.arg, m);
	run_end_observe(e, m, now - since); /* a left one was handled until then */
	window_detach(e, m);
	settle_as(e, m, cause, &o);
	engine_check_end(e);
}

void claim_look(struct engine *e, struct message *m)
{
	struct claim *c = m->claim;
	struct lease_decision d;

	if (m->state == MESSAGE_READY) {
		window_set_due(e, m,
			lease_renew_at(m->d.lease_until_ns, e->cfg.lease.visibility_ns));
		return;
	}
	c->t.lease_until_ns = m->d.lease_until_ns;
	d = lease_decide(&e->cfg.lease, &c->t, clock_mono());
	if (d.what == LEASE_END) {
		claim_end(e, m, c->t.left_ns == CLOCK_NEVER ? LEASE_EXPIRED : LEASE_LEFT,
			-1);
		return;
	}
	window_set_due(e, m, d.again_ns);
	if (d.what == LEASE_RENEW) {
		m->renew_ns = d.renew_ns;
		ledger_want(e, m, WANT_RENEW);
	}
}

/* ---- owners that end ---- */

static void pass_on(struct engine *e, struct claim *c)
{
	struct holder *from = c->holder;
	int heir = owner_index(&c->chain);
	struct holder *to = heir < 0 ? NULL : holder_of(c->chain.p[heir]);

	if (!to) {
		claim_end(e, c->m, LEASE_KILLED, -1);
		return;
	}
	unhold(c);
	forget_passed(e, c);
	c->passed_by = from;
	TAILQ_INSERT_TAIL(&from->passed, c, passed_link);
	hold(c, to);
	c->t.inherited_ns = clock_mono();
	claim_look(e, c->m);
}

void claim_exited(void *arg, struct proc *p)
{
	struct engine *e = arg;
	struct holder *h = p->user;
	struct claim *c;

	if (!h)
		return;
	procs_ref(p);
	while (p->user && (c = TAILQ_FIRST(&h->owned)))
		pass_on(e, c);
	while (p->user && (c = TAILQ_FIRST(&h->left)))
		pass_on(e, c);
	procs_unref(e->procs, p);
}

/*
 * How a process ended decides what becomes of the claims it passed on. That of
 * the opener does not count (grep exits 1, a reader dies of SIGPIPE), unless a
 * signal other than SIGPIPE ended it: then its work was cut off too.
 */
static bool ended_badly(const struct claim *c, const struct proc *p,
	const struct proc_end *end, enum lease_cause *cause)
{
	bool opener = c->chain.p[0] == p;

	*cause = end->signal ? LEASE_KILLED : LEASE_FAILED;
	if (opener)
		return end->signal && end->signal != SIGPIPE;
	return end->signal || end->exit_code;
}

void claim_ended(void *arg, struct proc *p, const struct proc_end *end)
{
	struct engine *e = arg;
	enum lease_cause cause;
	struct holder *h;
	struct claim *c;

	procs_ref(p);
	while ((h = p->user) && (c = TAILQ_FIRST(&h->passed))) {
		bool bad = ended_badly(c, p, end, &cause);

		forget_passed(e, c);
		if (bad)
			claim_end(e, c->m, cause, -1);
	}
	procs_unref(e->procs, p);
}

bool claim_allows(struct engine *e, struct message *m, struct proc *caller)
{
	struct claim *c = m->claim;

	if (!e->cfg.owned || owner_may(&c->chain, caller))
		return true;
	/* The owner may have exited a moment ago, unseen by the loop as yet. */
	for (unsigned i = 0; i < OWNER_CHAIN_MAX && m->state == MESSAGE_CLAIMED; i++)
		if (procs_check_alive(e->procs, c->holder->p))
			break;
	return m->state == MESSAGE_CLAIMED && owner_may(&c->chain, caller);
}

/* ---- surviving a restart ---- */

int claim_record(struct engine *e, const struct message *m, char *buf, size_t len)
{
	const struct claim *c = m->claim;
	struct claim_record r = {.claimed_ns = c->claimed_wall_ns,
		.read = c->read,
		.explicit = c->explicit,
		.alias = m->alias};

	if (c->t.left_ns != CLOCK_NEVER)
		r.left_ns = c->claimed_wall_ns + c->t.left_ns - c->t.claimed_ns;
	return claim_record_format(&r, &c->chain, procs_boot_id(e->procs), buf, len);
}

/* The chain as recorded; nobody of it lives after a reboot. */
static void revive_chain(
	struct engine *e, struct owner_chain *chain, const struct owner_record *rec)
{
	if (strcmp(rec->boot, procs_boot_id(e->procs)) != 0)
		return;
	chain->has_leader = rec->has_leader;
	for (unsigned i = 0; i < rec->n; i++) {
		struct proc *p = procs_revive(e->procs, rec->p[i].pid, rec->p[i].start);

		if (!p)
			return;
		chain->p[chain->n++] = p;
	}
}

static int parse_record(struct engine *e, struct claim *c, struct message *m)
{
	struct owner_record owner;
	struct claim_record r;
	int err = claim_record_parse(m->d.record, &r, &owner);

	if (err)
		return err;
	c->read = r.read;
	c->explicit = r.explicit;
	c->claimed_wall_ns = r.claimed_ns;
	c->t.claimed_ns -= clock_wall() - r.claimed_ns;
	if (r.left_ns)
		c->t.left_ns = c->t.claimed_ns + (r.left_ns - r.claimed_ns);
	if (r.alias && !(m->alias = strdup(r.alias)))
		return -ENOMEM;
	revive_chain(e, &c->chain, &owner);
	return 0;
}

void claim_restore(struct engine *e, struct message *m)
{
	struct claim *c = claim_create(e, m);
	struct holder *h = NULL;
	int owner = -1;

	m->recorded = true;
	m->claim = c;
	enter_flight(e, m);
	if (c && !parse_record(e, c, m))
		owner = owner_index(&c->chain);
	if (owner >= 0)
		h = holder_of(c->chain.p[owner]);
	(void)e->ev.arrived(e->ev.arg, m); /* its owner has it all the same */
	if (!c) {
		window_lost(e, m, "out of memory: a claim is left to its lease");
		return;
	}
	if (!h) {
		claim_end(e, m, LEASE_KILLED, -1);
		return;
	}
	if (owner > 0 || !c->chain.p[0]->pid)
		c->t.inherited_ns = clock_mono();
	hold(c, h);
	claim_look(e, m);
}
