/* SPDX-License-Identifier: MIT */
/* What is sent, what comes back, and connections. */
#include "backend/wire/http.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "http_bed.h"

static bool sent(const struct bed *b, const char *text)
{
	return strstr(b->server.last.p, text) != NULL;
}

static bool sent_header(const struct bed *b, const char *name)
{
	char line[64];

	(void)snprintf(line, sizeof(line), "\r\n%s:", name);
	return strcasestr(b->server.last.p, line) != NULL;
}

TEST(answer_is_taken_whole)
{
	struct bed b;
	struct http_req *req;
	char value[16];

	bed_setup(&b);
	b.server.text =
		"HTTP/1.1 201 Created\r\nX-A: b\r\nContent-Length: 5\r\n\r\nhello";
	req = bed_run(&b, 0, "GET");
	bed_check(req, 0, 201);
	CHECK_STR(req->answer.p, "hello");
	CHECK(http_header(req, "x-a", value, sizeof(value)));
	CHECK_STR(value, "b");
	CHECK(req->took_ns > 0);
	CHECK(!req->resent);
	CHECK(sent(&b, "GET /r0?" BED_QUERY " HTTP/1.1\r\n"));
	CHECK_INT(http_requests(b.http), 1);
	bed_teardown(&b);
}

TEST(request_is_as_it_was_signed)
{
	struct bed b;

	bed_setup(&b);
	buf_printf(&b.reqs[0].url, "http://127.0.0.1:%d/a/../b%%2f/./?x=a+b&&y",
		b.server.port);
	buf_addstr(&b.reqs[0].headers,
		"x-ms-date: today\nAccept:\nContent-Type: text/plain\nX-Last: 1");
	b.reqs[0].body = "body";
	b.reqs[0].body_len = 4;
	bed_check(bed_run(&b, 0, "MERGE"), 0, 200);
	CHECK(sent(&b, "MERGE /a/../b%2f/./?x=a+b&&y HTTP/1.1\r\n"));
	CHECK(sent(&b, "\r\nx-ms-date: today\r\n"));
	CHECK(sent(&b, "\r\nContent-Type: text/plain\r\n"));
	CHECK(sent(&b, "\r\nX-Last: 1\r\n"));
	CHECK(sent(&b, "\r\nContent-Length: 4\r\n"));
	CHECK(sent(&b, "\r\n\r\nbody"));
	CHECK(!sent_header(&b, "Accept"));
	bed_teardown(&b);
}

TEST(nothing_is_added_that_nobody_asked_for)
{
	const char *methods[] = {"GET", "DELETE", "HEAD"};
	struct bed b;

	bed_setup(&b);
	b.server.text = "HTTP/1.1 204 No Content\r\n\r\n";
	for (int i = 0; i < 3; i++) {
		bed_check(bed_run(&b, i, methods[i]), 0, 204);
		CHECK_INT(strncmp(b.server.last.p, methods[i], strlen(methods[i])), 0);
		CHECK(!sent_header(&b, "Content-Length"));
		CHECK(!sent_header(&b, "Content-Type"));
		CHECK(!sent_header(&b, "Expect"));
	}
	bed_teardown(&b);
}

TEST(put_and_post_without_a_body_say_so)
{
	const char *methods[] = {"PUT", "POST"};
	struct bed b;

	bed_setup(&b);
	for (int i = 0; i < 2; i++) {
		bed_check(bed_run(&b, i, methods[i]), 0, 200);
		CHECK_INT(strncmp(b.server.last.p, methods[i], strlen(methods[i])), 0);
		CHECK(sent(&b, "\r\nContent-Length: 0\r\n"));
		CHECK(!sent_header(&b, "Content-Type"));
		CHECK(!sent_header(&b, "Transfer-Encoding"));
	}
	bed_teardown(&b);
}

TEST(large_body_is_sent_without_asking)
{
	size_t len = (size_t)3 << 20;
	char *body = malloc(len);
	const char *at;
	struct bed b;

	CHECK(body);
	memset(body, 'x', len);
	body[0] = '\0';
	bed_setup(&b);
	b.reqs[0].body = body;
	b.reqs[0].body_len = len;
	bed_check(bed_run(&b, 0, "PUT"), 0, 200);
	CHECK(!sent_header(&b, "Expect"));
	at = strstr(b.server.last.p, "\r\n\r\n") + 4;
	CHECK_INT(b.server.last.len - (size_t)(at - b.server.last.p), len);
	CHECK(memcmp(at, body, len) == 0);
	bed_teardown(&b);
	free(body);
}

TEST(chunks_are_put_together)
{
	struct bed b;

	bed_setup(&b);
	b.server.text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
			"3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
	bed_check(bed_run(&b, 0, "GET"), 0, 200);
	CHECK_STR(b.reqs[0].answer.p, "hello");
	bed_teardown(&b);
}

TEST(answer_to_head_has_no_body)
{
	struct bed b;

	bed_setup(&b);
	b.server.text = "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n";
	bed_check(bed_run(&b, 0, "HEAD"), 0, 200);
	CHECK_INT(b.reqs[0].answer.len, 0);
	bed_teardown(&b);
}

TEST(headers_are_those_of_the_last_answer)
{
	struct bed b;
	char value[16];

	bed_setup(&b);
	b.server.text = "HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n"
			"HTTP/1.1 200 OK\r\nX-Late: 2\r\nContent-Length: 0\r\n\r\n";
	bed_check(bed_run(&b, 0, "GET"), 0, 200);
	CHECK(!http_header(&b.reqs[0], "X-Early", value, sizeof(value)));
	CHECK(http_header(&b.reqs[0], "X-Late", value, sizeof(value)));
	bed_teardown(&b);
}

TEST(redirect_is_an_answer)
{
	struct bed b;

	bed_setup(&b);
	b.server.text =
		"HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n";
	bed_check(bed_run(&b, 0, "GET"), 0, 302);
	CHECK_INT(b.server.requests, 1);
	bed_teardown(&b);
}

TEST(request_can_be_submitted_again)
{
	struct bed b;

	bed_setup(&b);
	bed_check(bed_run(&b, 0, "GET"), 0, 200);
	b.server.text = "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno";
	bed_check(bed_run(&b, 0, "GET"), 0, 404);
	CHECK_STR(b.reqs[0].answer.p, "no");
	bed_teardown(&b);
}

/* ---- connections -------------------------------------------------------- */

TEST(requests_in_turn_share_a_connection)
{
	struct bed b;

	bed_setup(&b);
	for (int i = 0; i < 5; i++)
		bed_check(bed_run(&b, i, i % 2 ? "PUT" : "GET"), 0, 200);
	CHECK_INT(b.server.accepted, 1);
	CHECK_INT(http_connections(b.http), 1);
	CHECK_INT(http_requests(b.http), 5);
	bed_teardown(&b);
}

static void hold(struct hs_conn *c)
{
	(void)c;
}

static void answer_held(struct bed *b)
{
	struct hs_conn *c, *next;

	for (c = TAILQ_FIRST(&b->server.conns); c; c = next) {
		next = TAILQ_NEXT(c, link);
		if (c->requests)
			hs_say(c, hs_hello);
		c->requests = 0;
	}
}

/* The server answers none before all four have come. */
TEST(requests_at_once_have_a_connection_each)
{
	struct bed b;

	bed_setup(&b);
	b.server.answer = hold;
	for (int round = 1; round <= 2; round++) {
		for (int i = 0; i < 4; i++)
			bed_submit(&b, i, "GET");
		AWAIT(&b, b.server.requests == 4U * (unsigned)round);
		answer_held(&b);
		AWAIT(&b, b.done == 4U * (unsigned)round);
	}
	for (int i = 0; i < 4; i++)
		bed_check(&b.reqs[i], 0, 200);
	/* The second time they were there already. */
	CHECK_INT(b.server.accepted, 4);
	CHECK_INT(http_connections(b.http), 4);
	bed_teardown(&b);
}

TEST(connections_are_bounded_and_the_rest_waits)
{
	struct bed b;

	bed_setup(&b);
	b.cfg.max_connections = 3;
	bed_reconfigure(&b);
	b.server.answer = hold;
	for (int i = 0; i < 8; i++)
		bed_submit(&b, i, "GET");
	AWAIT(&b, b.server.requests == 3);
	while (b.done < 8) {
		unsigned done = b.done, want = b.server.requests;

		CHECK(want - done <= 3);
		answer_held(&b);
		AWAIT(&b, b.done == want);
		AWAIT(&b, b.server.requests == (want + 3 < 8 ? want + 3 : 8));
	}
	CHECK_INT(b.server.most_open, 3);
	CHECK_INT(b.server.accepted, 3);
	bed_teardown(&b);
}

/* "localhost" is another host to whoever keeps connections. */
TEST(idle_connections_make_room_for_another_host)
{
	struct bed b;

	bed_setup(&b);
	b.cfg.max_connections = 2;
	bed_reconfigure(&b);
	b.server.answer = hold;
	for (int i = 0; i < 2; i++)
		bed_submit(&b, i, "GET");
	AWAIT(&b, b.server.requests == 2);
	answer_held(&b);
	AWAIT(&b, b.done == 2);
	b.server.answer = NULL;
	buf_printf(&b.reqs[2].url, "http://localhost:%d/", b.server.port);
	bed_check(bed_run(&b, 2, "GET"), 0, 200);
	AWAIT(&b, b.server.open == 2);
	bed_teardown(&b);
}

TEST(no_connection_is_left_to_children)
{
	struct sockaddr_in to;
	socklen_t len;
	struct bed b;
	int found = 0;

	bed_setup(&b);
	bed_check(bed_run(&b, 0, "GET"), 0, 200);
	for (int fd = 0; fd < 256; fd++) {
		len = sizeof(to);
		if (getpeername(fd, (struct sockaddr *)&to, &len) == 0 &&
			to.sin_family == AF_INET && ntohs(to.sin_port) == b.server.port) {
			found++;
			CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		}
	}
	CHECK_INT(found, 1);
	bed_teardown(&b);
}

TEST(closed_connection_is_replaced)
{
	struct bed b;

	bed_setup(&b);
	bed_check(bed_run(&b, 0, "GET"), 0, 200);
	hs_close(TAILQ_FIRST(&b.server.conns), "");
	bed_check(bed_run(&b, 1, "PUT"), 0, 200);
	CHECK(!b.reqs[1].resent);
	CHECK_INT(b.server.accepted, 2);
	bed_teardown(&b);
}

static void reset_the_second(struct hs_conn *c)
{
	if (c->requests == 2)
		hs_reset(c, "");
	else
		hs_say(c, hs_hello);
}

TEST(request_lost_by_a_kept_connection_is_resent_and_that_told)
{
	struct bed b;

	bed_setup(&b);
	b.server.answer = reset_the_second;
	bed_check(bed_run(&b, 0, "GET"), 0, 200);
	CHECK(!b.reqs[0].resent);
	b.reqs[1].body = "body";
	b.reqs[1].body_len = 4;
	bed_check(bed_run(&b, 1, "PUT"), 0, 200);
	CHECK(b.reqs[1].resent);
	CHECK(sent(&b, "\r\n\r\nbody"));
	CHECK_INT(b.server.requests, 3);
	bed_teardown(&b);
}

static void reset_the_second_and_refuse(struct hs_conn *c)
{
	if (c->requests == 2)
		hs_refuse(c->server);
	reset_the_second(c);
}

TEST(request_that_could_not_be_resent_is_in_doubt)
{
	struct bed b;

	bed_setup(&b);
	b.server.answer = reset_the_second_and_refuse;
	bed_check(bed_run(&b, 0, "GET"), 0, 200);
	bed_check(bed_run(&b, 1, "PUT"), -EAGAIN, 0);
	CHECK(b.reqs[1].in_doubt);
	bed_teardown(&b);
}

/* ---- cancelling --------------------------------------------------------- */

TEST(cancelled_request_is_not_told)
{
	struct bed b;

	bed_setup(&b);
	b.server.answer = hold;
	for (int i = 0; i < 2; i++)
		bed_submit(&b, i, "GET");
	AWAIT(&b, b.server.requests == 2);
	http_cancel(&b.reqs[0]);
	http_cancel(&b.reqs[0]);
	AWAIT(&b, b.server.open == 1);
	answer_held(&b);
	AWAIT(&b, b.told[1]);
	CHECK_INT(b.told[0], 0);
	/* It can be used again. */
	b.server.answer = NULL;
	bed_check(bed_run(&b, 0, "GET"), 0, 200);
	http_cancel(&b.reqs[0]);
	bed_teardown(&b);
}

TEST(waiting_and_failed_requests_can_be_cancelled)
{
	struct bed b;

	bed_setup(&b);
	b.cfg.max_connections = 1;
	bed_reconfigure(&b);
	b.server.answer = hold;
	bed_submit(&b, 0, "GET");
	AWAIT(&b, b.server.requests == 1);
	bed_submit(&b, 1, "GET");
	buf_addstr(&b.reqs[2].url, "nonsense");
	bed_submit(&b, 2, "GET");
	bed_submit(&b, 3, "GET");
	http_cancel(&b.reqs[1]);
	http_cancel(&b.reqs[2]);
	b.server.answer = NULL;
	answer_held(&b);
	AWAIT(&b, b.told[3]);
	CHECK_INT(b.done, 2);
	CHECK_INT(b.server.requests, 2);
	bed_teardown(&b);
}

static void cancel_the_others(struct bed *b, struct http_req *req)
{
	for (int i = 0; i < BED_REQS; i++) {
		if (&b->reqs[i] != req)
			http_req_fini(&b->reqs[i]);
	}
}

TEST(done_may_cancel_the_others)
{
	struct bed b;

	bed_setup(&b);
	b.also = cancel_the_others;
	/* These fail at once: all have ended when the first is told. */
	for (int i = 0; i < 3; i++) {
		buf_addstr(&b.reqs[i].url, "nonsense");
		bed_submit(&b, i, "GET");
	}
	for (int i = 3; i < 6; i++)
		bed_submit(&b, i, "GET");
	AWAIT(&b, b.done);
	bed_check(&b.reqs[0], -EINVAL, 0);
	bed_check(bed_run(&b, 6, "GET"), 0, 200);
	CHECK_INT(b.done, 2);
	bed_teardown(&b);
}

static void submit_the_next(struct bed *b, struct http_req *req)
{
	int i = (int)(req - b->reqs) + 1;

	if (i < 5)
		bed_submit(b, i, "GET");
}

TEST(done_may_submit)
{
	struct bed b;

	bed_setup(&b);
	b.also = submit_the_next;
	bed_submit(&b, 0, "GET");
	AWAIT(&b, b.done == 5);
	CHECK_INT(b.server.accepted, 1);
	bed_teardown(&b);
}

static void destroy(struct bed *b, struct http_req *req)
{
	(void)req;
	http_destroy(b->http);
	b->http = NULL;
}

TEST(done_may_destroy_the_client)
{
	struct bed b;

	bed_setup(&b);
	b.also = destroy;
	for (int i = 0; i < 6; i++) {
		/* These have ended when the first is told. */
		if (i < 3)
			buf_addstr(&b.reqs[i].url, "nonsense");
		bed_submit(&b, i, "GET");
	}
	AWAIT(&b, b.done);
	loop_once(b.loop, 0);
	AWAIT(&b, b.server.open == 0);
	CHECK_INT(b.done, 1);
	bed_teardown(&b);
}

TEST(destroying_cancels_what_is_under_way)
{
	struct bed b;

	bed_setup(&b);
	b.server.answer = hold;
	for (int i = 0; i < 4; i++)
		bed_submit(&b, i, "GET");
	AWAIT(&b, b.server.requests == 4);
	destroy(&b, NULL);
	AWAIT(&b, b.server.open == 0);
	CHECK_INT(b.done, 0);
	http_cancel(&b.reqs[0]);
	http_destroy(NULL);
	bed_teardown(&b);
}
