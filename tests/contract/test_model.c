/* SPDX-License-Identifier: MIT */
/*
 * A driver against a model of a queue: random requests, and after each of them
 * the counts, and at the end every message, must be what the model has.
 */
#include "ask_settle.h"

#define N     48 /* messages of one run */
#define STEPS 1500

enum where { ABSENT, WAITING, DELAYED, LEASED, DEAD, GONE };

struct item {
	enum where where;
	char *id;
	char *receipt; /* the newest, while leased; then an old one */
	bool record;
	unsigned attempts;
	int64_t until_ns; /* of the delay or lease; monotonic */
};

struct model {
	struct bed *b;
	struct item items[N]; /* in queue order */
	unsigned sent;
	uint64_t seed;
};

static unsigned draw(struct model *m, unsigned n)
{
	m->seed = m->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(m->seed >> 33) % n;
}

static struct item *pick(struct model *m, enum where where)
{
	unsigned start = draw(m, N);

	for (unsigned i = 0; i < N; i++) {
		struct item *it = &m->items[(start + i) % N];

		if (it->where == where)
			return it;
	}
	return NULL;
}

static void wake_due(struct model *m)
{
	for (unsigned i = 0; i < m->sent; i++) {
		struct item *it = &m->items[i];

		if (it->where != DELAYED && it->where != LEASED)
			continue;
		if (it->until_ns > clock_mono())
			continue;
		if (it->where == LEASED && it->record)
			it->attempts++;
		it->record = false;
		it->where = WAITING;
	}
}

static void step_send(struct model *m)
{
	struct item *it;

	if (m->sent == N)
		return;
	it = &m->items[m->sent++];
	it->id = ask_send(m->b, "body");
	it->where = WAITING;
}

static void step_draft(struct model *m)
{
	struct driver_req req;
	struct item *it;

	if (m->sent == N)
		return;
	req = ask_draft_send(m->b, ask_draft(m->b, 0, "name", "body"), "body", NULL);
	it = &m->items[m->sent++];
	it->id = req.u.draft.msg_id;
	it->where = WAITING;
}

static void check_received(struct model *m, const struct driver_msg *msg, unsigned *from)
{
	struct item *it;

	while (*from < m->sent && m->items[*from].where != WAITING)
		(*from)++;
	CHECK(*from < m->sent);
	it = &m->items[(*from)++];
	CHECK_STR(msg->id, it->id);
	CHECK_INT(msg->attempts, it->attempts);
	ask_body(msg->body, "body");
	free(it->receipt);
	it->receipt = strdup(msg->receipt);
	CHECK(it->receipt);
	it->where = LEASED;
	it->until_ns = clock_mono() + LEASE_NS;
}

static void step_receive(struct model *m)
{
	unsigned max = 1 + draw(m, 6), waiting = 0, from = 0;
	struct driver_req got;

	wake_due(m);
	for (unsigned i = 0; i < m->sent; i++)
		waiting += m->items[i].where == WAITING;
	got = ask_receive(m->b, max);
	CHECK_INT(got.u.receive.n, waiting < max ? waiting : max);
	for (unsigned i = 0; i < got.u.receive.n; i++)
		check_received(m, &got.u.receive.msgs[i], &from);
	driver_req_fini(&got);
}

static int settle(struct model *m, struct item *it, enum settle_op op, int64_t delay_ns)
{
	struct settle s = {
		.op = op,
		.id = it->id,
		.receipt = it->receipt,
		.delay_ns = delay_ns,
		.attempts = it->attempts,
		.reason = "model",
		.record = "record",
	};

	return ask_settle_of(m->b, m->b->d, &s);
}

static void step_leased(struct model *m)
{
	static const enum settle_op ops[] = {SETTLE_DELETE, SETTLE_RELEASE,
		SETTLE_RELEASE, SETTLE_RENEW, SETTLE_BURY, SETTLE_CLAIM, SETTLE_UNCLAIM};
	enum settle_op op = ops[draw(m, sizeof(ops) / sizeof(ops[0]))];
	int64_t delay_ns = (int64_t)draw(m, 3) * NS_PER_S;
	struct item *it = pick(m, LEASED);

	if (!it)
		return;
	if (op == SETTLE_RELEASE || op == SETTLE_BURY)
		it->attempts += draw(m, 2);
	CHECK_INT(settle(m, it, op, op == SETTLE_RENEW ? LEASE_NS : delay_ns), 0);
	if (op == SETTLE_DELETE)
		it->where = GONE;
	else if (op == SETTLE_BURY)
		it->where = DEAD;
	else if (op == SETTLE_RELEASE)
		it->where = delay_ns ? DELAYED : WAITING;
	it->record = op == SETTLE_CLAIM || (op == SETTLE_RENEW && it->record);
	if (op == SETTLE_RENEW)
		it->until_ns = clock_mono() + LEASE_NS;
	else if (op == SETTLE_RELEASE)
		it->until_ns = clock_mono() + delay_ns;
}

static void step_dead(struct model *m)
{
	bool revive = draw(m, 3) > 0;
	struct item *it = pick(m, DEAD);

	if (!it)
		return;
	CHECK_INT(settle(m, it, revive ? SETTLE_REVIVE : SETTLE_DISCARD, 0), 0);
	it->where = revive ? WAITING : GONE;
	it->attempts = 0;
	it->record = false;
}

/* What an earlier lease says counts no more. */
static void step_stale(struct model *m)
{
	static const enum settle_op ops[] = {SETTLE_DELETE, SETTLE_RELEASE, SETTLE_RENEW,
		SETTLE_BURY, SETTLE_CLAIM, SETTLE_UNCLAIM};
	enum where where = draw(m, 2) ? WAITING : DELAYED;
	struct item *it = pick(m, draw(m, 4) ? where : GONE);

	if (!it || !it->receipt)
		return;
	CHECK_INT(settle(m, it, ops[draw(m, 6)], NS_PER_S),
		it->where == GONE ? -ENOENT : -ESTALE);
}

static void check_counts(struct model *m)
{
	unsigned n[GONE + 1] = {0};

	for (unsigned i = 0; i < N; i++)
		n[m->items[i].where]++;
	ask_depth(m->b, n[WAITING] + n[DELAYED], n[LEASED], n[DEAD]);
}

static void step(struct model *m)
{
	unsigned what = draw(m, 100);

	if (what < 12)
		step_send(m);
	else if (what < 20)
		step_draft(m);
	else if (what < 45)
		step_receive(m);
	else if (what < 75)
		step_leased(m);
	else if (what < 85)
		step_dead(m);
	else if (what < 92)
		step_stale(m);
	else if (what < 99)
		clock_step((int64_t)draw(m, 5) * NS_PER_S);
	else
		ask_restart(m->b, "bed");
	check_counts(m);
}

static void finish(struct model *m)
{
	clock_step(LEASE_NS);
	for (unsigned i = 0; i <= N; i++)
		step_receive(m);
	check_counts(m);
	for (unsigned i = 0; i < N; i++) {
		free(m->items[i].id);
		free(m->items[i].receipt);
	}
}

CONTRACT(a_queue_does_what_its_model_does,
	BED_NEAR | DRIVER_STORE | DRIVER_ATTEMPTS | DRIVER_DEAD)
{
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct model m = {.b = b, .seed = seed};

		clock_fake(1000 * NS_PER_S, INT64_C(1795147200) * NS_PER_S);
		for (unsigned i = 0; i < STEPS; i++)
			step(&m);
		finish(&m);
		driver_close(b->d);
		b->d = NULL;
		bed_fini(b);
		CHECK(bed_init(b, b->factory));
	}
}
