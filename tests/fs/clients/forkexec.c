/* SPDX-License-Identifier: MIT */
/* forkexec N PROGRAM: starts PROGRAM N times, one after the other, and nothing
 * else: what a runner of commands is measured against. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int n = argc == 3 ? atoi(argv[1]) : 0;

	while (n-- > 0) {
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			execl(argv[2], argv[2], (char *)NULL);
			_exit(127);
		}
		if (waitpid(pid, &status, 0) < 0 || status)
			return 1;
	}
	return 0;
}
