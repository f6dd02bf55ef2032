/* SPDX-License-Identifier: MIT */
/* What is asked of one message, dead letter or draft. */
#ifndef SPOOLFS_TESTS_ASK_SETTLE_H
#define SPOOLFS_TESTS_ASK_SETTLE_H

#include "ask.h"

/* The message ID among those received. */
static inline const struct driver_msg *ask_find(
	const struct driver_req *got, const char *id)
{
	const struct driver_msg *m = got->u.receive.msgs;

	while (m < got->u.receive.msgs + got->u.receive.n && strcmp(m->id, id) != 0)
		m++;
	CHECK(m < got->u.receive.msgs + got->u.receive.n);
	return m;
}

/* Settles one; gives the err of the item. */
static inline int ask_settle_of(struct bed *b, struct driver *d, struct settle *it)
{
	struct driver_req req = {.op = DRIVER_SETTLE};

	req.u.settle.items = it;
	req.u.settle.n = 1;
	CHECK_INT(ask_of(b, d, &req), 0);
	free(it->new_receipt);
	return it->err;
}

/* Leases M for NS from now; it has the newest receipt then. */
static inline int ask_renew(struct bed *b, struct driver_msg *m, int64_t ns)
{
	struct driver_req req = {.op = DRIVER_SETTLE};
	struct settle it = {
		.op = SETTLE_RENEW, .id = m->id, .receipt = m->receipt, .delay_ns = ns};

	req.u.settle.items = &it;
	req.u.settle.n = 1;
	CHECK_INT(ask(b, &req), 0);
	if (it.new_receipt) {
		free(m->receipt);
		m->receipt = it.new_receipt;
	}
	m->lease_until_ns = it.lease_until_ns;
	return it.err;
}

/* OP on M, with nothing but its receipt. */
static inline int ask_settle(struct bed *b, enum settle_op op, const struct driver_msg *m)
{
	struct settle it = {.op = op, .id = m->id, .receipt = m->receipt};

	return ask_settle_of(b, b->d, &it);
}

static inline int ask_claim(struct bed *b, const struct driver_msg *m, const char *record)
{
	struct settle it = {
		.op = SETTLE_CLAIM, .id = m->id, .receipt = m->receipt, .record = record};

	return ask_settle_of(b, b->d, &it);
}

static inline int ask_release(
	struct bed *b, const struct driver_msg *m, int64_t delay_ns, unsigned attempts)
{
	struct settle it = {
		.op = SETTLE_RELEASE,
		.id = m->id,
		.receipt = m->receipt,
		.delay_ns = delay_ns,
		.attempts = attempts,
	};

	return ask_settle_of(b, b->d, &it);
}

static inline int ask_bury(
	struct bed *b, const struct driver_msg *m, const char *reason, unsigned attempts)
{
	struct settle it = {
		.op = SETTLE_BURY,
		.id = m->id,
		.receipt = m->receipt,
		.attempts = attempts,
		.reason = reason,
		.body = m->body,
	};
	int err = ask_settle_of(b, b->d, &it);

	free(it.new_id);
	return err;
}

/* Stores a draft, new (ID 0) or again; gives its id. */
static inline int64_t ask_draft(
	struct bed *b, int64_t id, const char *name, const char *text)
{
	struct driver_req req = {.op = DRIVER_DRAFT_PUT};

	req.u.draft.id = id;
	req.u.draft.name = name;
	req.u.draft.body = ask_blob(text);
	req.u.draft.begun_ns = 1234567890123456789;
	req.u.draft.mode = 0640;
	req.u.draft.uid = 7;
	req.u.draft.gid = 9;
	CHECK_INT(ask(b, &req), 0);
	blob_unref(req.u.draft.body);
	CHECK(req.u.draft.id > 0);
	return req.u.draft.id;
}

/* Sends draft ID, which holds TEXT; driver_req_fini() the answer. */
static inline struct driver_req ask_draft_send(
	struct bed *b, int64_t id, const char *text, const char *given)
{
	struct driver_req req = {.op = DRIVER_DRAFT_SEND};

	req.u.draft.id = id;
	req.u.draft.given = given;
	req.u.draft.body = ask_blob(text);
	CHECK_INT(ask(b, &req), 0);
	blob_unref(req.u.draft.body);
	return req;
}

#endif
