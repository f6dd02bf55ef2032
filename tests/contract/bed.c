/* SPDX-License-Identifier: MIT */
#include "bed.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend/drivers/relay.h"
#include "backend/drivers/sqlite.h"
#include "fault.h"

#define PATIENCE_NS (10 * NS_PER_S)

/* Real time, also while the clocks of the program are faked. */
int64_t bed_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

bool bed_pause(int64_t start_ns)
{
	const struct timespec ts = {.tv_nsec = 1000000};

	(void)nanosleep(&ts, NULL);
	return bed_now() - start_ns < PATIENCE_NS;
}

static void on_change(void *arg)
{
	((struct bed *)arg)->changes++;
}

int bed_open(struct bed *b, const char *identity, struct driver **out, char *err)
{
	struct driver_params p = {
		.loop = b->loop,
		.source = b->path,
		.identity = identity,
		.create = true,
		.on_change = on_change,
		.arg = b,
	};

	return driver_open(&sqlite_driver_ops, &p, out, err, BED_ERR);
}

static struct driver *open_sqlite(struct bed *b, const char *identity)
{
	char err[BED_ERR];
	struct driver *d;
	int r = bed_open(b, identity, &d, err);

	if (r < 0)
		printf("# open: %d %s\n", r, err);
	return r < 0 ? NULL : d;
}

static struct driver *open_fault(struct bed *b, const char *identity)
{
	struct driver *inner = open_sqlite(b, identity);

	return inner ? fault_create(inner, b->loop) : NULL;
}

/* A service that is no further away than the disk: what a relay adds to it. */
static int open_far(
	const struct driver_params *p, struct driver **out, char *err, size_t err_len)
{
	return driver_open(&sqlite_driver_ops, p, out, err, err_len);
}

static const struct driver_ops far_ops = {
	.name = "far",
	.caps = DRIVER_FAR | DRIVER_DEAD,
	.max_receive = 1024,
	.open = open_far,
};

static struct driver *open_relay(struct bed *b, const char *identity)
{
	char err[BED_ERR], state[96];
	struct driver_params p = {
		.loop = b->loop,
		.source = b->path,
		.identity = identity,
		.create = true,
		.state = state,
		.on_change = on_change,
		.arg = b,
	};
	struct driver *d;
	int r;

	snprintf(state, sizeof(state), "%s/state", b->dir);
	r = relay_open(&far_ops, &p, &d, err, sizeof(err));
	if (r < 0)
		printf("# open: %d %s\n", r, err);
	return r < 0 ? NULL : d;
}

#define SQLITE_CAPS                                                                  \
	(BED_NEAR | DRIVER_STORE | DRIVER_ATTEMPTS | DRIVER_DEAD | DRIVER_NOTIFIES | \
		DRIVER_PEERS_KNOWN | DRIVER_NAMES | DRIVER_KEEPER)

#define RELAY_CAPS                                                        \
	(DRIVER_STORE | DRIVER_ATTEMPTS | DRIVER_DEAD | DRIVER_NOTIFIES | \
		DRIVER_PEERS_KNOWN | DRIVER_FAR)

const struct bed_factory bed_factories[] = {
	{"sqlite", SQLITE_CAPS, open_sqlite},
	{"fault around sqlite", SQLITE_CAPS, open_fault},
	{"relay", RELAY_CAPS, open_relay},
	{NULL, 0, NULL},
};

bool bed_init(struct bed *b, const struct bed_factory *f)
{
	*b = (struct bed){.factory = f, .dir = "/tmp/spoolfs-contract-XXXXXX"};
	if (!mkdtemp(b->dir))
		return false;
	snprintf(b->path, sizeof(b->path), "%s/q.db", b->dir);
	b->loop = loop_create();
	if (!b->loop)
		return false;
	if (f)
		b->d = f->open(b, "bed");
	return !f || b->d;
}

static void remove_dir(int at, const char *path);

static void remove_entry(int dir, const char *name)
{
	if (unlinkat(dir, name, 0) < 0)
		remove_dir(dir, name);
}

static void remove_dir(int at, const char *path)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			remove_entry(dirfd(dir), e->d_name);
	if (dir)
		closedir(dir);
	(void)unlinkat(at, path, AT_REMOVEDIR);
}

void bed_fini(struct bed *b)
{
	driver_close(b->d);
	loop_destroy(b->loop);
	remove_dir(AT_FDCWD, b->dir);
}

static void on_done(struct driver_req *req)
{
	*(unsigned *)req->arg = 1;
}

bool bed_wait(struct bed *b, const unsigned *count, unsigned wanted)
{
	int64_t start = bed_now();

	while (*count < wanted && bed_now() - start < PATIENCE_NS)
		if (loop_once(b->loop, 100 * NS_PER_MS) < 0)
			return false;
	return *count >= wanted;
}

bool bed_try(struct bed *b, struct driver *d, struct driver_req *req)
{
	unsigned done = 0;

	req->done = on_done;
	req->arg = &done;
	driver_submit(d, req);
	return done == 0 && bed_wait(b, &done, 1);
}
