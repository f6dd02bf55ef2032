/* SPDX-License-Identifier: MIT */
/* How long claims last, with which receipt, how they end, what a restart keeps. */
#include "engine_people.h"

static void setup(struct eb *b)
{
	eb_init(b);
	eb_put_many(b, 1, 3);
	eb_start(b);
	eb_forget(b);
}

static uint64_t lost(struct eb *b)
{
	struct engine_stats s;

	engine_stats(b->e, &s);
	return s.leases_lost;
}

/* ---- ends ---- */

TEST(renewed_while_its_owner_lives)
{
	struct eb b;

	setup(&b);
	take(&b, "001");
	eb_pass(&b, 1000 * NS_PER_S);
	CHECK_STR(eb_in_flight(&b), "001 ");
	CHECK_INT(b.lapsed, 0);
	CHECK(eb_settled(&b, SETTLE_RENEW, "001") >= 66);
	CHECK(eb_settled(&b, SETTLE_RENEW, "001") <= 67);
	CHECK_STR(eb_told(&b), "");
	eb_close(&b);
}

TEST(max_lease_is_its_end)
{
	struct eb b;
	const struct eb_settle *r;

	setup(&b);
	b.cfg.lease.max_lease_ns = 100 * NS_PER_S;
	engine_configure(b.e, &b.cfg);
	take(&b, "001");
	eb_pass(&b, 99900 * NS_PER_MS);
	CHECK_STR(eb_told(&b), "");
	eb_pass(&b, 200 * NS_PER_MS);
	CHECK_STR(eb_told(&b), "-001 ");
	r = eb_last(&b, SETTLE_RELEASE, "001");
	CHECK(r);
	CHECK_INT(r->attempts, 1);
	CHECK_INT(r->delay_ns, 30 * NS_PER_S);
	CHECK_INT(b.lapsed, 0);
	CHECK_INT(lost(&b), 0);
	eb_close(&b);
}

TEST(inherit_is_its_end_and_touch_begins_it_anew)
{
	struct eb b;
	struct child shell = spawn(obey);

	setup(&b);
	b.cfg.lease.inherit_ns = 100 * NS_PER_S;
	engine_configure(b.e, &b.cfg);
	cat_as(&b, "001", run(&shell));
	end_command(&b, &shell, 'e');
	eb_pass(&b, 90 * NS_PER_S);
	engine_touch(b.e, eb_find(&b, "001"));
	eb_pass(&b, 99 * NS_PER_S);
	CHECK_STR(eb_told(&b), "");
	eb_pass(&b, 2 * NS_PER_S);
	CHECK_STR(eb_told(&b), "-001 ");
	CHECK_INT(eb_last(&b, SETTLE_RELEASE, "001")->attempts, 1);
	CHECK_INT(b.lapsed, 0);
	kill_and_reap(&shell);
	eb_close(&b);
}

TEST(a_touch_renews_at_once)
{
	struct eb b;
	struct message *m;

	setup(&b);
	m = take(&b, "001");
	eb_pass(&b, 5 * NS_PER_S);
	engine_touch(b.e, m);
	eb_pass(&b, 60 * NS_PER_MS);
	CHECK_INT(eb_settled(&b, SETTLE_RENEW, "001"), 1);
	CHECK_INT(m->d.lease_until_ns, eb_stored(&b, "001")->until_ns);
	CHECK(m->d.lease_until_ns > clock_mono() + 29 * NS_PER_S);
	engine_touch(b.e, eb_find(&b, "002")); /* nobody's: nothing */
	eb_pass(&b, 60 * NS_PER_MS);
	CHECK_INT(eb_settled(&b, SETTLE_RENEW, "002"), 0);
	eb_close(&b);
}

TEST(released_it_comes_back_when_it_was_said)
{
	struct eb b;

	setup(&b);
	CHECK_INT(engine_release(b.e, eb_find(&b, "001"), 0), -EINVAL);
	CHECK_INT(engine_release(b.e, take(&b, "001"), 600 * NS_PER_S), 0);
	CHECK_STR(eb_told(&b), "-001 ");
	eb_pass(&b, 599 * NS_PER_S);
	CHECK_STR(eb_told(&b), "-001 ");
	eb_pass(&b, 2 * NS_PER_S);
	CHECK_STR(eb_told(&b), "-001 +001 ");
	CHECK_INT(eb_find(&b, "001")->d.attempts, 1);
	eb_close(&b);
}

TEST(released_unread_it_is_an_attempt)
{
	struct eb b;
	struct message *m;

	setup(&b);
	m = open_as(&b, "001", getpid());
	CHECK_INT(engine_release(b.e, m, -1), 0);
	eb_pass(&b, 60 * NS_PER_MS);
	CHECK_INT(eb_last(&b, SETTLE_RELEASE, "001")->delay_ns, 30 * NS_PER_S);
	CHECK_INT(eb_last(&b, SETTLE_RELEASE, "001")->attempts, 1);
	eb_close(&b);
}

TEST(after_max_attempts_it_is_dead)
{
	struct eb b;
	struct engine_stats s;

	setup(&b);
	for (int i = 0; i < 5; i++) {
		CHECK(eb_find(&b, "001"));
		CHECK_INT(engine_release(b.e, take(&b, "001"), 0), 0);
		eb_pass(&b, NS_PER_S);
	}
	CHECK_INT(eb_settled(&b, SETTLE_RELEASE, "001"), 4);
	CHECK_INT(eb_settled(&b, SETTLE_BURY, "001"), 1);
	CHECK_STR(eb_stored(&b, "001")->reason, "released");
	CHECK_INT(eb_stored(&b, "001")->attempts, 5);
	engine_stats(b.e, &s);
	CHECK_INT(s.released_total, 4);
	CHECK_INT(s.buried_total, 1);
	CHECK_INT(s.dead, 1);
	eb_close(&b);
}

TEST(without_max_attempts_it_never_is)
{
	struct eb b;

	setup(&b);
	b.cfg.lease.max_attempts = 0;
	engine_configure(b.e, &b.cfg);
	for (int i = 0; i < 9; i++) {
		CHECK_INT(engine_release(b.e, take(&b, "001"), 0), 0);
		eb_pass(&b, NS_PER_S);
	}
	CHECK_INT(eb_find(&b, "001")->d.attempts, 9);
	eb_close(&b);
}

/* ---- receipts ---- */

TEST(the_newest_receipt_is_used)
{
	struct eb b;
	struct message *m;

	setup(&b);
	b.new_receipts = true;
	m = take(&b, "001");
	eb_pass(&b, 100 * NS_PER_S);
	CHECK_STR(m->d.receipt, eb_stored(&b, "001")->receipt);
	CHECK_INT(engine_remove(b.e, m, me(&b)), 0);
	eb_pass(&b, 60 * NS_PER_MS);
	CHECK_INT(eb_stored(&b, "001")->state, EB_GONE);
	CHECK_INT(lost(&b), 0);
	eb_close(&b);
}

TEST(a_deletion_waits_for_the_new_receipt)
{
	struct eb b;
	struct message *m;
	char old[16];

	setup(&b);
	b.new_receipts = true;
	m = take(&b, "001");
	eb_pass(&b, 14 * NS_PER_S);
	snprintf(old, sizeof(old), "%s", m->d.receipt);
	eb_hold(&b, DRIVER_SETTLE);
	engine_touch(b.e, m);
	eb_pass(&b, 60 * NS_PER_MS);
	CHECK_INT(eb_settled(&b, SETTLE_RENEW, "001"), 1);
	CHECK_INT(engine_remove(b.e, m, me(&b)), 0);
	eb_pass(&b, 100 * NS_PER_MS);
	CHECK_INT(eb_settled(&b, SETTLE_DELETE, "001"), 0);
	eb_let(&b, DRIVER_SETTLE);
	eb_pass(&b, 60 * NS_PER_MS);
	CHECK_INT(eb_settled(&b, SETTLE_DELETE, "001"), 1);
	CHECK(strcmp(eb_last(&b, SETTLE_DELETE, "001")->receipt, old) != 0);
	CHECK_INT(eb_stored(&b, "001")->state, EB_GONE);
	eb_close(&b);
}

TEST(a_renewal_that_fails_does_not_stop_a_deletion)
{
	struct eb b;
	struct message *m;

	setup(&b);
	m = take(&b, "001");
	eb_pass(&b, 60 * NS_PER_MS);
	eb_hold(&b, DRIVER_SETTLE);
	engine_touch(b.e, m);
	eb_pass(&b, 60 * NS_PER_MS);
	CHECK_INT(engine_remove(b.e, m, me(&b)), 0);
	eb_fail(&b, DRIVER_SETTLE, -EAGAIN, 1);
	eb_let(&b, DRIVER_SETTLE);
	eb_pass(&b, NS_PER_S);
	CHECK_INT(eb_settled(&b, SETTLE_RENEW, "001"), 1);
	CHECK_INT(eb_stored(&b, "001")->state, EB_GONE);
	eb_close(&b);
}

/* ---- lost ---- */

TEST(a_lost_lease_is_told_and_counted)
{
	struct eb b;

	setup(&b);
	take(&b, "001");
	eb_fail_item(&b, SETTLE_RENEW, "001", -ESTALE, 1);
	eb_pass(&b, 16 * NS_PER_S);
	CHECK_STR(eb_told(&b), "-001 ");
	CHECK(!eb_find(&b, "001"));
	CHECK_INT(lost(&b), 1);
	CHECK_INT(eb_settled(&b, SETTLE_RELEASE, "001"), 0);
	eb_close(&b);
}

TEST(a_deletion_too_late_is_counted)
{
	struct eb b;

	setup(&b);
	CHECK_INT(engine_remove(b.e, take(&b, "001"), me(&b)), 0);
	eb_fail_item(&b, SETTLE_DELETE, "001", -ESTALE, 1);
	eb_pass(&b, 60 * NS_PER_MS);
	CHECK_INT(lost(&b), 1);
	CHECK_INT(eb_settled(&b, SETTLE_DELETE, "001"), 1);
	CHECK_STR(eb_told(&b), "");
	eb_close(&b);
}

TEST(lost_while_being_deleted_is_told_to_nobody)
{
	struct eb b;
	struct message *m;

	setup(&b);
	m = take(&b, "001");
	eb_hold(&b, DRIVER_SETTLE);
	engine_touch(b.e, m);
	eb_pass(&b, 60 * NS_PER_MS);
	CHECK_INT(engine_remove(b.e, m, me(&b)), 0);
	eb_stored(&b, "001")->state = EB_GONE;
	eb_let(&b, DRIVER_SETTLE);
	eb_pass(&b, 100 * NS_PER_MS);
	CHECK_STR(eb_told(&b), "");
	eb_close(&b);
}

TEST(a_backend_away_for_long_costs_the_lease)
{
	struct eb b;

	setup(&b);
	take(&b, "001");
	eb_fail(&b, DRIVER_SETTLE, -EAGAIN, 1000);
	eb_fail(&b, DRIVER_RECEIVE, -EAGAIN, 1000);
	eb_pass(&b, 60 * NS_PER_S);
	CHECK_STR(eb_told(&b), ""); /* not known to be lost */
	b.fault[DRIVER_SETTLE].times = 0;
	eb_pass(&b, 40 * NS_PER_S);
	b.fault[DRIVER_RECEIVE].times = 0;
	eb_pass(&b, 40 * NS_PER_S);
	CHECK(strstr(eb_told(&b), "-001 "));
	CHECK_INT(lost(&b), 1); /* 002 and 003 were nobody's */
	eb_pass(&b, 60 * NS_PER_S);
	CHECK_STR(eb_ready(&b), "001 002 003 ");
	eb_close(&b);
}

/* All leases ran out while the machine slept; the poll comes first. */
TEST(what_arrives_again_was_lost_before)
{
	struct eb b;
	const char *gone, *back;

	setup(&b);
	take(&b, "001");
	eb_hold(&b, DRIVER_SETTLE);
	clock_step(3000 * NS_PER_S);
	engine_poll_now(b.e);
	eb_run(&b);
	eb_let(&b, DRIVER_SETTLE);
	eb_pass(&b, NS_PER_S);
	gone = strstr(eb_told(&b), "-001 ");
	back = strstr(eb_told(&b), "+001 ");
	CHECK(gone && back && gone < back);
	CHECK_STR(eb_ready(&b), "001 002 003 ");
	CHECK_STR(eb_in_flight(&b), "");
	CHECK_INT(lost(&b), 1);
	eb_close(&b);
}

/* ---- a restart ---- */

TEST(claims_of_the_living_outlast_a_crash)
{
	struct eb b;
	struct child reader = spawn(exit_as_told), other = spawn(exit_as_told);
	struct message *m;

	setup(&b);
	m = cat_as(&b, "001", reader.pid);
	CHECK_INT(engine_alias(b.e, m, "mine.xml"), 0);
	eb_pass(&b, 100 * NS_PER_MS);
	eb_crash(&b);
	CHECK_STR(eb_in_flight(&b), "001 ");
	CHECK_STR(eb_ready(&b), "002 003 ");
	m = eb_find(&b, "001");
	CHECK_STR(m->alias, "mine.xml");
	CHECK_INT(engine_owner_pid(m), reader.pid);
	CHECK_INT(engine_may(b.e, m, who(&b, other.pid)), -EBUSY);
	eb_pass(&b, 100 * NS_PER_S);
	CHECK_INT(b.lapsed, 0);
	CHECK_INT(engine_remove(b.e, m, who(&b, reader.pid)), 0);
	eb_pass(&b, 60 * NS_PER_MS);
	CHECK_INT(eb_stored(&b, "001")->state, EB_GONE);
	kill_and_reap(&reader);
	kill_and_reap(&other);
	eb_close(&b);
}

TEST(what_was_read_after_its_record_is_known_as_read)
{
	struct eb b;
	struct message *m;

	setup(&b);
	m = eb_find(&b, "001");
	CHECK_INT(engine_claim(b.e, m, me(&b), true, false), 0); /* .next */
	eb_pass(&b, 100 * NS_PER_MS);
	engine_was_read(b.e, m);
	eb_pass(&b, 16 * NS_PER_S);
	eb_crash(&b);
	m = eb_find(&b, "001");
	CHECK_INT(engine_remove(b.e, m, me(&b)), 0);
	eb_pass(&b, 60 * NS_PER_MS);
	CHECK_INT(eb_stored(&b, "001")->state, EB_GONE); /* not buried as unread */
	eb_close(&b);
}

TEST(claims_of_the_dead_end_with_a_crash)
{
	struct eb b;
	struct child leader = spawn(obey_as_leader);
	pid_t cat = run(&leader);

	setup(&b);
	cat_as(&b, "001", cat);
	eb_pass(&b, 100 * NS_PER_MS);
	tell(&leader, 'k');
	(void)hear_pid(&leader);
	kill_and_reap(&leader); /* and the engine does not see it */
	eb_crash(&b);
	CHECK(eb_await_told(&b, "-001 "));
	eb_pass(&b, 60 * NS_PER_MS);
	CHECK_INT(eb_last(&b, SETTLE_RELEASE, "001")->attempts, 1);
	CHECK_INT(eb_last(&b, SETTLE_RELEASE, "001")->delay_ns, 0);
	eb_close(&b);
}

TEST(the_time_of_a_claim_counts_over_a_crash)
{
	struct eb b;

	setup(&b);
	b.cfg.lease.max_lease_ns = 100 * NS_PER_S;
	engine_configure(b.e, &b.cfg);
	take(&b, "001");
	eb_pass(&b, 60 * NS_PER_S);
	eb_crash(&b);
	eb_pass(&b, 39 * NS_PER_S);
	CHECK_STR(eb_in_flight(&b), "001 ");
	eb_pass(&b, 2 * NS_PER_S);
	CHECK_STR(eb_in_flight(&b), "");
	CHECK_INT(eb_last(&b, SETTLE_RELEASE, "001")->attempts, 1);
	eb_close(&b);
}

TEST(a_record_that_makes_no_sense_gives_back)
{
	struct eb b;

	setup(&b);
	snprintf(eb_stored(&b, "001")->record, 16, "what is this?");
	snprintf(eb_stored(&b, "002")->record, 64, "1 0 11 no-such-boot 1:1");
	eb_crash(&b);
	CHECK(strstr(eb_told(&b), "-001 "));
	CHECK(strstr(eb_told(&b), "-002 "));
	eb_pass(&b, 60 * NS_PER_MS);
	CHECK_INT(eb_settled(&b, SETTLE_RELEASE, "001"), 1);
	CHECK_INT(eb_last(&b, SETTLE_RELEASE, "002")->attempts, 1);
	CHECK_STR(eb_in_flight(&b), "");
	eb_close(&b);
}
