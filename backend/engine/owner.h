/* SPDX-License-Identifier: MIT */
/*
 * Who owns a claim. Pure: works on process records and their alive flags.
 *
 * A claim records a chain: the opener, its parent, and so on up to and with the
 * session leader. The owner is the first in the chain that is alive. The owner,
 * its descendants, and those of the chain below the session leader may open the
 * message again and delete it. The session leader owns only as the last one
 * alive: else every worker of a terminal would own every other's messages. An
 * opener that is a session leader itself (setsid -w cat f) counts for the
 * session of its parent.
 */
#ifndef SPOOLFS_ENGINE_OWNER_H
#define SPOOLFS_ENGINE_OWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define OWNER_CHAIN_MAX 24 /* deeper process trees are cut at the top */

/* One process, as long as somebody refers to it. procs.h makes and frees them. */
struct proc {
	pid_t pid;      /* thread group id; 0: unseen (another pid namespace) */
	pid_t session;  /* its session leader's pid, when first looked up */
	uint64_t start; /* with pid, its identity until a reboot (procfs.h) */
	bool alive;
	struct proc *parent; /* as seen first; NULL: none, or not looked up */
	void *user;          /* the claims' (claim.c); NULL at first */
};

struct owner_chain {
	unsigned n;      /* 1..OWNER_CHAIN_MAX; [0] is the opener */
	bool has_leader; /* [n - 1] is the session leader (n > 1) */
	struct proc *p[OWNER_CHAIN_MAX];
};

/* Fills CHAIN for OPENER from the parent pointers. Takes no references. */
void owner_chain_init(struct owner_chain *chain, struct proc *opener);
/* Index of the owner in CHAIN (the first alive), or -1. */
int owner_index(const struct owner_chain *chain);
/* Whether CALLER may open, delete or give back what CHAIN claims. */
bool owner_may(const struct owner_chain *chain, const struct proc *caller);
/* CALLER is P or below it. */
bool owner_is_below(const struct proc *caller, const struct proc *p);

/*
 * One line of text for the claim record, and back: "pid:start" of each link,
 * with the boot id in front, since pids mean nothing after a reboot.
 */
struct owner_record {
	char boot[40];
	unsigned n;
	bool has_leader;
	struct {
		pid_t pid;
		uint64_t start;
	} p[OWNER_CHAIN_MAX];
};
/* 0 or -ENOSPC when BUF is too small. */
int owner_record_format(
	const struct owner_chain *chain, const char *boot, char *buf, unsigned long len);
/* 0 or -EINVAL. */
int owner_record_parse(const char *text, struct owner_record *rec);

#endif
