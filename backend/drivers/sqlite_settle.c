/* SPDX-License-Identifier: MIT */
/*
 * One function per settle operation.
 *
 * A receipt is the number of the lease: each new one of a message has the next.
 * So a statement that names both, and asks for a mount, touches the message
 * only while this very lease is held. When it touched nothing, a look tells
 * whether the message is gone or somebody else's.
 */
#include <errno.h>
#include <string.h>

#include "../base/clock.h"
#include "sqlite_int.h"

/* After a statement with a receipt: CHANGED rows, or -errno. */
static int held(struct sq *s, int changed, int64_t id)
{
	int r;

	if (changed != 0)
		return changed < 0 ? changed : 0;
	r = sq_step(s, sq_start(s, SQ_EXISTS, "i", id));
	sqlite3_reset(s->stmt[SQ_EXISTS]);
	if (r < 0)
		return r;
	return r ? -ESTALE : -ENOENT;
}

static int settle_delete(struct sq *s, int64_t id, int64_t receipt)
{
	int r = held(s, sq_exec(s, SQ_DELETE, "ii", id, receipt), id);

	if (r < 0)
		return r;
	s->state.leased--;
	r = sq_exec(s, SQ_BODY_DELETE, "i", id);
	return r < 0 ? r : 0;
}

static int settle_release(
	struct sq *s, const struct settle *it, int64_t id, int64_t receipt)
{
	int64_t at = 0;
	int r;

	if (it->delay_ns > 0)
		at = clock_add(clock_wall(), it->delay_ns) / NS_PER_US;
	r = held(s,
		sq_exec(s, SQ_RELEASE, "iiii", id, receipt, at, (int64_t)it->attempts),
		id);
	if (r < 0)
		return r;
	s->state.leased--;
	s->state.waiting++;
	s->ring = true;
	return 0;
}

static int settle_renew(struct sq *s, struct settle *it, int64_t id, int64_t receipt)
{
	int64_t at = clock_add(clock_wall(), it->delay_ns) / NS_PER_US;
	int r = held(s, sq_exec(s, SQ_RENEW, "iii", id, receipt, at), id);

	if (r == 0)
		it->lease_until_ns = clock_add(clock_mono(), it->delay_ns);
	return r;
}

static int settle_bury(struct sq *s, const struct settle *it, int64_t id, int64_t receipt)
{
	int r = held(s,
		sq_exec(s, SQ_BURY, "iiit", id, receipt, (int64_t)it->attempts,
			it->reason),
		id);

	if (r == 0)
		r = sq_exec(s, SQ_DELETE, "ii", id, receipt);
	if (r < 0)
		return r;
	s->state.leased--;
	s->state.dead++;
	s->ring = true;
	return 0;
}

static int settle_record(struct sq *s, const char *record, int64_t id, int64_t receipt)
{
	if (record && strlen(record) > DRIVER_RECORD_MAX)
		return -EINVAL;
	return held(s, sq_exec(s, SQ_RECORD, "iit", id, receipt, record), id);
}

static int settle_discard(struct sq *s, int64_t id)
{
	int r = sq_exec(s, SQ_DEAD_DELETE, "i", id);

	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	s->state.dead--;
	s->ring = true;
	r = sq_exec(s, SQ_BODY_DELETE, "i", id);
	return r < 0 ? r : 0;
}

static int settle_revive(struct sq *s, int64_t id)
{
	int r = sq_exec(s, SQ_REVIVE, "i", id);

	if (r == 0)
		return -ENOENT;
	if (r > 0)
		r = sq_exec(s, SQ_DEAD_DELETE, "i", id);
	if (r < 0)
		return r;
	s->state.dead--;
	s->state.waiting++;
	s->ring = true;
	return 0;
}

static int settle_leased(struct sq *s, struct settle *it, int64_t id)
{
	int64_t receipt = sq_number(it->receipt);

	if (receipt < 0)
		return -EINVAL;
	switch (it->op) {
	case SETTLE_DELETE:
		return settle_delete(s, id, receipt);
	case SETTLE_RELEASE:
		return settle_release(s, it, id, receipt);
	case SETTLE_RENEW:
		return settle_renew(s, it, id, receipt);
	case SETTLE_BURY:
		return settle_bury(s, it, id, receipt);
	case SETTLE_CLAIM:
		return settle_record(s, it->record ? it->record : "", id, receipt);
	case SETTLE_UNCLAIM:
		return settle_record(s, NULL, id, receipt);
	default:
		return -EINVAL;
	}
}

void sq_settle(struct sq *s, struct settle *it)
{
	int64_t id = sq_number(it->id);

	it->new_receipt = NULL;
	it->lease_until_ns = 0;
	if (id < 0)
		it->err = -EINVAL;
	else if (it->op == SETTLE_DISCARD)
		it->err = settle_discard(s, id);
	else if (it->op == SETTLE_REVIVE)
		it->err = settle_revive(s, id);
	else
		it->err = settle_leased(s, it, id);
}
