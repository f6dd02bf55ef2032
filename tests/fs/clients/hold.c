/* SPDX-License-Identifier: MIT */
/*
 * hold FLAG PATH...: opens and reads each PATH, creates the file FLAG, and keeps
 * them open until it is killed. An owner that opened its messages itself.
 */
#include <err.h>
#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char buf[4096];

	if (argc < 3)
		errx(2, "usage: hold FLAG PATH...");
	for (int i = 2; i < argc; i++) {
		int fd = open(argv[i], O_RDONLY);

		if (fd < 0)
			err(1, "open %s", argv[i]);
		if (read(fd, buf, sizeof(buf)) < 0)
			err(1, "read %s", argv[i]);
	}
	if (creat(argv[1], 0600) < 0)
		err(1, "%s", argv[1]);
	for (;;)
		pause();
}
