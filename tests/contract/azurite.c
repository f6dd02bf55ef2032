/* SPDX-License-Identifier: MIT */
#include "azurite.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 30000
#define SERVICE     "azurite/dist/src/queue/main.js"

static bool exists_in(const char *dir, const char *more, char *out, size_t len)
{
	int n = snprintf(out, len, "%s%s/%s", dir, more, SERVICE);

	return n > 0 && (size_t)n < len && access(out, R_OK) == 0;
}

static bool find_in_node_path(char *out, size_t len)
{
	char *dirs = strdup(getenv("NODE_PATH") ? getenv("NODE_PATH") : "");
	char *rest = dirs, *dir;
	bool found = false;

	while (!found && dirs && (dir = strsep(&rest, ":")))
		found = *dir && exists_in(dir, "", out, len);
	free(dirs);
	return found;
}

/* The program is in build/ or below it. */
static bool find_above(char *out, size_t len)
{
	char dir[512];
	ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);
	char *slash;

	dir[n > 0 ? n : 0] = '\0';
	while ((slash = strrchr(dir, '/'))) {
		*slash = '\0';
		if (exists_in(dir, "/node/node_modules", out, len))
			return true;
	}
	return false;
}

static void child(const char *service, pid_t parent, int out)
{
	/* Of this test's making, and of nobody else's. */
	unsetenv("AZURITE_ACCOUNTS");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || dup2(out, STDOUT_FILENO) < 0 || chdir("/tmp"))
		_exit(126);
	execlp("node", "node", service, "--silent", "--inMemoryPersistence",
		"--skipApiVersionCheck", "--disableTelemetry", "--queueHost", "127.0.0.1",
		"--queuePort", "0", (char *)NULL);
	_exit(127);
}

/* What it has said so far, up to its address. */
static bool hear_url(struct azurite *a, char *said, size_t len)
{
	static const char word[] = "listens on ";
	struct pollfd p = {.fd = a->out, .events = POLLIN};
	size_t n = 0;

	while (n + 1 < len && poll(&p, 1, PATIENCE_MS) > 0) {
		ssize_t r = read(a->out, said + n, len - 1 - n);
		const char *at;

		if (r <= 0)
			return false;
		n += (size_t)r;
		said[n] = '\0';
		at = strstr(said, word);
		if (at && strchr(at, '\n'))
			return sscanf(at + strlen(word), "%63s", a->url) == 1;
	}
	return false;
}

bool azurite_start(struct azurite *a)
{
	char service[1024], said[1024] = "";
	pid_t self = getpid();
	int pipe_fd[2];

	*a = (struct azurite){.pid = -1, .out = -1};
	if (!find_in_node_path(service, sizeof(service)) &&
		!find_above(service, sizeof(service))) {
		printf("# no Azurite here: scripts/bootstrap test installs it\n");
		return false;
	}
	if (pipe2(pipe_fd, O_CLOEXEC))
		return false;
	a->out = pipe_fd[0];
	a->pid = fork();
	if (a->pid == 0)
		child(service, self, pipe_fd[1]);
	close(pipe_fd[1]);
	if (a->pid > 0 && hear_url(a, said, sizeof(said)))
		return true;
	printf("# Azurite does not start: %s\n", said);
	azurite_stop(a);
	return false;
}

void azurite_stop(struct azurite *a)
{
	if (a->pid > 0) {
		(void)kill(a->pid, SIGKILL);
		(void)waitpid(a->pid, NULL, 0);
	}
	if (a->out >= 0)
		close(a->out);
	*a = (struct azurite){.pid = -1, .out = -1};
}

static struct azurite shared = {.pid = -1, .out = -1};

__attribute__((destructor)) static void stop_shared(void)
{
	azurite_stop(&shared);
}

const struct azurite *azurite(void)
{
	if (shared.pid < 0 && !azurite_start(&shared))
		return NULL;
	setenv("AZURE_STORAGE_CONNECTION_STRING", "UseDevelopmentStorage=true", 1);
	return &shared;
}

void azurite_source(const struct azurite *a, char *out, size_t len)
{
	static unsigned queues;

	snprintf(out, len, "azure-queue+%s/%s/q-%u", a->url, AZURITE_ACCOUNT, ++queues);
}
