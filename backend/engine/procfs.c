/* SPDX-License-Identifier: MIT */
#include "procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* linux/pidfd.h of 6.15: what older headers do not have. */
struct pidfd_exit_info {
	uint64_t mask;
	uint64_t cgroupid;
	uint32_t pid, tgid, ppid, ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
	int32_t exit_code;
};
#define EXIT_INFO     (UINT64_C(1) << 3)
#define EXIT_INFO_GET _IOWR(0xff, 11, struct pidfd_exit_info)

/* Numbers of the fields in /proc/PID/stat. */
enum {
	STATE = 3,
	PARENT = 4,
	SESSION = 6,
	FLAGS = 9,
	THREADS = 20,
	START = 22,
	EXIT_CODE = 52,
};

/* A small file, whole: /proc gives it at one read. 0 or -errno. */
static int slurp(const char *path, char *buf, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;
	int err = 0;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, len - 1);
	if (n < 0)
		err = -errno;
	else
		buf[n] = '\0';
	close(fd);
	return err;
}

/* FILE is "stat", "statm" or "status". */
static int slurp_of(pid_t tid, const char *file, char *buf, size_t len)
{
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%ld/%s", (long)tid, file);
	err = slurp(path, buf, len);
	return err == -ENOENT ? -ESRCH : err;
}

/* The second field is the program's name in parentheses and may hold spaces and
 * parentheses itself: what counts begins after the last one. */
int procfs_parse_stat(const char *text, struct procfs_stat *out)
{
	const char *s = strrchr(text, ')');
	uint64_t field[EXIT_CODE + 1] = {0};

	if (!s || s[1] != ' ' || !s[2])
		return -EPROTO;
	out->state = s[2];
	s += 3;
	for (int i = STATE + 1; i <= EXIT_CODE; i++) {
		char *end;

		/* Some are signed: these come out right when cast back. */
		field[i] = strtoull(s, &end, 10);
		if (end == s)
			return -EPROTO;
		s = end;
	}
	out->parent = (pid_t)field[PARENT];
	out->session = (pid_t)field[SESSION];
	out->flags = (unsigned)field[FLAGS];
	out->threads = (unsigned)field[THREADS];
	out->start = field[START];
	out->exit_code = (int)field[EXIT_CODE];
	return 0;
}

int procfs_stat(pid_t tid, struct procfs_stat *out)
{
	char text[2048];
	int err = slurp_of(tid, "stat", text, sizeof(text));

	return err ? err : procfs_parse_stat(text, out);
}

pid_t procfs_process_of(pid_t tid)
{
	static const char key[] = "\nTgid:";
	char text[4096];
	const char *s;

	if (slurp_of(tid, "status", text, sizeof(text)))
		return 0;
	s = strstr(text, key);
	return s ? (pid_t)strtol(s + sizeof(key) - 1, NULL, 10) : 0;
}

int procfs_pidfd_open(pid_t pid)
{
	long fd = syscall(SYS_pidfd_open, pid, 0);

	if (fd >= 0)
		return (int)fd;
	/* For a thread: EINVAL, of newer kernels ENOENT. */
	return errno == ENOENT ? -EINVAL : -errno;
}

bool procfs_pidfd_exited(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

bool procfs_pidfd_reaped(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = 0};

	return poll(&p, 1, 0) > 0 && p.revents & POLLHUP;
}

int procfs_pidfd_status(int pidfd, int *status)
{
	struct pidfd_exit_info info = {.mask = EXIT_INFO};

	if (ioctl(pidfd, EXIT_INFO_GET, &info) < 0)
		return -errno;
	if (!(info.mask & EXIT_INFO))
		return 0;
	*status = info.exit_code;
	return 1;
}

/* 1, or 0 where the kernel cannot tell. */
static int ident_by_pidfd(pid_t pid, int pidfd, struct procfs_ident *out)
{
	struct pidfd_exit_info info = {0};
	struct stat st;

	if (ioctl(pidfd, EXIT_INFO_GET, &info) < 0 || fstat(pidfd, &st))
		return errno == ESRCH ? -ESRCH : 0;
	out->parent = (pid_t)info.ppid;
	out->session = getsid(pid);
	out->start = st.st_ino;
	return out->session < 0 || procfs_pidfd_exited(pidfd) ? -ESRCH : 1;
}

/* A zombie with other threads is a main thread that ended first. */
static int ident_by_stat(pid_t pid, struct procfs_ident *out)
{
	struct procfs_stat st;
	int err = procfs_stat(pid, &st);

	if (err)
		return err;
	if ((st.state == 'Z' || st.state == 'X') && st.threads <= 1)
		return -ESRCH;
	*out = (struct procfs_ident){st.parent, st.session, st.start};
	return 0;
}

int procfs_ident(pid_t pid, int pidfd, struct procfs_ident *out)
{
	int own = pidfd < 0 ? procfs_pidfd_open(pid) : -1;
	int r = 0;

	if (own == -ESRCH)
		return own;
	if (pidfd >= 0 || own >= 0)
		r = ident_by_pidfd(pid, pidfd >= 0 ? pidfd : own, out);
	if (own >= 0)
		close(own);
	if (r)
		return r < 0 ? r : 0;
	r = ident_by_stat(pid, out);
	return !r && pidfd >= 0 && procfs_pidfd_exited(pidfd) ? -ESRCH : r;
}

/* Without memory: exiting, or a thread of the kernel. */
static bool has_no_memory(pid_t tid)
{
	char text[128];

	return !slurp_of(tid, "statm", text, sizeof(text)) && !strncmp(text, "0 ", 2);
}

int procfs_exit_signal(pid_t tid)
{
	struct procfs_stat st;

	if (!has_no_memory(tid) || procfs_stat(tid, &st) ||
		!(st.flags & PROCFS_PF_EXITING))
		return 0;
	return st.exit_code & 0x7f;
}

void procfs_boot_id(char *buf, size_t len)
{
	if (slurp("/proc/sys/kernel/random/boot_id", buf, len))
		buf[0] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
}
