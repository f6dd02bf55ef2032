/* SPDX-License-Identifier: MIT */
/*
 *	mqueue N SIZE WRITERS
 *
 * A POSIX message queue: in memory, so nothing survives a reboot; it has no other
 * setting. WRITERS processes send N messages; one process receives them then. The
 * system bounds a queue (/proc/sys/fs/mqueue): where it may not hold N, one writer
 * sends and receives in turns, and several are refused, as is too large a SIZE.
 */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "crowd.h"

static char block[SIZE_MAX_B];

struct queue {
	mqd_t id;
	size_t size;
};

/* What an unprivileged queue may hold. */
static size_t usual_limit(void)
{
	FILE *f = fopen("/proc/sys/fs/mqueue/msg_max", "re");
	unsigned long n = 1;

	if (f == NULL || fscanf(f, "%lu", &n) != 1)
		die("/proc/sys/fs/mqueue/msg_max");
	fclose(f);
	return n;
}

/* A queue of *N messages, or of as many as it may hold; corrects *N. */
static mqd_t queue_open(size_t *n, size_t size)
{
	struct mq_attr attr = {.mq_maxmsg = (long)*n, .mq_msgsize = (long)size};
	const int flags = O_RDWR | O_CREAT | O_EXCL;
	size_t usual = usual_limit();
	char name[32];
	mqd_t id;

	snprintf(name, sizeof(name), "/bench-%d", (int)getpid());
	id = mq_open(name, flags, 0600, &attr);
	if (id < 0 && usual < *n) {
		attr.mq_maxmsg = (long)usual;
		*n = usual;
		id = mq_open(name, flags, 0600, &attr);
	}
	if (id < 0)
		die("mq_open of messages of %zu bytes", size);
	mq_unlink(name);
	return id;
}

static void send_part(struct person *p, void *prepared)
{
	const struct queue *q = p->arg;

	(void)prepared;
	for (size_t i = 0; i < p->part; i++) {
		if (mq_send(q->id, block, q->size, 0) < 0)
			die("mq_send");
	}
}

static int64_t send_all(const struct crowd *c)
{
	struct person alone = {.part = c->n, .arg = c->arg};
	int64_t start = now();

	if (c->people > 1)
		return crowd_run(c);
	send_part(&alone, NULL);
	return now() - start;
}

static int64_t receive(const struct queue *q, size_t n)
{
	int64_t start = now();

	for (size_t i = 0; i < n; i++) {
		if (mq_receive(q->id, block, q->size, NULL) != (ssize_t)q->size)
			die("mq_receive");
	}
	return now() - start;
}

int main(int argc, char **argv)
{
	const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
	struct queue q = {0};
	struct crowd crowd = {NULL, send_part, &q, 0, 1};
	int64_t sent = 0, received = 0;
	size_t n, holds;

	if (argc != 4) {
		fputs("usage: mqueue N SIZE WRITERS\n", stderr);
		return 64;
	}
	n = number(argv[1], COUNT_MAX);
	q.size = number(argv[2], SIZE_MAX_B);
	crowd.people = (int)number(argv[3], PEOPLE_MAX);
	setrlimit(RLIMIT_MSGQUEUE, &all); /* where we may */
	holds = n;
	q.id = queue_open(&holds, q.size);
	if (holds < n && crowd.people > 1)
		die("a queue of %zu messages for several writers", holds);
	for (size_t done = 0; done < n; done += crowd.n) {
		crowd.n = holds < n - done ? holds : n - done;
		sent += send_all(&crowd);
		received += receive(&q, crowd.n);
	}
	print_us("push", (double)sent / (double)n);
	print_us("pop", (double)received / (double)n);
	return 0;
}
