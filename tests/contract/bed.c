/* SPDX-License-Identifier: MIT */
#include "bed.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "azurite.h"
#include "backend/drivers/azure_queue.h"
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

static struct driver_params params_of(
	struct bed *b, const char *source, const char *identity)
{
	return (struct driver_params){
		.loop = b->loop,
		.source = source,
		.identity = identity,
		.create = true,
		.on_change = on_change,
		.arg = b,
	};
}

int bed_open(struct bed *b, const char *identity, struct driver **out, char *err)
{
	struct driver_params p = params_of(b, b->path, identity);

	return driver_open(&sqlite_driver_ops, &p, out, err, BED_ERR);
}

static struct driver *opened(int r, struct driver *d, const char *err)
{
	if (r < 0)
		printf("# open: %d %s\n", r, err);
	return r < 0 ? NULL : d;
}

static struct driver *open_sqlite(struct bed *b, const char *identity)
{
	char err[BED_ERR];
	struct driver *d;
	int r = bed_open(b, identity, &d, err);

	return opened(r, d, err);
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

/* FAR at SOURCE, and a keeper in B's directory. */
static struct driver *open_around(
	struct bed *b, const struct driver_ops *far, const struct driver_params *given)
{
	struct driver_params p = *given;
	char err[BED_ERR], state[96];
	struct driver *d;
	int r;

	snprintf(state, sizeof(state), "%s/state", b->dir);
	p.state = state;
	r = relay_open(far, &p, &d, err, sizeof(err));
	return opened(r, d, err);
}

static struct driver *open_relay(struct bed *b, const char *identity)
{
	struct driver_params p = params_of(b, b->path, identity);

	return open_around(b, &far_ops, &p);
}

/* Where the queue of B is, named at the first call. NULL: there is no service. */
static const char *azure_source(struct bed *b)
{
	const struct azurite *emulator = azurite();

	if (emulator && !b->source[0])
		azurite_source(emulator, b->source, sizeof(b->source));
	return emulator ? b->source : NULL;
}

static struct driver *open_azure(struct bed *b, const char *identity)
{
	const char *source = azure_source(b);
	struct driver_params p = params_of(b, source, identity);
	char err[BED_ERR];
	struct driver *d;
	int r;

	if (!source)
		return NULL;
	r = driver_open(&azure_queue_driver_ops, &p, &d, err, sizeof(err));
	return opened(r, d, err);
}

/* In base64, for the sake of bytes that text cannot carry. */
static struct driver *open_azure_relay(struct bed *b, const char *identity)
{
	const char *source = azure_source(b);
	struct driver_params p = params_of(b, source, identity);

	p.encoding = DRIVER_BASE64;
	return source ? open_around(b, &azure_queue_driver_ops, &p) : NULL;
}

/* What a queue in one file does and a service cannot, but for BED_NEAR. */
#define BED_FILE                                                         \
	(BED_ORDER | BED_SAME_DEAD | BED_COUNTS_LEASED | BED_TELLS_DUE | \
		BED_TELLS_GONE | BED_KNOWS_SIZES | BED_CLOSES_LAST | BED_OUR_TIME)

#define SQLITE_CAPS                                                           \
	(BED_NEAR | BED_FILE | DRIVER_STORE | DRIVER_ATTEMPTS | DRIVER_DEAD | \
		DRIVER_NOTIFIES | DRIVER_PEERS_KNOWN | DRIVER_NAMES | DRIVER_KEEPER)

#define RELAY_CAPS                                                        \
	(DRIVER_STORE | DRIVER_ATTEMPTS | DRIVER_DEAD | DRIVER_NOTIFIES | \
		DRIVER_PEERS_KNOWN | DRIVER_FAR)

const struct bed_factory bed_factories[] = {
	{"sqlite", SQLITE_CAPS, open_sqlite},
	{"fault around sqlite", SQLITE_CAPS, open_fault},
	{"relay", RELAY_CAPS | BED_FILE, open_relay},
	{"azure", DRIVER_FAR | DRIVER_DEAD, open_azure},
	{"azure relay", RELAY_CAPS, open_azure_relay},
	{NULL, 0, NULL},
};

bool bed_init(struct bed *b, const struct bed_factory *f)
{
	*b = (struct bed){
		.factory = f,
		.dir = "/tmp/spoolfs-contract-XXXXXX",
		.lease_ns = LEASE_NS,
	};
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

bool bed_can(const struct bed *b, unsigned need)
{
	return !b->factory || (b->factory->caps & need) == need;
}

void bed_hurry(struct bed *b)
{
	if (!bed_can(b, BED_OUR_TIME))
		b->lease_ns = NS_PER_S;
}

void bed_pass(struct bed *b, int64_t ns)
{
	struct timespec ts = {.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};

	clock_step(ns);
	while (!bed_can(b, BED_OUR_TIME) && nanosleep(&ts, &ts) < 0)
		;
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
