/* SPDX-License-Identifier: MIT */
/*
 * All requests, and curl on the loop.
 *
 * curl says which sockets it waits for and for how long; the loop tells it what
 * happened; then the transfers that have ended are collected. done() is called
 * from a task only, one a turn: never below a function of curl, never before
 * http_submit() has returned, and nothing is touched after it, for it may
 * destroy everything.
 *
 * curl's clock is not ours: it gives durations, which count from our now. Should
 * its timer be served too early, it asks again.
 */
#include "http.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "../base/clock.h"
#include "../base/log.h"
#include "../base/loop.h"
#include "http_int.h"

/* A socket that curl waits for. */
struct http_socket {
	TAILQ_ENTRY(http_socket) link;
	struct http *http;
	struct loop_fd w;
};

TAILQ_HEAD(http_reqs, http_req);

struct http {
	struct loop *loop;
	struct http_config cfg;
	char *ca_file;
	CURLM *multi;
	struct loop_timer timer;
	struct loop_task task;
	TAILQ_HEAD(, http_socket) sockets;
	struct http_reqs running;  /* curl has them */
	struct http_reqs finished; /* to be told */
	uint64_t requests, connections;
};

struct http_config http_config_default(void)
{
	return (struct http_config){
		.max_connections = 16,
		.connect_timeout_ns = 10 * NS_PER_S,
		.stall_timeout_ns = 15 * NS_PER_S,
		.total_timeout_ns = 30 * NS_PER_S,
		.idle_ns = 60 * NS_PER_S,
	};
}

/* ---- the end of a request ---------------------------------------------- */

static void log_outcome(const struct http_req *req)
{
	const struct http_try *t = req->try;
	int64_t ms = req->took_ns / NS_PER_MS;

	if (!t || !t->path)
		log_debug("http", "%s failed: %s", req->method, req->detail);
	else if (req->err)
		log_debug("http", "%s %s%s failed: %s ms=%lld", req->method, t->host,
			t->path, req->detail, (long long)ms);
	else
		log_debug("http", "%s %s%s status=%d ms=%lld", req->method, t->host,
			t->path, req->status, (long long)ms);
}

/* Curl forgets it; what was under way of it is cut off. */
static void drop_try(struct http_req *req)
{
	long connects = 0;

	if (!req->try)
		return;
	if (req->try->easy) {
		(void)curl_easy_getinfo(req->try->easy, CURLINFO_NUM_CONNECTS, &connects);
		(void)curl_multi_remove_handle(req->http->multi, req->try->easy);
	}
	req->http->connections += (uint64_t)connects;
	http_try_destroy(req->try);
	req->try = NULL;
}

/* From now on it is for the task to tell. */
static void finish(struct http_req *req)
{
	struct http *h = req->http;

	log_outcome(req);
	TAILQ_REMOVE(&h->running, req, link);
	drop_try(req);
	TAILQ_INSERT_TAIL(&h->finished, req, link);
	loop_task_queue(h->loop, &h->task);
}

static void on_task(void *arg)
{
	struct http *h = arg;
	struct http_req *req = TAILQ_FIRST(&h->finished);

	if (!req)
		return;
	TAILQ_REMOVE(&h->finished, req, link);
	req->http = NULL;
	if (!TAILQ_EMPTY(&h->finished))
		loop_task_queue(h->loop, &h->task);
	req->done(req);
}

/* ---- curl and the loop ------------------------------------------------- */

static void collect(struct http *h)
{
	struct http_req *req;
	CURLMsg *msg;
	int left;

	while ((msg = curl_multi_info_read(h->multi, &left))) {
		CURLcode code = msg->data.result;

		if (msg->msg != CURLMSG_DONE)
			continue;
		req = NULL;
		(void)curl_easy_getinfo(
			msg->easy_handle, CURLINFO_PRIVATE, (char **)&req);
		http_try_result(req, code);
		finish(req);
	}
}

static void act(struct http *h, curl_socket_t fd, int what)
{
	int running;
	CURLMcode rc = curl_multi_socket_action(h->multi, fd, what, &running);

	if (rc)
		log_error("http", "curl: %s", curl_multi_strerror(rc));
	collect(h);
}

static void on_timer(void *arg)
{
	act(arg, CURL_SOCKET_TIMEOUT, 0);
}

static int on_curl_timer(CURLM *multi, long ms, void *arg)
{
	struct http *h = arg;

	(void)multi;
	if (ms < 0)
		loop_timer_clear(h->loop, &h->timer);
	else
		loop_timer_set(h->loop, &h->timer,
			clock_add(clock_mono(), (int64_t)ms * NS_PER_MS));
	return 0;
}

static void on_socket(void *arg, uint32_t events)
{
	struct http_socket *s = arg;
	int what = 0;

	if (events & EPOLLIN)
		what |= CURL_CSELECT_IN;
	if (events & EPOLLOUT)
		what |= CURL_CSELECT_OUT;
	if (events & (EPOLLERR | EPOLLHUP))
		what |= CURL_CSELECT_ERR;
	act(s->http, s->w.fd, what);
}

static void drop_socket(struct http_socket *s)
{
	TAILQ_REMOVE(&s->http->sockets, s, link);
	loop_fd_del(s->http->loop, &s->w);
	free(s);
}

static int add_socket(struct http *h, int fd, uint32_t events)
{
	struct http_socket *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->http = h;
	TAILQ_INSERT_TAIL(&h->sockets, s, link);
	r = loop_fd_add(h->loop, &s->w, fd, events, on_socket, s);
	if (r)
		drop_socket(s);
	else
		(void)curl_multi_assign(h->multi, fd, s);
	return r;
}

/* Failing here would make the multi handle useless for ever; so a socket that
 * cannot be watched is left to the time-outs. */
static int on_curl_socket(
	CURL *easy, curl_socket_t fd, int what, void *arg, void *assigned)
{
	struct http_socket *s = assigned;
	struct http *h = arg;
	uint32_t events = 0;
	int r = 0;

	(void)easy;
	if (what != CURL_POLL_REMOVE) {
		events |= what & CURL_POLL_IN ? EPOLLIN : 0;
		events |= what & CURL_POLL_OUT ? EPOLLOUT : 0;
		r = s ? loop_fd_mod(h->loop, &s->w, events) : add_socket(h, fd, events);
	} else if (s) {
		(void)curl_multi_assign(h->multi, fd, NULL);
		drop_socket(s);
	}
	if (r)
		log_error("http", "cannot watch a socket: %s", strerrordesc_np(-r));
	return 0;
}

/* ---- creation and destruction ------------------------------------------ */

static int set_up_multi(struct http *h)
{
	long max = h->cfg.max_connections ? (long)h->cfg.max_connections : 1;
	CURLMcode rc;

	h->multi = curl_multi_init();
	if (!h->multi)
		return -1;
	rc = curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
	rc |= curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
	rc |= curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
	rc |= curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
	rc |= curl_multi_setopt(h->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, max);
	/* As many are kept when idle. */
	rc |= curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, max);
	return rc ? -1 : 0;
}

static int set_up(struct http *h, struct loop *loop, const struct http_config *cfg)
{
	h->loop = loop;
	h->cfg = *cfg;
	TAILQ_INIT(&h->sockets);
	TAILQ_INIT(&h->running);
	TAILQ_INIT(&h->finished);
	loop_timer_init(&h->timer, on_timer, h);
	loop_task_init(&h->task, on_task, h);
	if (cfg->ca_file) {
		h->ca_file = strdup(cfg->ca_file);
		if (!h->ca_file)
			return -1;
	}
	h->cfg.ca_file = h->ca_file;
	return set_up_multi(h);
}

struct http *http_create(struct loop *loop, const struct http_config *cfg)
{
	struct http *h;

	/* It counts: each has its clean-up. */
	if (curl_global_init(CURL_GLOBAL_DEFAULT)) {
		errno = ENOMEM;
		return NULL;
	}
	h = calloc(1, sizeof(*h));
	if (h && set_up(h, loop, cfg) == 0)
		return h;
	if (h)
		http_destroy(h);
	else
		curl_global_cleanup();
	errno = ENOMEM;
	return NULL;
}

void http_destroy(struct http *h)
{
	struct http_req *req;

	if (!h)
		return;
	while ((req = TAILQ_FIRST(&h->running)) || (req = TAILQ_FIRST(&h->finished)))
		http_cancel(req);
	/* Curl closes its connections, and may speak of them once more. */
	curl_multi_cleanup(h->multi);
	while (!TAILQ_EMPTY(&h->sockets))
		drop_socket(TAILQ_FIRST(&h->sockets));
	loop_timer_clear(h->loop, &h->timer);
	loop_task_cancel(h->loop, &h->task);
	free(h->ca_file);
	free(h);
	curl_global_cleanup();
}

/* ---- requests ---------------------------------------------------------- */

void http_submit(struct http *h, struct http_req *req)
{
	assert(!req->http && req->done);
	req->http = h;
	TAILQ_INSERT_TAIL(&h->running, req, link);
	h->requests++;
	if (http_try_create(req, &h->cfg)) {
		finish(req);
	} else if (curl_multi_add_handle(h->multi, req->try->easy)) {
		http_try_result(req, CURLE_OUT_OF_MEMORY);
		finish(req);
	}
}

void http_cancel(struct http_req *req)
{
	struct http *h = req->http;

	if (!h)
		return;
	TAILQ_REMOVE(req->try ? &h->running : &h->finished, req, link);
	drop_try(req);
	req->http = NULL;
}

void http_req_fini(struct http_req *req)
{
	http_cancel(req);
	buf_fini(&req->url);
	buf_fini(&req->headers);
	buf_fini(&req->answer);
	buf_fini(&req->answer_headers);
}

uint64_t http_requests(const struct http *h)
{
	return h->requests;
}

uint64_t http_connections(const struct http *h)
{
	return h->connections;
}
