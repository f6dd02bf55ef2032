/* SPDX-License-Identifier: MIT */
/*
 * A client of the servers that spoolfs is compared with, over a unix socket: one
 * request, one answer, no pipelining, and no more code around them than that, so
 * that no client library is measured.
 *
 *	peer KIND SOCKET push N SIZE CLIENTS
 *	peer KIND SOCKET pop N SIZE CLIENTS
 *
 * KIND: redis       LPUSH; RPOP, which loses the message with its consumer
 *       redis-move  LPUSH; LMOVE to a second list, and LREM from there
 *       beanstalk   put; reserve and delete
 *
 * Every answer is checked, and every body that comes back must have SIZE bytes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "crowd.h"

#define HEAD_MAX 512
#define BUF_SIZE (2 * SIZE_MAX_B)

struct line {
	int fd;
	size_t used, len; /* of buf: what was read, and how much of it is done with */
	char buf[BUF_SIZE];
	char out[HEAD_MAX + SIZE_MAX_B];
};

struct kind {
	const char *name;
	void (*push)(struct line *l, const char *body, size_t size);
	void (*pop)(struct line *l, const char *body, size_t size);
};

struct job {
	const struct kind *kind;
	const char *path;
	const char *body;
	size_t size;
};

/* ---- the connection --------------------------------------------------------- */

static void call_on(struct line *l, const char *path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(to.sun_path)) {
		errno = ENAMETOOLONG;
		die("%s", path);
	}
	strcpy(to.sun_path, path);
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (l->fd < 0 || connect(l->fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		die("%s", path);
}

static void say(struct line *l, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = write(l->fd, l->out + done, len - done);

		if (n < 0)
			die("write");
		done += (size_t)n;
	}
	l->used = l->len = 0; /* nothing is outstanding between two requests */
}

static void hear_more(struct line *l)
{
	ssize_t n = read(l->fd, l->buf + l->len, BUF_SIZE - 1 - l->len);

	if (n == 0)
		errno = ECONNRESET;
	if (n <= 0)
		die("read");
	l->len += (size_t)n;
	l->buf[l->len] = '\0';
}

/* The next line, without its end. */
static char *hear_line(struct line *l)
{
	char *begin, *end;

	while (l->len == l->used || (end = strstr(l->buf + l->used, "\r\n")) == NULL)
		hear_more(l);
	begin = l->buf + l->used;
	*end = '\0';
	l->used = (size_t)(end + 2 - l->buf);
	return begin;
}

static void hear_body(struct line *l, size_t size)
{
	while (l->len - l->used < size + 2)
		hear_more(l);
	l->used += size + 2;
}

static void expect(const char *answer, const char *start)
{
	if (strncmp(answer, start, strlen(start)) != 0) {
		errno = EPROTO;
		die("\"%s\", not \"%s\"", answer, start);
	}
}

/* ---- redis: RESP ------------------------------------------------------------ */

/* Appends an argument of a command. */
static size_t resp_arg(struct line *l, size_t at, const char *p, size_t n)
{
	at += (size_t)sprintf(l->out + at, "$%zu\r\n", n);
	memcpy(l->out + at, p, n);
	memcpy(l->out + at + n, "\r\n", 2);
	return at + n + 2;
}

/* A command: words, and then the body if any. */
static void resp_say(struct line *l, const char *const *words, const char *body, size_t n)
{
	size_t count = body != NULL, at;

	for (size_t i = 0; words[i] != NULL; i++)
		count++;
	at = (size_t)sprintf(l->out, "*%zu\r\n", count);
	for (size_t i = 0; words[i] != NULL; i++)
		at = resp_arg(l, at, words[i], strlen(words[i]));
	if (body != NULL)
		at = resp_arg(l, at, body, n);
	say(l, at);
}

static void resp_hear_body(struct line *l, size_t size)
{
	char head[32];

	snprintf(head, sizeof(head), "$%zu", size);
	expect(hear_line(l), head);
	hear_body(l, size);
}

static void redis_push(struct line *l, const char *body, size_t size)
{
	resp_say(l, (const char *[]){"LPUSH", "q", NULL}, body, size);
	expect(hear_line(l), ":");
}

static void redis_pop(struct line *l, const char *body, size_t size)
{
	(void)body;
	resp_say(l, (const char *[]){"RPOP", "q", NULL}, NULL, 0);
	resp_hear_body(l, size);
}

static void redis_move_pop(struct line *l, const char *body, size_t size)
{
	resp_say(l, (const char *[]){"LMOVE", "q", "busy", "RIGHT", "LEFT", NULL}, NULL,
		0);
	resp_hear_body(l, size);
	resp_say(l, (const char *[]){"LREM", "busy", "1", NULL}, body, size);
	expect(hear_line(l), ":1");
}

/* ---- beanstalkd ------------------------------------------------------------- */

static void beanstalk_push(struct line *l, const char *body, size_t size)
{
	size_t at = (size_t)sprintf(l->out, "put 0 0 60 %zu\r\n", size);

	memcpy(l->out + at, body, size);
	memcpy(l->out + at + size, "\r\n", 2);
	say(l, at + size + 2);
	expect(hear_line(l), "INSERTED ");
}

static void beanstalk_pop(struct line *l, const char *body, size_t size)
{
	unsigned long long id, got;
	const char *answer;

	(void)body;
	say(l, (size_t)sprintf(l->out, "reserve-with-timeout 0\r\n"));
	answer = hear_line(l);
	expect(answer, "RESERVED ");
	if (sscanf(answer, "RESERVED %llu %llu", &id, &got) != 2 || got != size) {
		errno = EPROTO;
		die("%s", answer);
	}
	hear_body(l, size);
	say(l, (size_t)sprintf(l->out, "delete %llu\r\n", id));
	expect(hear_line(l), "DELETED");
}

/* ---- which ------------------------------------------------------------------ */

static const struct kind kinds[] = {
	{"redis", redis_push, redis_pop},
	{"redis-move", redis_push, redis_move_pop},
	{"beanstalk", beanstalk_push, beanstalk_pop},
};

static void *prepare(struct person *p)
{
	const struct job *job = p->arg;
	struct line *l = calloc(1, sizeof(*l));

	if (l == NULL)
		die("memory");
	call_on(l, job->path);
	return l;
}

static void push_part(struct person *p, void *prepared)
{
	const struct job *job = p->arg;

	for (size_t i = 0; i < p->part; i++)
		job->kind->push(prepared, job->body, job->size);
}

static void pop_part(struct person *p, void *prepared)
{
	const struct job *job = p->arg;

	for (size_t i = 0; i < p->part; i++)
		job->kind->pop(prepared, job->body, job->size);
}

static const struct kind *kind_of(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static char body[SIZE_MAX_B];
	struct job job = {.body = body};
	struct crowd crowd = {.prepare = prepare, .arg = &job};
	const char *mode = argc == 7 ? argv[3] : "";

	job.kind = argc == 7 ? kind_of(argv[1]) : NULL;
	if (job.kind == NULL || (strcmp(mode, "push") != 0 && strcmp(mode, "pop") != 0)) {
		fputs("usage: peer redis|redis-move|beanstalk SOCKET push|pop N SIZE CLIENTS\n",
			stderr);
		return 64;
	}
	memset(body, 'x', sizeof(body));
	job.path = argv[2];
	job.size = number(argv[5], SIZE_MAX_B);
	crowd.n = number(argv[4], COUNT_MAX);
	crowd.people = (int)number(argv[6], PEOPLE_MAX);
	crowd.work = strcmp(mode, "push") == 0 ? push_part : pop_part;
	print_us(mode, (double)crowd_run(&crowd) / (double)crowd.n);
	return 0;
}
