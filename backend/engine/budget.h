/* SPDX-License-Identifier: MIT */
/*
 * A bounded run: how to use almost all of its time, and never more. Pure.
 *
 *	start            hand-outs end            stop_before
 *	  |------- work -------|------ margin ----------|
 *
 * The run may last until stop_before = start + run_for. A message handed out
 * takes about the average of the handling times seen so far (claim to delete or
 * release), so the last one is handed out a margin = average * tolerance before;
 * while nothing was handled, the estimate stands for the average. What is then
 * under way may finish until stop_before.
 *
 * With run_for 0 there is no budget: all is allowed, nothing ends.
 */
#ifndef SPOOLFS_ENGINE_BUDGET_H
#define SPOOLFS_ENGINE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct budget_config {
	int64_t run_for_ns;   /* 0: no budget */
	int64_t estimated_ns; /* of one handling */
	double tolerance;     /* >= 0: tolerance_factor */
};

struct budget {
	struct budget_config cfg;
	int64_t start_ns;
	/* The mean is average_ns + rest_ns / handled, exactly: no sum that grows. */
	int64_t average_ns, rest_ns;
	int64_t handled;
	bool closed; /* hand-outs have ended */
};

/* Whether a message could ever be handed out: estimate * tolerance < run_for,
 * or no budget. Refuse the options otherwise. */
bool budget_possible(const struct budget_config *cfg);

void budget_init(struct budget *b, const struct budget_config *cfg, int64_t now_ns);
/* New policies. The start and what was observed stay; ended hand-outs too. */
void budget_configure(struct budget *b, const struct budget_config *cfg);
/* A handling ended, by a deletion or a release. Below 0 counts as 0. */
void budget_observe(struct budget *b, int64_t handling_ns);

/* Whether a message may be handed out at NOW. Once false it stays false, also
 * when a later observation shrinks the margin: unread messages went back. */
bool budget_may_hand_out(struct budget *b, int64_t now_ns);
/* When that ends, as the average is now; CLOCK_NEVER: no budget. It may be past. */
int64_t budget_hand_out_until(const struct budget *b);
/* Whether a poll planned for then (poller_next()) is to be made: not when its
 * messages could not be handed out any more. CLOCK_NEVER, none planned, is. */
bool budget_next_poll_allowed(const struct budget *b, int64_t next_poll_ns);
/*
 * When the run ends unless something happens before; NOW when it is to end at
 * once; CLOCK_NEVER: no budget. HANDLING: a message is claimed; UNREAD: one
 * could be; NEXT_POLL_NS is poller_next(). Ask again when any of these changed.
 *
 * Handlings under way have until stop_before. With nothing here and the next
 * poll at or after stop_before the run ends at once. With a next poll that is
 * only too late to be followed by a hand-out, it lasts until hand-outs end: a
 * wake-up may still bring a message.
 */
int64_t budget_end(const struct budget *b, bool handling, bool unread,
	int64_t next_poll_ns, int64_t now_ns);
/* Whether stop_before has come: what is still handled now has to be left. */
bool budget_over(const struct budget *b, int64_t now_ns);

/* avg_handling_ms, margin_ms and stop_in_ms of .control. -1: does not apply. */
int64_t budget_average_ns(const struct budget *b); /* -1: nothing observed */
int64_t budget_margin_ns(const struct budget *b);
int64_t budget_stop_in_ns(const struct budget *b, int64_t now_ns);

#endif
