/* SPDX-License-Identifier: MIT */
/* Answers that are none, time-outs, and what is said about them. */
#include "backend/wire/http.h"

#include <fcntl.h>
#include <semaphore.h>
#include <netdb.h>
#include <unistd.h>

#include "backend/base/log.h"
#include "http_bed.h"

static void check_failure(const struct http_req *req, int err, bool in_doubt)
{
	bed_check(req, err, 0);
	CHECK_INT(req->in_doubt, in_doubt);
}

/* Request 0 gets TEXT for an answer. */
static void check_text(const char *text, int err)
{
	struct bed b;

	bed_setup(&b);
	b.server.text = text;
	check_failure(bed_run(&b, 0, "GET"), err, true);
	bed_teardown(&b);
}

TEST(garbage_is_not_http)
{
	check_text("garbage instead of an answer\r\n\r\n", -EPROTO);
	check_text("HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nhello", -EPROTO);
	check_text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZ\r\n", -EPROTO);
}

static void close_now(struct hs_conn *c)
{
	hs_close(c, c->server->text);
}

static void reset_now(struct hs_conn *c)
{
	hs_reset(c, c->server->text);
}

static void check_cut(void (*how)(struct hs_conn *), const char *text)
{
	struct bed b;

	bed_setup(&b);
	b.server.answer = how;
	b.server.text = text;
	check_failure(bed_run(&b, 0, "PUT"), -EAGAIN, true);
	CHECK_INT(b.server.requests, 1);
	bed_teardown(&b);
}

TEST(connection_that_ends_is_no_answer)
{
	const char *texts[] = {"", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"};

	for (int i = 0; i < 3; i++) {
		check_cut(close_now, texts[i]);
		check_cut(reset_now, texts[i]);
	}
}

TEST(nobody_listens)
{
	struct bed b;

	bed_setup(&b);
	hs_refuse(&b.server);
	check_failure(bed_run(&b, 0, "PUT"), -EAGAIN, false);
	bed_teardown(&b);
}

TEST(urls_and_headers_without_sense)
{
	const char *urls[] = {"", "nonsense", "ftp://127.0.0.1/", "http://[::1/",
		"http://127.0.0.1:99999/", "http://u:secret@127.0.0.1/",
		"http://127.0.0.1/a b", "http://127.0.0.1/\n"};
	const char *headers[] = {"no colon\n", "A: b\r\nC: d\n"};
	struct bed b;

	bed_setup(&b);
	for (int i = 0; i < 8; i++) {
		buf_addstr(&b.reqs[i].url, urls[i]);
		if (i == 0)
			buf_add(&b.reqs[i].url, "http://127.0.0.1/\0x", 19);
		check_failure(bed_run(&b, i, "GET"), -EINVAL, false);
	}
	for (int i = 8; i < 10; i++) {
		buf_addstr(&b.reqs[i].headers, headers[i - 8]);
		check_failure(bed_run(&b, i, "GET"), -EINVAL, false);
	}
	CHECK_INT(b.server.accepted, 0);
	bed_teardown(&b);
}

/* ---- bounds ------------------------------------------------------------- */

TEST(body_is_bounded)
{
	struct bed b;

	bed_setup(&b);
	b.reqs[0].max_body = 5;
	bed_check(bed_run(&b, 0, "GET"), 0, 200);
	CHECK_STR(b.reqs[0].answer.p, "hello");
	b.reqs[0].max_body = 4;
	check_failure(bed_run(&b, 0, "GET"), -EMSGSIZE, true);
	bed_check(bed_run(&b, 1, "GET"), 0, 200);
	bed_teardown(&b);
}

static void answer_endless(struct hs_conn *c)
{
	hs_say_endless(c, c->server->text);
}

TEST(endless_body_ends)
{
	struct bed b;

	bed_setup(&b);
	b.server.answer = answer_endless;
	b.server.text = "HTTP/1.1 200 OK\r\n\r\n";
	check_failure(bed_run(&b, 0, "GET"), -EMSGSIZE, true);
	CHECK(b.reqs[0].answer.len <= (size_t)1 << 20);
	AWAIT(&b, b.server.open == 0);
	bed_teardown(&b);
}

static void answer_many_headers(struct hs_conn *c)
{
	struct buf text = {0};

	buf_addstr(&text, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n");
	for (int i = 0; i < *(int *)c->server->arg; i++)
		buf_printf(&text, "X-%05d: %0990d\r\n", i, 0);
	buf_addstr(&text, "\r\n");
	hs_say(c, text.p);
	buf_fini(&text);
}

TEST(headers_are_bounded)
{
	struct bed b;
	int thousands = 60;

	bed_setup(&b);
	b.server.answer = answer_many_headers;
	b.server.arg = &thousands;
	bed_check(bed_run(&b, 0, "GET"), 0, 200);
	thousands = 70;
	check_failure(bed_run(&b, 0, "GET"), -EMSGSIZE, true);
	bed_teardown(&b);
}

/* ---- time --------------------------------------------------------------- */

static void hold(struct hs_conn *c)
{
	(void)c;
}

static void answer_0(struct hs_conn *c)
{
	if (strstr(c->server->last.p, "/r0?"))
		hs_say(c, hs_hello);
	else
		hs_say(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
}

/* The one that was answered has a connection that grows old meanwhile. */
TEST(stalled_answer_is_given_up_and_an_old_connection_not_reused)
{
	struct bed b;

	bed_setup(&b);
	b.cfg.stall_timeout_ns = NS_PER_S;
	b.cfg.idle_ns = 0;
	bed_reconfigure(&b);
	b.server.answer = answer_0;
	bed_submit(&b, 0, "GET");
	check_failure(bed_run(&b, 1, "GET"), -EAGAIN, true);
	bed_check(&b.reqs[0], 0, 200);
	CHECK_INT(b.server.accepted, 2);
	bed_check(bed_run(&b, 0, "GET"), 0, 200);
	CHECK_INT(b.server.accepted, 3);
	bed_teardown(&b);
}

TEST(all_of_a_request_is_bounded_in_time)
{
	struct bed b;

	bed_setup(&b);
	b.cfg.total_timeout_ns = 200 * NS_PER_MS;
	bed_reconfigure(&b);
	b.server.answer = hold;
	check_failure(bed_run(&b, 0, "GET"), -EAGAIN, true);
	CHECK(b.reqs[0].took_ns >= 200 * NS_PER_MS);
	CHECK(b.reqs[0].took_ns < 10 * NS_PER_S);
	bed_teardown(&b);
}

/* One after the other they would take five times as long. */
TEST(waiting_for_a_connection_counts)
{
	struct bed b;
	int64_t start = bed_now_ns();

	bed_setup(&b);
	b.cfg.max_connections = 1;
	b.cfg.total_timeout_ns = 400 * NS_PER_MS;
	bed_reconfigure(&b);
	b.server.answer = hold;
	for (int i = 0; i < 5; i++)
		bed_submit(&b, i, "GET");
	AWAIT(&b, b.done == 5);
	CHECK(bed_now_ns() - start < 3 * b.cfg.total_timeout_ns);
	for (int i = 0; i < 5; i++)
		bed_check(&b.reqs[i], -EAGAIN, 0);
	bed_teardown(&b);
}

/* ---- names -------------------------------------------------------------- */

static sem_t resolver;

/* Takes the place of libc's: the host "stuck" is resolved when the test lets it. */
int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
	struct addrinfo **res)
{
	(void)service, (void)hints, (void)res;
	if (strcmp(host, "stuck.test") == 0)
		sem_wait(&resolver);
	return EAI_NONAME;
}

static void submit_stuck(struct bed *b, int i)
{
	buf_printf(&b->reqs[i].url, "http://stuck.test/?%s", BED_QUERY);
	bed_submit(b, i, "GET");
}

TEST(unknown_host_is_unreachable)
{
	struct bed b;

	bed_setup(&b);
	buf_printf(&b.reqs[0].url, "http://unknown.test/?%s", BED_QUERY);
	check_failure(bed_run(&b, 0, "GET"), -EAGAIN, false);
	CHECK(strstr(b.reqs[0].detail, "unknown.test"));
	bed_teardown(&b);
}

/* Its thread goes on, with a descriptor, until the resolver has answered. */
TEST(resolver_that_hangs_stops_nothing)
{
	struct bed b;
	int quiet;

	CHECK_INT(sem_init(&resolver, 0, 0), 0);
	bed_setup(&b);
	http_destroy(b.http);
	quiet = bed_count_fds();
	b.cfg.connect_timeout_ns = 300 * NS_PER_MS;
	b.http = http_create(b.loop, &b.cfg);
	for (int i = 0; i < 3; i++)
		submit_stuck(&b, i);
	bed_check(bed_run(&b, 3, "GET"), 0, 200);
	CHECK_INT(b.done, 1);
	http_cancel(&b.reqs[0]);
	AWAIT(&b, b.done == 3);
	check_failure(&b.reqs[1], -EAGAIN, false);
	submit_stuck(&b, 4);
	bed_check(bed_run(&b, 3, "GET"), 0, 200);
	http_destroy(b.http);
	b.http = NULL;
	CHECK(bed_count_fds() > quiet);
	for (int i = 0; i < 4; i++)
		sem_post(&resolver);
	AWAIT(&b, bed_count_fds() == quiet);
	bed_teardown(&b);
}

/* ---- what is said ------------------------------------------------------- */

static FILE *log_file;
static int log_stderr;

static void divert_log(void)
{
	log_file = tmpfile();
	CHECK(log_file);
	log_stderr = dup(STDERR_FILENO);
	CHECK(log_stderr >= 0);
	CHECK(dup2(fileno(log_file), STDERR_FILENO) >= 0);
	CHECK_INT(log_set_debug("http"), 0);
}

static void take_log(char *out, size_t len)
{
	size_t n;

	CHECK_INT(log_set_debug(NULL), 0);
	CHECK(dup2(log_stderr, STDERR_FILENO) >= 0);
	close(log_stderr);
	rewind(log_file);
	n = fread(out, 1, len - 1, log_file);
	out[n] = '\0';
	fclose(log_file);
}

TEST(log_has_a_line_for_each_answer_and_no_secrets)
{
	struct bed b;
	char text[2048];

	bed_setup(&b);
	divert_log();
	buf_addstr(&b.reqs[0].headers, "Authorization: secret\n");
	bed_check(bed_run(&b, 0, "GET"), 0, 200);
	b.server.answer = reset_now;
	b.server.text = "HTTP/1.1 200 OK\r\nContent-Length: secret\r\n";
	(void)bed_run(&b, 1, "PUT");
	b.server.text = "secret";
	(void)bed_run(&b, 2, "PUT");
	take_log(text, sizeof(text));
	CHECK(strstr(text, "debug http: GET 127.0.0.1/r0 status=200 ms="));
	CHECK(strstr(text, "PUT 127.0.0.1/r1 failed: "));
	CHECK(strstr(text, "PUT 127.0.0.1/r2 failed: "));
	CHECK(!strstr(text, "secret"));
	CHECK(!strstr(text, "sig="));
	bed_teardown(&b);
}

/* ---- proxies ------------------------------------------------------------ */

TEST(proxy_is_used_but_not_for_this_machine)
{
	struct bed b;
	char proxy[64];

	bed_setup(&b);
	(void)snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%d", b.server.port);
	CHECK_INT(setenv("http_proxy", proxy, 1), 0);
	buf_addstr(&b.reqs[0].url, "http://far.test/x");
	bed_check(bed_run(&b, 0, "GET"), 0, 200);
	CHECK(strstr(b.server.last.p, "GET http://far.test/x HTTP/1.1\r\n"));
	bed_check(bed_run(&b, 1, "GET"), 0, 200);
	CHECK(strstr(b.server.last.p, "GET /r1?"));
	CHECK_INT(unsetenv("http_proxy"), 0);
	bed_teardown(&b);
}

TEST(password_of_a_proxy_is_not_told)
{
	struct bed b;

	bed_setup(&b);
	CHECK_INT(setenv("http_proxy", "ftp://user:secret@far.test:1", 1), 0);
	buf_addstr(&b.reqs[0].url, "http://far.test/x");
	check_failure(bed_run(&b, 0, "GET"), -EAGAIN, false);
	CHECK_INT(setenv("http_proxy", "http://user:secret@far.test:1", 1), 0);
	check_failure(bed_run(&b, 0, "GET"), -EAGAIN, false);
	CHECK_INT(unsetenv("http_proxy"), 0);
	bed_teardown(&b);
}
