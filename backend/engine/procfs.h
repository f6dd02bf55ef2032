/* SPDX-License-Identifier: MIT */
/* What the kernel says about a process, asked once. No state. */
#ifndef SPOOLFS_ENGINE_PROCFS_H
#define SPOOLFS_ENGINE_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Who a process is.
 *
 * Problem: from Linux 6.18 reading /proc/PID/stat waits for a process that is in
 * execve(2). One that has a close-on-exec descriptor of the mount open for
 * writing closes it just then, and waits for the answer to that FLUSH: whoever
 * must give the answer hangs, and every ps(1) with him. Rule: where the kernel
 * has PIDFD_GET_INFO (6.13) nothing is read from stat but of a process that is
 * exiting, which holds no such lock.
 */
struct procfs_ident {
	pid_t parent; /* 0: none, or outside this pid namespace */
	pid_t session;
	uint64_t start; /* with the pid unique until a reboot, and growing: the
			   number of its pidfd, or clock ticks since boot */
};

/* PIDFD: of PID, or -1. 0; -ESRCH when it has exited; or -errno. */
int procfs_ident(pid_t pid, int pidfd, struct procfs_ident *out);
/* The signal that is ending the thread TID right now, or 0. */
int procfs_exit_signal(pid_t tid);

/* /proc/TID/stat, as far as it matters; proc(5) has the fields. */
struct procfs_stat {
	char state;   /* 'Z' also for a main thread that is gone before others */
	pid_t parent; /* 0: none, or outside this pid namespace */
	pid_t session;
	unsigned flags; /* PF_... of the kernel */
	unsigned threads;
	uint64_t start; /* clock ticks since boot */
	int exit_code;  /* as for wait(2); 0 when the kernel keeps it to itself */
};

#define PROCFS_PF_EXITING 4u

/* 0, -ESRCH when there is no such thread, or -errno. */
int procfs_stat(pid_t tid, struct procfs_stat *out);
/* From the text of such a file. 0 or -EPROTO. For procfs_stat() and tests. */
int procfs_parse_stat(const char *text, struct procfs_stat *out);
/* The process of thread TID; 0 when it cannot be seen. */
pid_t procfs_process_of(pid_t tid);

/*
 * A descriptor for process PID, the caller's to close. -ESRCH: no such process;
 * -EINVAL: a thread, but no process; else -errno (forbidden, not known, too many).
 */
int procfs_pidfd_open(pid_t pid);
/* Whether the process has exited, all its threads; it may be a zombie. */
bool procfs_pidfd_exited(int pidfd);
/* Whether its parent has reaped it. */
bool procfs_pidfd_reaped(int pidfd);
/*
 * How it ended: 1 and a status as wait(2) gives it, 0 when it has not been
 * reaped yet, -errno when that will never be known (before Linux 6.15).
 */
int procfs_pidfd_status(int pidfd, int *status);

/* The machine's boot id, "" when it cannot be read. */
void procfs_boot_id(char *buf, size_t len);

#endif
