/* SPDX-License-Identifier: MIT */
#include "background.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "../backend/base/log.h"

/* The pipe to the waiting parent. The only state of a process that forks. */
static int to_parent = -1;

/* A byte means ready; end of file means the child ended: its code is ours. */
static void wait_for(pid_t child, int from_child)
{
	int status = 0;
	char byte;

	if (read(from_child, &byte, 1) == 1)
		_exit(0);
	if (waitpid(child, &status, 0) == child && WIFEXITED(status))
		_exit(WEXITSTATUS(status));
	_exit(EX_SOFTWARE);
}

void background_start(void)
{
	int fds[2];
	pid_t child;

	if (pipe2(fds, O_CLOEXEC)) {
		perror("spoolfs: pipe");
		exit(EX_OSERR);
	}
	child = fork();
	if (child < 0) {
		perror("spoolfs: fork");
		exit(EX_OSERR);
	}
	if (child) {
		close(fds[1]);
		wait_for(child, fds[0]);
	}
	close(fds[0]);
	to_parent = fds[1];
	setsid();
}

/* Nothing of the starter is held on to: not its directory, not its terminal. */
static void let_go(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (chdir("/"))
		log_warn("main", "cannot leave the working directory");
	if (null < 0)
		return;
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	if (null > STDERR_FILENO)
		close(null);
}

void background_ready(bool foreground, const char *mountpoint)
{
	static const char byte = 1;

	if (foreground || to_parent < 0)
		return;
	printf("%s/.control\n", mountpoint);
	fflush(stdout);
	log_to_syslog();
	let_go();
	if (write(to_parent, &byte, 1) != 1)
		log_warn("main", "whoever started this is gone");
	close(to_parent);
	to_parent = -1;
}
