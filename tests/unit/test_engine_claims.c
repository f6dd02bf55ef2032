/* SPDX-License-Identifier: MIT */
/* Claims: whose a message is, and what becomes of it when he ends. */
#include "engine_people.h"

/* A bed with message "1", a shell with one command running, another shell. */
struct scene {
	struct eb b;
	struct child shell, stranger;
	pid_t cat;
};

static void setup(struct scene *s)
{
	eb_init(&s->b);
	eb_put(&s->b, "1");
	eb_put(&s->b, "2");
	eb_start(&s->b);
	s->shell = spawn(obey);
	s->stranger = spawn(obey);
	s->cat = run(&s->shell);
}

static void teardown(struct scene *s)
{
	kill_and_reap(&s->shell);
	kill_and_reap(&s->stranger);
	eb_close(&s->b);
}

/* The message came back to the queue so. */
static void check_back(struct scene *s, unsigned attempts, int64_t delay_ns)
{
	const struct eb_settle *r;

	CHECK(eb_await_told(&s->b, "-1 "));
	eb_pass(&s->b, 60 * NS_PER_MS);
	CHECK_INT(eb_settled(&s->b, SETTLE_RELEASE, "1"), 1);
	r = eb_last(&s->b, SETTLE_RELEASE, "1");
	CHECK_INT(r->attempts, attempts);
	CHECK_INT(r->delay_ns, delay_ns);
}

TEST(a_claim_is_its_openers)
{
	struct scene s;
	struct message *m;

	setup(&s);
	m = open_as(&s.b, "1", s.cat);
	CHECK_INT(m->state, MESSAGE_CLAIMED);
	CHECK_STR(eb_in_flight(&s.b), "1 ");
	CHECK_STR(eb_ready(&s.b), "2 ");
	CHECK_INT(engine_owner_pid(m), s.cat);
	CHECK(engine_is_opener(m, who(&s.b, s.cat)));
	CHECK(!engine_is_opener(m, who(&s.b, s.shell.pid)));
	CHECK_INT(engine_owner_pid(eb_find(&s.b, "2")), -1);
	teardown(&s);
}

TEST(busy_for_strangers)
{
	struct scene s;
	struct message *m;
	struct proc *other;

	setup(&s);
	m = cat_as(&s.b, "1", s.cat);
	other = who(&s.b, s.stranger.pid);
	CHECK_INT(engine_claim(s.b.e, m, other, false, true), -EBUSY);
	CHECK_INT(engine_may(s.b.e, m, other), -EBUSY);
	CHECK_INT(engine_remove(s.b.e, m, other), -EBUSY);
	CHECK_INT(engine_bury(s.b.e, m, other, "unread"), -EBUSY);
	CHECK_INT(m->state, MESSAGE_CLAIMED);
	CHECK_INT(engine_may(s.b.e, m, who(&s.b, s.shell.pid)), 0);
	CHECK_INT(engine_may(s.b.e, eb_find(&s.b, "2"), other), 0);
	teardown(&s);
}

TEST(shared_claims_are_everybodys)
{
	struct scene s;
	struct message *m;

	setup(&s);
	s.b.cfg.owned = false;
	engine_configure(s.b.e, &s.b.cfg);
	m = cat_as(&s.b, "1", s.cat);
	CHECK_INT(engine_remove(s.b.e, m, who(&s.b, s.stranger.pid)), 0);
	teardown(&s);
}

TEST(a_shell_removes_what_its_cat_read)
{
	struct scene s;
	struct message *m;

	setup(&s);
	m = cat_as(&s.b, "1", s.cat);
	end_command(&s.b, &s.shell, 'e'); /* as grep does */
	CHECK_INT(engine_owner_pid(m), s.shell.pid);
	CHECK_INT(engine_may(s.b.e, m, who(&s.b, s.stranger.pid)), -EBUSY);
	s.cat = run(&s.shell); /* rm */
	CHECK_INT(engine_remove(s.b.e, m, who(&s.b, s.cat)), 0);
	eb_pass(&s.b, 60 * NS_PER_MS);
	CHECK_INT(eb_stored(&s.b, "1")->state, EB_GONE);
	CHECK_INT(s.b.lapsed, 0);
	teardown(&s);
}

TEST(who_asks_just_after_the_end_is_the_heir)
{
	struct scene s;
	struct message *m;

	setup(&s);
	m = cat_as(&s.b, "1", s.cat);
	tell(&s.shell, 'e');
	(void)hear_pid(&s.shell); /* the loop has not run since */
	CHECK_INT(engine_may(s.b.e, m, who(&s.b, s.stranger.pid)), -EBUSY);
	CHECK_INT(engine_owner_pid(m), s.shell.pid);
	teardown(&s);
}

TEST(killed_while_reading_it_comes_back_at_once)
{
	struct scene s;

	setup(&s);
	cat_as(&s.b, "1", s.cat);
	end_command(&s.b, &s.shell, 'k');
	if (kernel_tells()) {
		check_back(&s, 1, 0);
		eb_pass(&s.b, 50 * NS_PER_MS);
		CHECK_STR(eb_ready(&s.b), "1 2 ");
		CHECK_INT(eb_find(&s.b, "1")->d.attempts, 1);
	} else {
		CHECK_INT(engine_owner_pid(eb_find(&s.b, "1")), s.shell.pid);
	}
	teardown(&s);
}

TEST(killed_a_second_time_it_waits)
{
	struct scene s;

	setup(&s);
	eb_find(&s.b, "1")->d.attempts = 1;
	cat_as(&s.b, "1", s.cat);
	end_command(&s.b, &s.shell, 'k');
	if (kernel_tells()) {
		check_back(&s, 2, 60 * NS_PER_S);
		eb_pass(&s.b, 59 * NS_PER_S);
		CHECK_STR(eb_ready(&s.b), "2 ");
		eb_pass(&s.b, 2 * NS_PER_S);
		CHECK_STR(eb_ready(&s.b), "1 2 ");
	}
	teardown(&s);
}

TEST(a_reader_that_dies_of_sigpipe_has_not_failed)
{
	struct scene s;

	setup(&s);
	cat_as(&s.b, "1", s.cat);
	end_command(&s.b, &s.shell, 'p');
	CHECK_INT(engine_owner_pid(eb_find(&s.b, "1")), s.shell.pid);
	teardown(&s);
}

TEST(a_shell_that_fails_gives_back)
{
	struct scene s;

	setup(&s);
	cat_as(&s.b, "1", s.cat);
	end_command(&s.b, &s.shell, 'e');
	end_shell(&s.b, &s.shell, 1);
	check_back(&s, 1, 30 * NS_PER_S); /* the zombie tells */
	reap(&s.shell);
	s.shell = spawn(obey);
	teardown(&s);
}

TEST(a_shell_that_ends_well_passes_on)
{
	struct scene s;
	struct message *m;

	setup(&s);
	m = cat_as(&s.b, "1", s.cat);
	end_command(&s.b, &s.shell, 'e');
	end_shell(&s.b, &s.shell, 0);
	reap(&s.shell);
	eb_pass(&s.b, NS_PER_S);
	CHECK_INT(m->state, MESSAGE_CLAIMED);
	CHECK_INT(engine_owner_pid(m), getpid());
	CHECK_INT(engine_remove(s.b.e, m, me(&s.b)), 0);
	s.shell = spawn(obey);
	teardown(&s);
}

TEST(with_no_owner_left_it_comes_back)
{
	struct scene s;

	setup(&s);
	kill_and_reap(&s.shell);
	s.shell = spawn(obey_as_leader);
	s.cat = run(&s.shell);
	cat_as(&s.b, "1", s.cat);
	end_command(&s.b, &s.shell, 'e');
	CHECK_INT(engine_owner_pid(eb_find(&s.b, "1")), s.shell.pid);
	end_shell(&s.b, &s.shell, 0);
	check_back(&s, 1, 0);
	teardown(&s);
}

TEST(one_that_goes_on_has_left_the_last)
{
	struct scene s;

	setup(&s);
	cat_as(&s.b, "1", s.cat);
	end_command(&s.b, &s.shell, 'e');
	eb_pass(&s.b, 10 * NS_PER_S);
	s.cat = run(&s.shell);
	cat_as(&s.b, "2", s.cat);
	eb_pass(&s.b, 29900 * NS_PER_MS);
	CHECK_STR(eb_in_flight(&s.b), "1 2 ");
	eb_pass(&s.b, 200 * NS_PER_MS);
	CHECK_STR(eb_in_flight(&s.b), "2 ");
	check_back(&s, 1, 0); /* the retry delay counts from the leaving */
	CHECK_INT(s.b.lapsed, 0);
	teardown(&s);
}

TEST(what_was_touched_is_not_left)
{
	struct scene s;

	setup(&s);
	cat_as(&s.b, "1", s.cat);
	end_command(&s.b, &s.shell, 'e');
	s.cat = run(&s.shell);
	cat_as(&s.b, "2", s.cat);
	eb_pass(&s.b, 20 * NS_PER_S);
	engine_touch(s.b.e, eb_find(&s.b, "1"));
	eb_pass(&s.b, 100 * NS_PER_S);
	CHECK_STR(eb_in_flight(&s.b), "1 2 ");
	CHECK_INT(s.b.lapsed, 0);
	teardown(&s);
}

TEST(an_opener_that_reads_several_leaves_none)
{
	struct scene s;

	setup(&s);
	cat_as(&s.b, "1", s.cat);
	cat_as(&s.b, "2", s.cat); /* cat 1 2 */
	eb_pass(&s.b, 100 * NS_PER_S);
	CHECK_STR(eb_in_flight(&s.b), "1 2 ");
	CHECK_INT(s.b.lapsed, 0);
	teardown(&s);
}

TEST(what_a_shell_opened_itself_is_not_left)
{
	struct scene s;

	setup(&s);
	cat_as(&s.b, "1", s.shell.pid); /* read x < 1 */
	cat_as(&s.b, "2", s.cat);
	eb_pass(&s.b, 100 * NS_PER_S);
	CHECK_STR(eb_in_flight(&s.b), "1 2 ");
	teardown(&s);
}

TEST(workers_of_one_shell_do_not_leave_for_each_other)
{
	struct scene s;

	setup(&s);
	cat_as(&s.b, "1", s.cat);
	cat_as(&s.b, "2", s.stranger.pid);
	eb_pass(&s.b, 100 * NS_PER_S);
	CHECK_STR(eb_in_flight(&s.b), "1 2 ");
	teardown(&s);
}

/* ---- what was not read ---- */

TEST(closed_unread_it_is_undone)
{
	struct scene s;
	struct message *m;

	setup(&s);
	m = open_as(&s.b, "1", s.cat);
	CHECK_INT(engine_claim(s.b.e, m, who(&s.b, s.cat), false, true), 0);
	engine_close(s.b.e, m);
	CHECK_INT(m->state, MESSAGE_CLAIMED);
	eb_forget(&s.b);
	engine_close(s.b.e, m);
	CHECK_STR(eb_told(&s.b), "~1 ");
	CHECK_STR(eb_ready(&s.b), "1 2 ");
	eb_pass(&s.b, NS_PER_S);
	CHECK_INT(s.b.n_settles, 0); /* nobody has to know */
	CHECK_INT(m->d.attempts, 0);
	CHECK_INT(engine_claim(s.b.e, m, who(&s.b, s.stranger.pid), false, true), 0);
	teardown(&s);
}

TEST(an_explicit_claim_stays)
{
	struct scene s;
	struct message *m = NULL;

	setup(&s);
	m = eb_find(&s.b, "1");
	CHECK_INT(engine_claim(s.b.e, m, who(&s.b, s.cat), true, false), 0);
	CHECK_INT(engine_claim(s.b.e, m, who(&s.b, s.cat), false, true), 0);
	engine_close(s.b.e, m);
	CHECK_INT(m->state, MESSAGE_CLAIMED);
	teardown(&s);
}

TEST(an_empty_message_counts_as_read)
{
	struct scene s;
	struct message *m;

	setup(&s);
	eb_resize(eb_put(&s.b, "3"), 0);
	engine_poll_now(s.b.e);
	eb_run(&s.b);
	m = open_as(&s.b, "3", s.cat);
	engine_close(s.b.e, m);
	CHECK_INT(m->state, MESSAGE_CLAIMED);
	CHECK_INT(engine_remove(s.b.e, m, who(&s.b, s.cat)), 0);
	eb_pass(&s.b, 60 * NS_PER_MS);
	CHECK_INT(eb_stored(&s.b, "3")->state, EB_GONE);
	teardown(&s);
}

TEST(killed_before_it_read_is_no_attempt)
{
	struct scene s;

	setup(&s);
	open_as(&s.b, "1", s.cat);
	end_command(&s.b, &s.shell, 'k');
	if (kernel_tells())
		check_back(&s, 0, 0);
	teardown(&s);
}

static void check_unread_rm(struct scene *s, struct message *m)
{
	struct engine_stats st;

	CHECK_INT(engine_remove(s->b.e, m, who(&s->b, s->cat)), 0);
	eb_pass(&s->b, 60 * NS_PER_MS);
	CHECK_INT(eb_stored(&s->b, "1")->state, EB_DEAD);
	CHECK_STR(eb_stored(&s->b, "1")->reason, "unread");
	CHECK_INT(eb_stored(&s->b, "1")->attempts, 0);
	CHECK(!strstr(eb_told(&s->b), "-1 "));
	CHECK(strstr(eb_told(&s->b), "dead:1 "));
	engine_stats(s->b.e, &st);
	CHECK_INT(st.buried_total, 1);
	CHECK_INT(st.handled_total, 0);
	CHECK_INT(st.dead, 1);
}

TEST(rm_of_what_nobody_read_buries_it)
{
	struct scene s;

	setup(&s);
	check_unread_rm(&s, eb_find(&s.b, "1"));
	teardown(&s);
}

TEST(rm_of_what_was_only_opened_buries_it_too)
{
	struct scene s;

	setup(&s);
	check_unread_rm(&s, open_as(&s.b, "1", s.cat));
	teardown(&s);
}

TEST(rm_unread_may_delete)
{
	struct scene s;

	setup(&s);
	s.b.cfg.rm_unread_deletes = true;
	engine_configure(s.b.e, &s.b.cfg);
	CHECK_INT(engine_remove(s.b.e, eb_find(&s.b, "1"), me(&s.b)), 0);
	eb_pass(&s.b, 60 * NS_PER_MS);
	CHECK_INT(eb_stored(&s.b, "1")->state, EB_GONE);
	teardown(&s);
}

/* ---- who cannot be seen ---- */

TEST(the_unseen_share_theirs_for_a_while)
{
	struct scene s;
	struct message *m;

	setup(&s);
	m = cat_as(&s.b, "1", 0);
	CHECK_INT(engine_owner_pid(m), 0);
	CHECK_INT(engine_may(s.b.e, m, who(&s.b, 0)), 0);
	CHECK_INT(engine_may(s.b.e, m, who(&s.b, s.stranger.pid)), -EBUSY);
	eb_pass(&s.b, 899 * NS_PER_S);
	CHECK_STR(eb_in_flight(&s.b), "1 ");
	eb_pass(&s.b, 2 * NS_PER_S);
	check_back(&s, 1, 30 * NS_PER_S);
	teardown(&s);
}
