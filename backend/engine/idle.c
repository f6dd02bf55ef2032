/* SPDX-License-Identifier: MIT */
#include "idle.h"

#include "../base/clock.h"

void idle_init(struct idle *i, int64_t timeout_ns, int64_t now_ns)
{
	*i = (struct idle){.timeout_ns = timeout_ns, .since_ns = now_ns};
}

void idle_rearm(struct idle *i, int64_t timeout_ns, int64_t now_ns)
{
	i->timeout_ns = timeout_ns;
	i->since_ns = now_ns;
	i->cancelled = false;
	i->fired = false;
}

void idle_begin(struct idle *i)
{
	i->handling++;
}

void idle_end(struct idle *i, int64_t now_ns)
{
	i->handling--;
	i->since_ns = now_ns;
}

void idle_cancel(struct idle *i)
{
	i->cancelled = true;
}

/* Derived, not stored: no order of calls can make the two disagree. */
enum idle_state idle_state(const struct idle *i)
{
	if (i->fired)
		return IDLE_FIRED;
	if (i->cancelled || i->timeout_ns == 0)
		return IDLE_OFF;
	return i->handling > 0 ? IDLE_HELD : IDLE_ARMED;
}

int64_t idle_due(const struct idle *i)
{
	if (idle_state(i) != IDLE_ARMED)
		return CLOCK_NEVER;
	return clock_add(i->since_ns, i->timeout_ns);
}

bool idle_fire(struct idle *i, int64_t now_ns)
{
	if (now_ns < idle_due(i))
		return false;
	i->fired = true;
	return true;
}

const char *idle_state_name(enum idle_state s)
{
	static const char *const names[] = {
		[IDLE_OFF] = "off",
		[IDLE_ARMED] = "armed",
		[IDLE_HELD] = "held",
		[IDLE_FIRED] = "fired",
	};

	return names[s];
}

int64_t idle_left_ns(const struct idle *i, int64_t now_ns)
{
	int64_t due_ns = idle_due(i);

	if (due_ns == CLOCK_NEVER)
		return -1;
	return due_ns > now_ns ? due_ns - now_ns : 0;
}
