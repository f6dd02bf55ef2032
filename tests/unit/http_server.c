/* SPDX-License-Identifier: MIT */
#include "http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

const char hs_hello[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

static void free_conn(struct hs_conn *c)
{
	loop_fd_del(c->server->loop, &c->w);
	close(c->w.fd);
	TAILQ_REMOVE(&c->server->conns, c, link);
	c->server->open--;
	buf_fini(&c->in);
	buf_fini(&c->out);
	free(c);
}

/* Sends what it can. False: the connection is gone. */
static bool flush(struct hs_conn *c)
{
	static const char more[4096];
	ssize_t n = 0;

	if (c->endless && c->out.len < sizeof(more))
		(void)buf_add(&c->out, more, sizeof(more));
	if (c->out.len)
		n = send(c->w.fd, c->out.p, c->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if ((n < 0 && errno != EAGAIN) || (c->close_after && (size_t)n == c->out.len)) {
		free_conn(c);
		return false;
	}
	if (n > 0) {
		memmove(c->out.p, c->out.p + n, c->out.len - (size_t)n);
		(void)buf_truncate(&c->out, c->out.len - (size_t)n);
	}
	(void)loop_fd_mod(c->server->loop, &c->w,
		EPOLLIN | (c->out.len || c->endless ? (uint32_t)EPOLLOUT : 0));
	return true;
}

void hs_say(struct hs_conn *c, const char *text)
{
	(void)buf_addstr(&c->out, text);
	(void)flush(c);
}

void hs_say_endless(struct hs_conn *c, const char *text)
{
	c->endless = true;
	hs_say(c, text);
}

void hs_close(struct hs_conn *c, const char *text)
{
	c->close_after = true;
	hs_say(c, text);
}

void hs_reset(struct hs_conn *c, const char *text)
{
	const struct linger none = {.l_onoff = 1, .l_linger = 0};

	(void)send(c->w.fd, text, strlen(text), MSG_NOSIGNAL);
	(void)setsockopt(c->w.fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	free_conn(c);
}

/* The length of the request at the beginning of IN, 0: not whole yet. */
static size_t whole(const struct buf *in)
{
	const char *end = in->p ? strstr(in->p, "\r\n\r\n") : NULL;
	const char *length = in->p ? strcasestr(in->p, "\r\nContent-Length:") : NULL;
	size_t n;

	if (!end)
		return 0;
	n = (size_t)(end - in->p) + 4;
	if (length && length < end)
		n += strtoul(length + strlen("\r\nContent-Length:"), NULL, 10);
	return n <= in->len ? n : 0;
}

static void serve(struct hs_conn *c, size_t n)
{
	struct hs *s = c->server;

	buf_clear(&s->last);
	(void)buf_add(&s->last, c->in.p, n);
	memmove(c->in.p, c->in.p + n, c->in.len - n);
	(void)buf_truncate(&c->in, c->in.len - n);
	s->requests++;
	c->requests++;
	if (s->answer)
		s->answer(c);
	else
		hs_say(c, s->text ? s->text : hs_hello);
}

static void on_conn(void *arg, uint32_t events)
{
	struct hs_conn *c = arg;
	char data[16384];
	ssize_t n;
	size_t len;

	if ((events & EPOLLOUT) && !flush(c))
		return;
	n = recv(c->w.fd, data, sizeof(data), MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		free_conn(c);
		return;
	}
	(void)buf_add(&c->in, data, (size_t)n);
	len = whole(&c->in);
	if (len)
		serve(c, len);
}

static void on_listener(void *arg, uint32_t events)
{
	struct hs *s = arg;
	struct hs_conn *c = calloc(1, sizeof(*c));
	int fd = accept4(s->w.fd, NULL, NULL, SOCK_CLOEXEC);

	(void)events;
	if (!c || fd < 0 || loop_fd_add(s->loop, &c->w, fd, EPOLLIN, on_conn, c))
		abort();
	c->server = s;
	TAILQ_INSERT_TAIL(&s->conns, c, link);
	s->accepted++;
	s->open++;
	if (s->open > s->most_open)
		s->most_open = s->open;
}

int hs_start(struct hs *s, struct loop *loop)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	TAILQ_INIT(&s->conns);
	s->loop = loop;
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) < 0 || listen(fd, 64) < 0 ||
		getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		return -errno;
	s->port = ntohs(a.sin_port);
	return loop_fd_add(loop, &s->w, fd, EPOLLIN, on_listener, s);
}

void hs_refuse(struct hs *s)
{
	if (!s->w.active)
		return;
	loop_fd_del(s->loop, &s->w);
	close(s->w.fd);
}

void hs_stop(struct hs *s)
{
	struct hs_conn *c;

	hs_refuse(s);
	while (s->loop && (c = TAILQ_FIRST(&s->conns)))
		free_conn(c);
	buf_fini(&s->last);
}
