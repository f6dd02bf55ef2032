/* SPDX-License-Identifier: MIT */
/*
 * later: for LD_PRELOAD. The clock that timers count by is ahead by as many
 * seconds as the file $LATER says, so that a test need not wait for minutes.
 * What sleeps is not woken by that: it looks at the clock when it is asked
 * something.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static time_t ahead(void)
{
	static int fd = -1;
	char text[32] = "";

	if (fd < 0)
		fd = open(getenv("LATER"), O_RDONLY | O_CLOEXEC);
	if (fd < 0 || pread(fd, text, sizeof(text) - 1, 0) < 0)
		return 0;
	return atol(text);
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	int err = (int)syscall(SYS_clock_gettime, id, ts);

	if (!err && id == CLOCK_BOOTTIME)
		ts->tv_sec += ahead();
	return err;
}
