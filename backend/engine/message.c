/* SPDX-License-Identifier: MIT */
#include "message.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct message *message_create(struct driver_msg *d)
{
	struct message *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->d = *d;
	memset(d, 0, sizeof(*d));
	m->state = MESSAGE_READY;
	return m;
}

void message_destroy(struct message *m)
{
	if (!m)
		return;
	assert(!m->claim && !m->want_queued && !heap_has(&m->due));
	driver_msg_fini(&m->d);
	free(m->alias);
	free(m);
}

int message_compare(const struct message *a, const struct message *b)
{
	if (a->d.enqueued_ns != b->d.enqueued_ns)
		return a->d.enqueued_ns < b->d.enqueued_ns ? -1 : 1;
	return (a->serial > b->serial) - (a->serial < b->serial);
}

void message_insert(struct message_list *list, struct message *m)
{
	struct message *at = TAILQ_LAST(list, message_list);

	while (at && message_compare(at, m) > 0)
		at = TAILQ_PREV(at, message_list, link);
	if (at)
		TAILQ_INSERT_AFTER(list, at, m, link);
	else
		TAILQ_INSERT_HEAD(list, m, link);
}
