/* SPDX-License-Identifier: MIT */
#include "owner.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not the address: a process that was dead already when its record was revived
 * may have several. */
static bool same(const struct proc *a, const struct proc *b)
{
	return a->pid == b->pid && a->start == b->start;
}

/*
 * The session that bounds the chain. A leader counts for its parent's session,
 * but not where that parent is init: then it is a service, and init, which
 * never ends, would keep its claims after it died.
 */
static pid_t bounding_session(const struct proc *opener)
{
	if (opener->pid != opener->session)
		return opener->session;
	if (!opener->parent || opener->parent->pid == 1)
		return -1;
	return opener->parent->session;
}

/* An ancestor of another session is no recorded ancestor: whoever adopted the
 * orphans of a session does not work on their messages. */
void owner_chain_init(struct owner_chain *chain, struct proc *opener)
{
	pid_t session = bounding_session(opener);
	struct proc *p = opener->parent;

	chain->n = 0;
	chain->has_leader = false;
	chain->p[chain->n++] = opener;
	while (p && p->session == session && chain->n < OWNER_CHAIN_MAX) {
		chain->p[chain->n++] = p;
		if (p->pid == session) {
			chain->has_leader = true;
			return;
		}
		p = p->parent;
	}
}

int owner_index(const struct owner_chain *chain)
{
	for (unsigned i = 0; i < chain->n; i++) {
		if (chain->p[i]->alive)
			return (int)i;
	}
	return -1;
}

bool owner_is_below(const struct proc *caller, const struct proc *p)
{
	for (; caller; caller = caller->parent) {
		if (same(caller, p))
			return true;
	}
	return false;
}

static bool is_recorded(const struct owner_chain *chain, const struct proc *caller)
{
	unsigned n = chain->has_leader ? chain->n - 1 : chain->n;

	for (unsigned i = 0; i < n; i++) {
		if (same(chain->p[i], caller))
			return true;
	}
	return false;
}

bool owner_may(const struct owner_chain *chain, const struct proc *caller)
{
	int i = owner_index(chain);

	if (is_recorded(chain, caller))
		return true;
	return i >= 0 && owner_is_below(caller, chain->p[i]);
}

/* "BOOT PID:START PID:START*", the star for a session leader. */
int owner_record_format(
	const struct owner_chain *chain, const char *boot, char *buf, unsigned long len)
{
	int n = snprintf(buf, len, "%s", boot);
	size_t used = 0;

	for (unsigned i = 0; n >= 0 && (size_t)n < len - used; i++) {
		bool leader = chain->has_leader && i == chain->n - 1;

		used += (size_t)n;
		if (i == chain->n)
			return 0;
		n = snprintf(buf + used, len - used, " %ld:%" PRIu64 "%s",
			(long)chain->p[i]->pid, chain->p[i]->start, leader ? "*" : "");
	}
	return -ENOSPC;
}

/* One decimal number at *S, followed by END; *S is then behind it. */
static int parse_number(const char **s, char end, uint64_t max, uint64_t *out)
{
	char *rest;

	if (**s < '0' || **s > '9')
		return -EINVAL;
	errno = 0;
	*out = strtoull(*s, &rest, 10);
	if (errno || *out > max || (end && *rest != end))
		return -EINVAL;
	*s = end ? rest + 1 : rest;
	return 0;
}

static int parse_link(const char **s, struct owner_record *rec)
{
	uint64_t pid, start;

	if (rec->n == OWNER_CHAIN_MAX || rec->has_leader || *(*s)++ != ' ')
		return -EINVAL;
	if (parse_number(s, ':', INT32_MAX, &pid) ||
		parse_number(s, 0, UINT64_MAX, &start))
		return -EINVAL;
	rec->p[rec->n].pid = (pid_t)pid;
	rec->p[rec->n].start = start;
	rec->n++;
	if (**s == '*') {
		rec->has_leader = true;
		(*s)++;
	}
	return 0;
}

int owner_record_parse(const char *text, struct owner_record *rec)
{
	size_t len = strcspn(text, " ");

	memset(rec, 0, sizeof(*rec));
	if (len == 0 || len >= sizeof(rec->boot))
		return -EINVAL;
	memcpy(rec->boot, text, len);
	for (text += len; *text;) {
		if (parse_link(&text, rec))
			return -EINVAL;
	}
	/* A leader is never the opener itself. */
	return rec->n > (rec->has_leader ? 1u : 0u) ? 0 : -EINVAL;
}
