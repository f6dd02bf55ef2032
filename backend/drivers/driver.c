/* SPDX-License-Identifier: MIT */
/* Checked, traced wrappers around a driver, and what frees its answers. */
#include "driver.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/log.h"

static const struct {
	const char *name;
	unsigned caps; /* what a driver must be able to do for it */
} ops[] = {
	[DRIVER_RECEIVE] = {"receive", 0},
	[DRIVER_SETTLE] = {"settle", 0},
	[DRIVER_SEND] = {"send", 0},
	[DRIVER_DEPTH] = {"depth", 0},
	[DRIVER_SYNC] = {"sync", 0},
	[DRIVER_DRAFT_PUT] = {"draft-put", DRIVER_STORE},
	[DRIVER_DRAFT_NAME] = {"draft-name", DRIVER_STORE},
	[DRIVER_DRAFT_SEND] = {"draft-send", DRIVER_STORE},
	[DRIVER_DRAFT_SEAL] = {"draft-seal", DRIVER_STORE},
	[DRIVER_DRAFT_DROP] = {"draft-drop", DRIVER_STORE},
	[DRIVER_LOAD] = {"load", DRIVER_STORE},
	[DRIVER_DEAD_LIST] = {"dead-list", DRIVER_DEAD},
	[DRIVER_DEAD_READ] = {"dead-read", DRIVER_DEAD},
	[DRIVER_PEERS] = {"peers", DRIVER_PEERS_KNOWN},
	[DRIVER_KEEP] = {"keep", DRIVER_KEEPER},
	[DRIVER_RECALL] = {"recall", DRIVER_KEEPER},
};
_Static_assert(sizeof(ops) / sizeof(ops[0]) == DRIVER_OPS, "each has its name");

static bool err_is_known(int err)
{
	static const int known[] = {0, -EAGAIN, -ENOENT, -ESTALE, -EACCES, -EMSGSIZE,
		-EILSEQ, -EINVAL, -EPROTO, -ENOSPC, -EIO, -ENOMEM};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (err == known[i])
			return true;
	return false;
}

void driver_msg_fini(struct driver_msg *m)
{
	free(m->id);
	free(m->receipt);
	free(m->given);
	free(m->reason);
	free(m->record);
	blob_unref(m->body);
	*m = (struct driver_msg){0};
}

void driver_draft_fini(struct driver_draft *d)
{
	free(d->name);
	blob_unref(d->body);
	*d = (struct driver_draft){0};
}

static void fini_msgs(struct driver_msg **msgs, unsigned *n)
{
	for (unsigned i = 0; i < *n; i++)
		driver_msg_fini(&(*msgs)[i]);
	free(*msgs);
	*msgs = NULL;
	*n = 0;
}

static void fini_drafts(struct driver_draft **drafts, unsigned *n)
{
	for (unsigned i = 0; i < *n; i++)
		driver_draft_fini(&(*drafts)[i]);
	free(*drafts);
	*drafts = NULL;
	*n = 0;
}

static void fini_text(char **text)
{
	free(*text);
	*text = NULL;
}

void driver_req_fini(struct driver_req *req)
{
	switch (req->op) {
	case DRIVER_RECEIVE:
		fini_msgs(&req->u.receive.msgs, &req->u.receive.n);
		break;
	case DRIVER_SEND:
		fini_text(&req->u.send.id);
		break;
	case DRIVER_DRAFT_SEND:
		fini_text(&req->u.draft.msg_id);
		break;
	case DRIVER_LOAD:
		fini_drafts(&req->u.load.drafts, &req->u.load.n_drafts);
		fini_msgs(&req->u.load.msgs, &req->u.load.n_msgs);
		break;
	case DRIVER_DEAD_LIST:
		fini_msgs(&req->u.dead.msgs, &req->u.dead.n);
		break;
	case DRIVER_DEAD_READ:
		blob_unref(req->u.dead_read.body);
		req->u.dead_read.body = NULL;
		break;
	case DRIVER_RECALL:
		for (size_t i = 0; i < req->u.keep.n; i++)
			fini_text(&req->u.keep.items[i].known_reason);
		break;
	case DRIVER_SETTLE:
	case DRIVER_DEPTH:
	case DRIVER_SYNC:
	case DRIVER_DRAFT_PUT:
	case DRIVER_DRAFT_NAME:
	case DRIVER_DRAFT_SEAL:
	case DRIVER_DRAFT_DROP:
	case DRIVER_PEERS:
	case DRIVER_KEEP:
	case DRIVER_OPS:
		break;
	}
}

void driver_detail(struct driver_req *req, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(req->detail, sizeof(req->detail), fmt, ap);
	va_end(ap);
}

const struct driver_ops *driver_ops_of(const struct driver *d)
{
	return ((const struct driver_base *)(const void *)d)->ops;
}

static struct driver_base *base_of(const struct driver *d)
{
	return (struct driver_base *)(void *)(uintptr_t)d;
}

uint64_t driver_max_body(const struct driver *d)
{
	return base_of(d)->max_body;
}

bool driver_carries(const struct driver *d, const void *body, size_t len)
{
	const struct driver_ops *o = driver_ops_of(d);

	return !o->carries || o->carries(d, body, len);
}

uint64_t driver_requests(const struct driver *d)
{
	const struct driver_ops *o = driver_ops_of(d);

	return o->requests ? o->requests(d) : base_of(d)->submitted;
}

int driver_open(const struct driver_ops *o, const struct driver_params *p,
	struct driver **out, char *err, size_t err_len)
{
	int r;

	assert(err_len > 0 && p->loop && p->source && p->identity);
	*out = NULL;
	err[0] = '\0';
	r = o->open(p, out, err, err_len);
	assert(err_is_known(r) && (r == 0) == (*out != NULL));
	assert(r < 0 || driver_max_body(*out) > 0);
	log_debug("driver", "open driver=%s err=%d", o->name, r);
	return r;
}

void driver_close(struct driver *d)
{
	if (!d)
		return;
	log_debug("driver", "close driver=%s", driver_ops_of(d)->name);
	driver_ops_of(d)->close(d);
}

void driver_submit(struct driver *d, struct driver_req *req)
{
	assert(req->op < DRIVER_OPS && req->done);
	assert(driver_can(d, ops[req->op].caps));
	log_debug("driver", "submit op=%s", ops[req->op].name);
	req->err = 0;
	req->detail[0] = '\0';
	req->retry_after_ns = 0;
	base_of(d)->submitted++;
	driver_ops_of(d)->submit(d, req);
}

void driver_complete(struct driver_req *req)
{
	assert(err_is_known(req->err));
	log_debug("driver", "done op=%s err=%d%s%s", ops[req->op].name, req->err,
		req->detail[0] ? " detail=" : "", req->detail);
	req->done(req);
}
