/* SPDX-License-Identifier: MIT */
/* Drafts and the outbox. */
#include "backend/engine/outbox.h"

#include "engine_people.h"

static void setup(struct eb *b)
{
	eb_init(b);
	b->cfg.receives = false;
	eb_start(b);
	eb_forget(b);
}

static struct draft *begin(struct eb *b, const char *name, bool keep, const char *text)
{
	struct draft *d = draft_create(b->e, name, me(b), keep);

	CHECK(d);
	if (*text)
		CHECK_INT(draft_write(b->e, d, text, strlen(text), 0), 0);
	return d;
}

/* Written, durable at its close, closed. */
static struct draft *write_file(
	struct eb *b, const char *name, bool keep, const char *text)
{
	struct draft *d = begin(b, name, keep, text);

	draft_close(b->e, d);
	return d;
}

struct flushing {
	struct draft_flush f;
	int called, err;
};

static void flushed(struct draft_flush *f, int err)
{
	struct flushing *x = f->arg;

	x->called++;
	x->err = err;
}

static void start_flush(struct eb *b, struct draft *d, struct flushing *x)
{
	*x = (struct flushing){.f = {.fn = flushed, .arg = x}};
	draft_flush(b->e, d, &x->f);
}

static void check_content(const struct draft *d, const char *text)
{
	const char *p = "";
	size_t n = draft_read(d, 0, 100, &p);

	CHECK_INT(draft_size(d), strlen(text));
	CHECK_INT(n, strlen(text));
	CHECK(memcmp(p, text, n) == 0);
}

/* What the store has; "" when it has none. */
static void check_stored(struct eb *b, const char *name, const char *text)
{
	struct eb_draft *d = TAILQ_FIRST(&b->drafts);

	CHECK(d);
	CHECK_STR(d->name, name);
	CHECK_INT(d->body->len, strlen(text));
	CHECK(memcmp(d->body->data, text, d->body->len) == 0);
	CHECK(!TAILQ_NEXT(d, link));
}

static struct eb_message *last_message(struct eb *b)
{
	struct eb_message *m, *last = NULL;

	TAILQ_FOREACH (m, &b->messages, link)
		last = m;
	return last;
}

/* ---- content ---- */

TEST(a_draft_is_a_file)
{
	struct eb b;
	struct draft *d;
	const char *p;

	setup(&b);
	d = begin(&b, "x", false, "hello");
	CHECK_INT(draft_write(b.e, d, "J", 1, 0), 0);
	CHECK_INT(draft_write(b.e, d, "!", 1, 6), 0);
	CHECK_INT(draft_size(d), 7);
	CHECK_INT(draft_read(d, 1, 3, &p), 3);
	CHECK(memcmp(p, "ell", 3) == 0);
	CHECK_INT(draft_read(d, 5, 100, &p), 2);
	CHECK(memcmp(p, "\0!", 2) == 0);
	CHECK_INT(draft_read(d, 7, 100, &p), 0);
	CHECK_INT(draft_truncate(b.e, d, 4), 0);
	check_content(d, "Jell");
	CHECK_INT(draft_write(b.e, d, "x", 1, 1000), -EFBIG);
	CHECK_INT(draft_truncate(b.e, d, 1001), -EFBIG);
	check_content(d, "Jell");
	eb_close(&b);
}

/* ---- durable ---- */

TEST(a_flush_answers_once_it_is_stored)
{
	struct eb b;
	struct flushing x, y;
	struct draft *d;

	setup(&b);
	eb_hold(&b, DRIVER_DRAFT_PUT);
	d = begin(&b, "x", false, "one");
	start_flush(&b, d, &x);
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_DRAFT_PUT], 1);
	CHECK_INT(x.called, 0);
	eb_let(&b, DRIVER_DRAFT_PUT);
	eb_run(&b);
	CHECK_INT(x.called, 1);
	CHECK_INT(x.err, 0);
	check_stored(&b, "x", "one");
	start_flush(&b, d, &y); /* already */
	CHECK_INT(y.called, 1);
	CHECK_INT(b.asked[DRIVER_DRAFT_PUT], 1);
	eb_close(&b);
}

TEST(what_is_written_meanwhile_waits_for_its_own)
{
	struct eb b;
	struct flushing x, y;
	struct draft *d;

	setup(&b);
	eb_hold(&b, DRIVER_DRAFT_PUT);
	d = begin(&b, "x", false, "one");
	start_flush(&b, d, &x);
	eb_run(&b);
	CHECK_INT(draft_write(b.e, d, "two", 3, 3), 0);
	start_flush(&b, d, &y);
	eb_fail(&b, DRIVER_DRAFT_PUT, 0, 0);
	eb_let(&b, DRIVER_DRAFT_PUT);
	eb_hold(&b, DRIVER_DRAFT_PUT); /* the second */
	eb_run(&b);
	CHECK_INT(x.called, 1);
	CHECK_INT(y.called, 0);
	check_stored(&b, "x", "one");
	eb_let(&b, DRIVER_DRAFT_PUT);
	eb_run(&b);
	CHECK_INT(y.called, 1);
	check_stored(&b, "x", "onetwo");
	eb_close(&b);
}

TEST(a_close_says_why_it_could_not_be_stored)
{
	static const int errors[][2] = {{-ENOSPC, -ENOSPC}, {-EILSEQ, -EILSEQ},
		{-EMSGSIZE, -EFBIG}, {-EAGAIN, -EIO}, {-EIO, -EIO}};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		struct eb b;
		struct flushing x;
		struct draft *d;

		setup(&b);
		eb_fail(&b, DRIVER_DRAFT_PUT, errors[i][0], 1);
		d = begin(&b, "x", false, "one");
		start_flush(&b, d, &x);
		eb_run(&b);
		CHECK_INT(x.called, 1);
		CHECK_INT(x.err, errors[i][1]);
		draft_close(b.e, d);
		eb_pass(&b, 100 * NS_PER_S);
		CHECK_STR(eb_sent(&b), "");
		eb_close(&b);
	}
}

TEST(what_the_backend_cannot_carry_stays_a_draft)
{
	struct eb b;
	struct flushing x;
	struct draft *d;

	setup(&b);
	eb_fail(&b, DRIVER_DRAFT_PUT, -EILSEQ, 1);
	d = begin(&b, "x", false, "one");
	start_flush(&b, d, &x);
	eb_run(&b);
	CHECK_INT(x.err, -EILSEQ);
	draft_close(b.e, d);
	eb_run(&b);
	CHECK_INT(d->state, DRAFT_KEPT);
	CHECK(TAILQ_FIRST(engine_drafts(b.e)) == d);
	check_content(d, "one");
	CHECK_STR(eb_told(&b), "");
	eb_close(&b);
}

TEST(a_full_disk_leaves_what_was_stored_before)
{
	struct eb b;
	struct flushing x, y;
	struct draft *d;

	setup(&b);
	d = begin(&b, "x", false, "one");
	start_flush(&b, d, &x);
	eb_run(&b);
	eb_fail(&b, DRIVER_DRAFT_PUT, -ENOSPC, 1);
	CHECK_INT(draft_write(b.e, d, "two", 3, 3), 0);
	start_flush(&b, d, &y);
	eb_run(&b);
	CHECK_INT(y.err, -ENOSPC);
	draft_close(b.e, d);
	eb_run(&b);
	CHECK_INT(d->state, DRAFT_KEPT);
	CHECK_STR(eb_sent(&b), "");
	check_stored(&b, "x", "one");
	eb_close(&b);
}

/* ---- the last close ---- */

TEST(the_last_close_sends)
{
	struct eb b;
	struct draft *d;
	struct flushing x;
	struct engine_stats s;

	setup(&b);
	d = begin(&b, "x", false, "one");
	draft_open(d);
	start_flush(&b, d, &x);
	draft_close(b.e, d);
	eb_pass(&b, NS_PER_S);
	CHECK_INT(d->state, DRAFT_OPEN);
	CHECK_STR(eb_sent(&b), "");
	CHECK_INT(draft_write(b.e, d, "two", 3, 3), 0);
	start_flush(&b, d, &x);
	draft_close(b.e, d);
	eb_run(&b);
	CHECK_STR(eb_sent(&b), "x ");
	CHECK_INT(last_message(&b)->size, 6);
	CHECK(TAILQ_EMPTY(&b.drafts));
	engine_stats(b.e, &s);
	CHECK_INT(s.sent_total, 1);
	CHECK_INT(s.depth, 1);
	CHECK_INT(s.drafts + s.outbox, 0);
	eb_close(&b);
}

TEST(closed_without_a_flush_it_is_stored_first)
{
	struct eb b;

	setup(&b);
	write_file(&b, "x", false, "one");
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_DRAFT_PUT], 1);
	CHECK_STR(eb_sent(&b), "x ");
	eb_close(&b);
}

TEST(an_empty_one_is_sent_too)
{
	struct eb b;

	setup(&b);
	write_file(&b, "x", false, "");
	eb_run(&b);
	CHECK_INT(b.asked[DRIVER_DRAFT_PUT], 0);
	CHECK_INT(b.asked[DRIVER_SEND], 1);
	CHECK_STR(eb_sent(&b), "x ");
	CHECK_INT(last_message(&b)->size, 0);
	eb_close(&b);
}

TEST(sent_it_answers_for_two_seconds_more)
{
	struct eb b;
	struct draft *d;

	setup(&b);
	d = write_file(&b, "x", false, "one");
	eb_run(&b);
	CHECK_STR(eb_told(&b), "sent:x ");
	CHECK_INT(d->state, DRAFT_SENT);
	eb_pass(&b, 1900 * NS_PER_MS);
	check_content(d, "one");
	CHECK_INT(draft_rename(b.e, d, "y", false), 0); /* no effect */
	CHECK_STR(eb_told(&b), "sent:x ");
	eb_pass(&b, 200 * NS_PER_MS);
	CHECK_STR(eb_told(&b), "sent:x gone:y ");
	CHECK_STR(eb_sent(&b), "x ");
	eb_close(&b);
}

/* ---- kept ---- */

TEST(a_drafts_name_is_kept_until_it_is_renamed)
{
	struct eb b;
	struct draft *d;

	setup(&b);
	d = write_file(&b, ".x.tmp", true, "one");
	eb_pass(&b, 100 * NS_PER_S);
	CHECK_INT(d->state, DRAFT_KEPT);
	check_stored(&b, ".x.tmp", "one");
	CHECK_STR(eb_sent(&b), "");
	CHECK_INT(draft_rename(b.e, d, ".y.tmp", true), 0);
	eb_run(&b);
	check_stored(&b, ".y.tmp", "one");
	CHECK_INT(draft_rename(b.e, d, "y", false), 0);
	eb_run(&b);
	CHECK_STR(eb_sent(&b), "y ");
	CHECK_INT(b.asked[DRIVER_DRAFT_PUT], 1);
	eb_close(&b);
}

TEST(one_cut_off_is_kept)
{
	struct eb b;
	struct draft *d;

	setup(&b);
	d = begin(&b, "x", false, "one");
	d->cut = true;
	draft_close(b.e, d);
	eb_pass(&b, 100 * NS_PER_S);
	CHECK_INT(d->state, DRAFT_KEPT);
	check_stored(&b, "x", "one");
	CHECK_INT(draft_rename(b.e, d, "x", false), 0);
	eb_run(&b);
	CHECK_STR(eb_sent(&b), "x ");
	eb_close(&b);
}

TEST(one_kept_can_be_written_on)
{
	struct eb b;
	struct draft *d;

	setup(&b);
	d = write_file(&b, ".x", true, "one");
	eb_run(&b);
	draft_open(d);
	CHECK_INT(d->state, DRAFT_OPEN);
	CHECK_INT(draft_write(b.e, d, "two", 3, 3), 0);
	draft_close(b.e, d);
	eb_run(&b);
	CHECK_INT(d->state, DRAFT_KEPT);
	check_stored(&b, ".x", "onetwo");
	eb_close(&b);
}

TEST(one_left_alone_is_told)
{
	struct eb b;
	struct engine_stats s;
	struct draft *d;

	setup(&b);
	d = write_file(&b, ".x", true, "one");
	eb_pass(&b, 599 * NS_PER_S);
	engine_stats(b.e, &s);
	CHECK_INT(s.drafts_stale, 0);
	eb_pass(&b, 2 * NS_PER_S);
	engine_stats(b.e, &s);
	CHECK_INT(s.drafts_stale, 1);
	CHECK_INT(s.drafts, 1);
	draft_discard(b.e, d);
	eb_run(&b);
	engine_stats(b.e, &s);
	CHECK_INT(s.drafts_stale + s.drafts, 0);
	CHECK(TAILQ_EMPTY(&b.drafts));
	eb_close(&b);
}

/* ---- renamed, discarded at any moment ---- */

TEST(renamed_while_open_it_is_sent_by_its_new_name)
{
	struct eb b;
	struct draft *d;
	struct flushing x;

	setup(&b);
	d = begin(&b, ".x", true, "one");
	start_flush(&b, d, &x);
	eb_run(&b);
	CHECK_INT(draft_rename(b.e, d, "x", false), 0);
	eb_run(&b);
	CHECK_STR(eb_sent(&b), "");
	draft_close(b.e, d);
	eb_run(&b);
	CHECK_STR(eb_sent(&b), "x ");
	eb_close(&b);
}

TEST(renamed_while_it_is_stored)
{
	struct eb b;
	struct draft *d;

	setup(&b);
	eb_hold(&b, DRIVER_DRAFT_PUT);
	d = write_file(&b, ".x", true, "one");
	eb_run(&b);
	CHECK_INT(draft_rename(b.e, d, ".y", true), 0);
	eb_let(&b, DRIVER_DRAFT_PUT);
	eb_run(&b);
	check_stored(&b, ".y", "one");
	CHECK_INT(d->state, DRAFT_KEPT);
	eb_hold(&b, DRIVER_DRAFT_PUT);
	draft_open(d);
	CHECK_INT(draft_write(b.e, d, "O", 1, 0), 0);
	draft_close(b.e, d);
	eb_run(&b);
	CHECK_INT(draft_rename(b.e, d, "y", false), 0);
	eb_let(&b, DRIVER_DRAFT_PUT);
	eb_run(&b);
	CHECK_STR(eb_sent(&b), "y ");
	CHECK(memcmp(last_message(&b)->body->data, "One", 3) == 0);
	eb_close(&b);
}

TEST(renamed_twice_and_discarded)
{
	struct eb b;
	struct draft *d;

	setup(&b);
	d = write_file(&b, ".x", true, "one");
	eb_run(&b);
	eb_hold(&b, DRIVER_DRAFT_NAME);
	CHECK_INT(draft_rename(b.e, d, ".y", true), 0);
	CHECK_INT(draft_rename(b.e, d, ".z", true), 0);
	draft_discard(b.e, d);
	eb_let(&b, DRIVER_DRAFT_NAME);
	eb_run(&b);
	CHECK(TAILQ_EMPTY(&b.drafts));
	CHECK_STR(eb_told(&b), "");
	eb_close(&b);
}

TEST(discarded_while_open)
{
	struct eb b;
	struct draft *d;
	struct flushing x;

	setup(&b);
	d = begin(&b, "x", false, "one");
	start_flush(&b, d, &x);
	eb_run(&b);
	draft_discard(b.e, d);
	CHECK_INT(d->state, DRAFT_DROPPED);
	check_content(d, "one"); /* who has it open goes on */
	CHECK_INT(draft_write(b.e, d, "two", 3, 3), 0);
	start_flush(&b, d, &x);
	CHECK_INT(x.called, 1);
	draft_close(b.e, d);
	eb_run(&b);
	CHECK(TAILQ_EMPTY(&b.drafts));
	CHECK_STR(eb_sent(&b), "");
	eb_close(&b);
}

TEST(discarded_while_it_is_stored)
{
	struct eb b;
	struct draft *d;
	struct flushing x;

	setup(&b);
	eb_hold(&b, DRIVER_DRAFT_PUT);
	d = begin(&b, "x", false, "one");
	start_flush(&b, d, &x);
	eb_run(&b);
	draft_discard(b.e, d);
	draft_close(b.e, d);
	eb_let(&b, DRIVER_DRAFT_PUT);
	eb_run(&b);
	CHECK_INT(x.called, 1);
	CHECK(TAILQ_EMPTY(&b.drafts)); /* else it is back after a restart */
	CHECK_STR(eb_sent(&b), "");
	eb_close(&b);
}
