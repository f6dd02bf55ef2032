/* SPDX-License-Identifier: MIT */
/*
 * spoolfs-announcer MOUNTPOINT: performs, from outside the daemon, the file
 * operations that make the kernel raise inotify events in the mount.
 *
 * Why a process of its own: a call into the mount waits for the daemon. The
 * daemon itself must never make one, and a thread of it that is in one when
 * the daemon is killed can neither be served nor die. A process that does not
 * hold the FUSE descriptor just gets an error.
 *
 * Standard input has records: a kind, the length of a name (16 bits, little
 * endian), the name.
 *
 *	C  create NAME, which must not exist, and close it
 *	D  unlink NAME
 *	R  rename .announce/NAME to NAME
 *	T  open NAME for writing and close it
 *
 * Standard output gets one byte for each, in order: '.' done, '!' failed. It is
 * never waited for: bytes that do not fit are lost. End of file on standard
 * input ends the program, and so does the end of the daemon.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define HEAD_LEN   3
#define RECORD_MAX (HEAD_LEN + UINT16_MAX)
#define EX_USAGE   64
#define EX_OSERR   71

struct announcer {
	const char *mountpoint;
	dev_t dev; /* of the mount, once it was seen; 0 before */
	size_t len;
	/* Room for the longest record and a pipe's worth more. */
	unsigned char in[RECORD_MAX + 65536];
	char out[(RECORD_MAX + 65536) / HEAD_LEN];
};

/*
 * Whether DIR is the root of the mount this program began with. Once that is
 * gone, what is left at the path is the directory below, or somebody else's
 * mount: a name created there would stay, and be taken for a message.
 */
static bool is_our_mount(struct announcer *a, int dir)
{
	struct statx st;
	dev_t dev;

	/* DONT_SYNC: asks the kernel, not the daemon. */
	if (statx(dir, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &st) < 0)
		return false;
	if ((st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0 &&
		(st.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0)
		return false;
	dev = makedev(st.stx_dev_major, st.stx_dev_minor);
	if (a->dev == 0)
		a->dev = dev;
	return a->dev == dev;
}

/*
 * The root of the mount, for one batch. Where it is allowed (CAP_SYS_ADMIN) through
 * a detached clone: what is open there raises the same events and does not keep
 * the mount itself busy.
 */
static int open_mount(struct announcer *a)
{
	int dir = open(a->mountpoint, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int clone;

	if (dir >= 0 && !is_our_mount(a, dir)) {
		close(dir);
		return -1;
	}
	if (dir < 0)
		return -1;
	clone = open_tree(dir, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (clone < 0)
		return dir;
	close(dir);
	return clone;
}

static bool open_and_close(int dir, const char *name, int flags)
{
	int fd = openat(dir, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags,
		S_IRUSR | S_IWUSR);

	return fd >= 0 && close(fd) == 0;
}

static bool rename_in(int dir, const char *name)
{
	char from[sizeof(".announce/") + NAME_MAX];

	snprintf(from, sizeof(from), ".announce/%s", name);
	return renameat(dir, from, dir, name) == 0;
}

/* One record; the daemon's bugs must not reach out of the mount. */
static bool perform(int dir, unsigned char kind, const unsigned char *bytes, size_t len)
{
	char name[NAME_MAX + 1];

	if (dir < 0 || len == 0 || len > NAME_MAX)
		return false;
	memcpy(name, bytes, len);
	name[len] = '\0';
	if (strlen(name) != len || strchr(name, '/') != NULL || strcmp(name, ".") == 0 ||
		strcmp(name, "..") == 0)
		return false;
	switch (kind) {
	case 'C':
		return open_and_close(dir, name, O_CREAT | O_EXCL);
	case 'D':
		return unlinkat(dir, name, 0) == 0;
	case 'R':
		return rename_in(dir, name);
	case 'T':
		return open_and_close(dir, name, 0);
	default:
		return false;
	}
}

/*
 * Performs every whole record that was read; the rest moves to the front. The
 * directory is open meanwhile only: an open one keeps the mount from unmounting.
 */
static void batch(struct announcer *a)
{
	size_t at = 0, n = 0;
	int dir = open_mount(a);

	while (a->len - at >= HEAD_LEN) {
		const unsigned char *p = a->in + at;
		size_t len = p[1] | (size_t)p[2] << 8;

		if (a->len - at < HEAD_LEN + len)
			break;
		a->out[n++] = perform(dir, p[0], p + HEAD_LEN, len) ? '.' : '!';
		at += HEAD_LEN + len;
	}
	if (dir >= 0)
		close(dir);
	a->len -= at;
	memmove(a->in, a->in + at, a->len);
	/* A full pipe, or a daemon that went: nobody is waiting for these. */
	if (n > 0 && write(STDOUT_FILENO, a->out, n) < 0)
		return;
}

/* Reads what there is, waiting for the first byte. False at the end. */
static bool fill(struct announcer *a)
{
	ssize_t n = read(STDIN_FILENO, a->in + a->len, sizeof(a->in) - a->len);

	if (n < 0 && errno == EAGAIN) {
		struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};

		return poll(&in, 1, -1) >= 0 || errno == EINTR;
	}
	if (n < 0)
		return errno == EINTR;
	a->len += (size_t)n;
	return n > 0;
}

/* It ends with its pipe, not with the terminal's or the service's signals. */
static int set_up(void)
{
	static const int ignored[] = {SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM};
	int flags = fcntl(STDOUT_FILENO, F_GETFL);

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	if (flags < 0 || fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK) < 0)
		return -1;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
		prctl(PR_SET_NAME, "spoolfs-announc") < 0)
		return -1;
	/* Above all the FUSE descriptor: held here, it would keep a dead mount alive. */
	if (close_range(3, ~0U, 0) < 0)
		return -1;
	return chdir("/");
}

int main(int argc, char **argv)
{
	static struct announcer a;

	if (argc != 2 || argv[1][0] != '/') {
		fputs("usage: spoolfs-announcer /MOUNTPOINT (run by spoolfs)\n", stderr);
		return EX_USAGE;
	}
	if (set_up() < 0) {
		perror("spoolfs-announcer");
		return EX_OSERR;
	}
	a.mountpoint = argv[1];
	while (fill(&a))
		batch(&a);
	return 0;
}
