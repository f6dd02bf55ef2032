/* SPDX-License-Identifier: MIT */
/* A far service: drafts are sealed, each writer's messages go in order, and
 * neither requests nor unread messages are wasted. */
#include "backend/engine/dead.h"
#include "backend/engine/outbox.h"

#include <stdio.h>

#include "engine_people.h"

static void setup_as(struct eb *b, bool receives)
{
	eb_init(b);
	b->ops.caps = (b->ops.caps & ~(unsigned)DRIVER_PEERS_KNOWN) | DRIVER_FAR;
	b->cfg.receives = receives;
}

static struct draft *write_as(struct eb *b, const char *name, struct proc *p)
{
	struct draft *d = draft_create(b->e, name, p, false);

	CHECK(d);
	CHECK_INT(draft_write(b->e, d, name, strlen(name), 0), 0);
	draft_close(b->e, d);
	return d;
}

static struct draft *write_file(struct eb *b, const char *name)
{
	return write_as(b, name, me(b));
}

/* ---- sending ---- */

TEST(a_writers_messages_go_one_after_the_other)
{
	struct eb b;

	setup_as(&b, false);
	eb_start(&b);
	eb_hold(&b, DRIVER_DRAFT_SEND);
	write_file(&b, "b");
	write_file(&b, "a");
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_DRAFT_SEND], 1);
	eb_let(&b, DRIVER_DRAFT_SEND);
	eb_run(&b);
	CHECK_STR(eb_sent(&b), "b a ");
	eb_close(&b);
}

TEST(different_writers_go_side_by_side)
{
	struct child one, other;
	struct eb b;

	setup_as(&b, false);
	eb_start(&b);
	one = spawn(obey);
	other = spawn(obey);
	eb_hold(&b, DRIVER_DRAFT_SEND);
	write_as(&b, "a", who(&b, one.pid));
	write_as(&b, "b", who(&b, other.pid));
	write_as(&b, "c", who(&b, one.pid));
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_DRAFT_SEND], 2);
	eb_let(&b, DRIVER_DRAFT_SEND);
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_DRAFT_SEND], 3);
	kill_and_reap(&one);
	kill_and_reap(&other);
	eb_close(&b);
}

/* As `echo > Q/a; cp b Q/` does. */
TEST(a_shell_and_then_its_command_are_one_writer)
{
	struct child shell;
	struct eb b;
	pid_t command;

	setup_as(&b, false);
	eb_start(&b);
	shell = spawn(obey_as_leader);
	eb_hold(&b, DRIVER_DRAFT_SEND);
	command = run(&shell); /* it leads its session by now */
	write_as(&b, "a", who(&b, shell.pid));
	write_as(&b, "b", who(&b, command));
	end_command(&b, &shell, 'e');
	write_as(&b, "c", who(&b, shell.pid));
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_DRAFT_SEND], 1);
	eb_let(&b, DRIVER_DRAFT_SEND);
	eb_run(&b);
	CHECK_STR(eb_sent(&b), "a b c ");
	kill_and_reap(&shell);
	eb_close(&b);
}

/* As `cp a Q/; cp b Q/` does: the first has ended when the second begins. */
TEST(commands_of_one_shell_are_one_writer)
{
	struct child shell;
	struct eb b;
	pid_t first, second;

	setup_as(&b, false);
	eb_start(&b);
	shell = spawn(obey_as_leader);
	eb_hold(&b, DRIVER_DRAFT_SEND);
	first = run(&shell);
	write_as(&b, "a", who(&b, first));
	end_command(&b, &shell, 'e');
	second = run(&shell);
	write_as(&b, "b", who(&b, second));
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_DRAFT_SEND], 1);
	eb_let(&b, DRIVER_DRAFT_SEND);
	eb_run(&b);
	CHECK_STR(eb_sent(&b), "a b ");
	kill_and_reap(&shell);
	eb_close(&b);
}

/* They wrote at the same time: that they ended since makes them no one writer. */
TEST(commands_that_ran_side_by_side_are_different_writers)
{
	struct child shell;
	struct eb b;
	pid_t first;

	setup_as(&b, false);
	eb_start(&b);
	shell = spawn(obey_as_leader);
	eb_hold(&b, DRIVER_DRAFT_SEND);
	first = run(&shell);
	write_as(&b, "a", who(&b, first));
	write_as(&b, "b", who(&b, shell.pid));
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_DRAFT_SEND], 2);
	end_command(&b, &shell, 'e');
	write_as(&b, "c", who(&b, shell.pid));
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_DRAFT_SEND], 2);
	eb_let(&b, DRIVER_DRAFT_SEND);
	eb_run(&b);
	CHECK_STR(eb_sent(&b), "a b c ");
	kill_and_reap(&shell);
	eb_close(&b);
}

TEST(what_failed_is_not_overtaken_by_its_writer)
{
	struct eb b;

	setup_as(&b, false);
	eb_start(&b);
	eb_fail(&b, DRIVER_DRAFT_SEND, -EAGAIN, 2);
	write_file(&b, "a");
	write_file(&b, "b");
	eb_pass(&b, 10 * NS_PER_S);
	CHECK_STR(eb_sent(&b), "a b ");
	eb_close(&b);
}

TEST(what_is_complete_is_sealed_and_sent_by_the_next_life)
{
	struct eb b;

	setup_as(&b, false);
	eb_start(&b);
	eb_fail(&b, DRIVER_DRAFT_SEND, -EAGAIN, 100);
	write_file(&b, "a");
	write_file(&b, "b");
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_DRAFT_SEAL], 2);
	b.fault[DRIVER_DRAFT_SEND].times = 0;
	eb_crash(&b);
	eb_run(&b);
	CHECK_STR(eb_sent(&b), "a b ");
	CHECK_INT(b.asked[DRIVER_DRAFT_SEAL], 0);
	eb_close(&b);
}

TEST(an_empty_message_is_stored_before_it_is_sent)
{
	struct eb b;

	setup_as(&b, false);
	eb_start(&b);
	draft_close(b.e, draft_create(b.e, "empty", me(&b), false));
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_DRAFT_PUT], 1);
	CHECK_INT(b.asked[DRIVER_SEND], 0);
	CHECK_STR(eb_sent(&b), "empty ");
	eb_close(&b);
}

TEST(a_queue_that_is_missing_is_no_success)
{
	struct eb b;

	setup_as(&b, false);
	eb_start(&b);
	eb_fail(&b, DRIVER_DRAFT_SEND, -ENOENT, 1);
	write_file(&b, "a");
	eb_run(&b);
	CHECK_INT(TAILQ_FIRST(engine_outbox(b.e))->state, DRAFT_SENDING);
	eb_pass(&b, 5 * NS_PER_S);
	CHECK_STR(eb_sent(&b), "a ");
	eb_close(&b);
}

static bool carries_no_x(const struct driver *d, const void *body, size_t len)
{
	(void)d;
	return !memchr(body, 'x', len);
}

static void flushed(struct draft_flush *f, int err)
{
	*(int *)f->arg = err;
}

TEST(what_cannot_be_carried_is_told_at_the_close_and_stays)
{
	int err = 1;
	struct draft_flush f = {.fn = flushed, .arg = &err};
	struct draft *d;
	struct eb b;

	setup_as(&b, false);
	b.ops.carries = carries_no_x;
	eb_start(&b);
	d = draft_create(b.e, "bad", me(&b), false);
	CHECK_INT(draft_write(b.e, d, "axa", 3, 0), 0);
	draft_flush(b.e, d, &f);
	eb_run(&b);
	CHECK_INT(err, -EILSEQ);
	draft_close(b.e, d);
	eb_pass(&b, NS_PER_S);
	CHECK_STR(eb_sent(&b), "");
	CHECK_INT(d->state, DRAFT_KEPT);
	CHECK(TAILQ_FIRST(&b.drafts));
	eb_close(&b);
}

TEST(half_of_it_may_be_unfit)
{
	int err = 1;
	struct draft_flush f = {.fn = flushed, .arg = &err};
	struct draft *d;
	struct eb b;

	setup_as(&b, false);
	b.ops.carries = carries_no_x;
	eb_start(&b);
	d = draft_create(b.e, "good", me(&b), false);
	CHECK_INT(draft_write(b.e, d, "x", 1, 0), 0);
	draft_flush(b.e, d, &f);
	eb_run(&b);
	CHECK_INT(err, -EILSEQ);
	CHECK_INT(draft_write(b.e, d, "y", 1, 0), 0);
	draft_close(b.e, d);
	eb_run(&b);
	CHECK_STR(eb_sent(&b), "good ");
	eb_close(&b);
}

/* ---- dead letters ---- */

static void (*bed_submit)(struct driver *d, struct driver_req *req);
static size_t buried_len;

static void note_burial(struct driver *d, struct driver_req *req)
{
	const struct settle *it = req->u.settle.items;

	if (req->op == DRIVER_SETTLE && it->op == SETTLE_BURY && it->body)
		buried_len = it->body->len;
	bed_submit(d, req);
}

/* A service sends it anew. */
TEST(what_is_buried_has_its_body)
{
	struct eb b;

	setup_as(&b, true);
	bed_submit = b.ops.submit;
	b.ops.submit = note_burial;
	eb_put(&b, "17");
	eb_start(&b);
	CHECK_INT(engine_bury(b.e, eb_find(&b, "17"), me(&b), "unread"), 0);
	eb_pass(&b, NS_PER_S);
	CHECK_INT(buried_len, 2);
	eb_close(&b);
}

/* The count is seldom asked for. */
TEST(when_all_dead_letters_that_were_listed_are_gone_the_next_are)
{
	struct dead *d, *next;
	struct eb b;

	setup_as(&b, true);
	eb_put_many(&b, 1, 9); /* the window takes 8 */
	for (struct eb_message *m = TAILQ_FIRST(&b.messages); m; m = TAILQ_NEXT(m, link))
		m->state = EB_DEAD;
	eb_start(&b);
	eb_forget(&b);
	HASH_ITER (hh, engine_dead(b.e), d, next)
		CHECK_INT(dead_discard(b.e, d), 0);
	eb_pass(&b, NS_PER_S);
	CHECK_STR(eb_told(&b), "dead:009 ");
	CHECK_INT(b.asked[DRIVER_DEAD_LIST], 1);
	eb_close(&b);
}

/* ---- what it costs ---- */

TEST(who_only_sends_asks_for_nothing)
{
	struct eb b;

	setup_as(&b, false);
	eb_start(&b);
	write_file(&b, "a");
	eb_pass(&b, 600 * NS_PER_S);
	CHECK_INT(b.asked[DRIVER_RECEIVE], 0);
	CHECK_INT(b.asked[DRIVER_DEPTH], 0);
	CHECK_INT(b.asked[DRIVER_DEAD_LIST], 0);
	eb_close(&b);
}

TEST(who_is_paused_asks_for_nothing)
{
	struct eb b;

	setup_as(&b, true);
	eb_start(&b);
	engine_pause(b.e, true);
	eb_pass(&b, 60 * NS_PER_S);
	eb_forget(&b);
	write_file(&b, "a");
	eb_pass(&b, 600 * NS_PER_S);
	CHECK_INT(b.asked[DRIVER_RECEIVE], 0);
	CHECK_INT(b.asked[DRIVER_DEPTH], 0);
	eb_close(&b);
}

TEST(an_empty_queue_is_counted_once_a_minute)
{
	struct eb b;

	setup_as(&b, true);
	eb_start(&b);
	eb_pass(&b, 600 * NS_PER_S); /* the back-off has reached its ceiling */
	eb_forget(&b);
	eb_pass(&b, 3600 * NS_PER_S);
	CHECK_INT(b.asked[DRIVER_RECEIVE], 60);
	CHECK_INT(b.asked[DRIVER_DEPTH], 60);
	CHECK_INT(b.asked[DRIVER_DEAD_LIST], 0);
	eb_close(&b);
}

TEST(who_is_refused_waits_until_access_is_given)
{
	struct engine_stats s;
	struct eb b;

	setup_as(&b, true);
	eb_put(&b, "1");
	eb_fail(&b, DRIVER_RECEIVE, -EACCES, 1000);
	eb_start(&b);
	eb_pass(&b, 299 * NS_PER_S);
	CHECK_INT(b.asked[DRIVER_RECEIVE], 1);
	engine_stats(b.e, &s);
	CHECK_INT(s.state, POLLER_OFFLINE);
	b.fault[DRIVER_RECEIVE].times = 0;
	engine_driver_changed(b.e);
	eb_run(&b);
	CHECK_STR(eb_ready(&b), "1 ");
	eb_close(&b);
}

TEST(a_refused_sender_sends_when_access_is_given)
{
	struct eb b;

	setup_as(&b, false);
	eb_start(&b);
	eb_fail(&b, DRIVER_DRAFT_SEND, -EACCES, 1000);
	write_file(&b, "a");
	eb_pass(&b, 299 * NS_PER_S);
	CHECK_INT(b.asked[DRIVER_DRAFT_SEND], 1);
	b.fault[DRIVER_DRAFT_SEND].times = 0;
	engine_driver_changed(b.e);
	eb_run(&b);
	CHECK_STR(eb_sent(&b), "a ");
	eb_close(&b);
}

TEST(an_answer_of_before_access_was_given_is_no_refusal)
{
	struct eb b;

	setup_as(&b, false);
	eb_start(&b);
	eb_fail(&b, DRIVER_DRAFT_SEND, -EACCES, 1);
	eb_hold(&b, DRIVER_DRAFT_SEND);
	write_file(&b, "a");
	eb_run(&b);
	engine_driver_changed(b.e);
	eb_let(&b, DRIVER_DRAFT_SEND);
	eb_pass(&b, 5 * NS_PER_S);
	CHECK_STR(eb_sent(&b), "a ");
	eb_close(&b);
}
