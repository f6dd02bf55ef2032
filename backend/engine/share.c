/* SPDX-License-Identifier: MIT */
#include "share.h"

/* "A while" everywhere here is one visibility timeout: the time that anything
 * done to a message needs at most to be seen by all. */
static bool long_ago(const struct share_facts *f, int64_t then_ns)
{
	return then_ns == 0 || f->now_ns - then_ns >= f->visibility_ns;
}

bool share_is_hungry(const struct share_facts *f)
{
	if (f->unread > 0)
		return false;
	if (f->waiting || long_ago(f, f->gave_ns))
		return true;
	return f->consumed_ns > f->gave_ns;
}

unsigned share_give(const struct share_facts *f, int64_t peer_consumed_ns)
{
	/* What a reader here is about to be given is not for others. */
	if (f->waiting)
		return 0;
	if (peer_consumed_ns > f->consumed_ns && long_ago(f, f->consumed_ns))
		return f->unread;
	return f->unread - f->unread / 2;
}
