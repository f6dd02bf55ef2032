/* SPDX-License-Identifier: MIT */
#include "backend/base/buf.h"

#include <errno.h>
#include <stdlib.h>

#include "tests/test.h"

TEST(adding_appends_and_terminates)
{
	struct buf b = {0};

	CHECK_INT(buf_addstr(&b, "one "), 0);
	CHECK_INT(buf_add(&b, "two!", 3), 0);
	CHECK_INT(buf_printf(&b, " %d", 3), 0);
	CHECK_STR(b.p, "one two 3");
	CHECK_INT(b.len, 9);
	buf_fini(&b);
	CHECK(!b.p);
}

TEST(grows_through_many_small_additions)
{
	struct buf b = {0};

	for (int i = 0; i < 10000; i++)
		CHECK_INT(buf_printf(&b, "%04d", i), 0);
	CHECK_INT(b.len, 40000);
	CHECK_STR(b.p + 39996, "9999");
	buf_fini(&b);
}

TEST(maximum_is_exact_and_refusal_changes_nothing)
{
	struct buf b = {.max = 100};

	for (int i = 0; i < 10; i++)
		CHECK_INT(buf_addstr(&b, "0123456789"), 0);
	CHECK_INT(buf_addstr(&b, "x"), -EFBIG);
	CHECK_INT(buf_printf(&b, "%s", "x"), -EFBIG);
	CHECK_INT(buf_pwrite(&b, "xx", 2, 99), -EFBIG);
	CHECK_INT(buf_truncate(&b, 101), -EFBIG);
	CHECK_INT(buf_reserve(&b, 101), -EFBIG);
	CHECK_INT(b.len, 100);
	CHECK_STR(b.p + 90, "0123456789");
	buf_fini(&b);
	CHECK_INT(b.max, 100);
}

TEST(default_maximum_holds)
{
	struct buf b = {0};

	CHECK_INT(buf_reserve(&b, BUF_MAX_DEFAULT + 1), -EFBIG);
	CHECK_INT(buf_reserve(&b, BUF_MAX_DEFAULT), 0);
	buf_fini(&b);
}

TEST(pwrite_overwrites_extends_and_fills_gaps)
{
	struct buf b = {0};

	CHECK_INT(buf_addstr(&b, "abcdef"), 0);
	CHECK_INT(buf_pwrite(&b, "XY", 2, 1), 0);
	CHECK_STR(b.p, "aXYdef");
	CHECK_INT(buf_pwrite(&b, "Z", 1, 9), 0);
	CHECK_INT(b.len, 10);
	CHECK(memcmp(b.p, "aXYdef\0\0\0Z", 11) == 0);
	buf_fini(&b);
}

TEST(pwrite_of_nothing_extends_nothing)
{
	struct buf b = {0};

	CHECK_INT(buf_pwrite(&b, "", 0, 50), 0);
	CHECK_INT(buf_pwrite(&b, "", 0, SIZE_MAX), 0);
	CHECK_INT(b.len, 0);
	CHECK_STR(b.p, "");
	buf_fini(&b);
}

TEST(pwrite_past_every_size_is_refused)
{
	struct buf b = {0};

	CHECK_INT(buf_pwrite(&b, "x", 1, SIZE_MAX), -EFBIG);
	CHECK_INT(buf_pwrite(&b, "xy", 2, SIZE_MAX - 1), -EFBIG);
	CHECK_INT(b.len, 0);
	buf_fini(&b);
}

TEST(truncating_cuts_and_extends_with_zeros)
{
	struct buf b = {0};

	CHECK_INT(buf_addstr(&b, "abcdef"), 0);
	CHECK_INT(buf_truncate(&b, 2), 0);
	CHECK_STR(b.p, "ab");
	CHECK_INT(buf_truncate(&b, 5), 0);
	CHECK(memcmp(b.p, "ab\0\0\0", 6) == 0);
	CHECK_INT(b.len, 5);
	buf_fini(&b);
}

TEST(clearing_keeps_the_memory)
{
	struct buf b = {0};
	const char *p;

	buf_clear(&b);
	CHECK_INT(buf_addstr(&b, "abc"), 0);
	p = b.p;
	buf_clear(&b);
	CHECK_INT(b.len, 0);
	CHECK_STR(b.p, "");
	CHECK(b.p == p);
	buf_fini(&b);
}

TEST(taking_hands_over)
{
	struct buf b = {.max = 10};
	size_t len;
	char *p;

	CHECK_INT(buf_addstr(&b, "abc"), 0);
	p = buf_take(&b, &len);
	CHECK_STR(p, "abc");
	CHECK_INT(len, 3);
	CHECK(!b.p);
	CHECK_INT(b.len, 0);
	CHECK_INT(b.max, 10);
	free(p);
	p = buf_take(&b, NULL);
	CHECK_STR(p, "");
	free(p);
}

TEST(blob_lives_as_long_as_its_references)
{
	struct blob *b = blob_create("abc", 3);

	CHECK(b);
	CHECK_INT(b->len, 3);
	CHECK(memcmp(b->data, "abc", 3) == 0);
	CHECK(blob_ref(b) == b);
	blob_unref(b);
	CHECK_INT(b->refs, 1);
	CHECK_INT(b->data[2], 'c');
	blob_unref(b);
	blob_unref(NULL);
}

TEST(blob_may_be_empty_or_uninitialised)
{
	struct blob *b = blob_create(NULL, 0);

	CHECK(b);
	CHECK_INT(b->len, 0);
	blob_unref(b);
	b = blob_create(NULL, 10);
	CHECK(b);
	memset(b->data, 1, b->len);
	blob_unref(b);
}

TEST(blob_of_impossible_size_is_refused)
{
	errno = 0;
	CHECK(!blob_create(NULL, SIZE_MAX));
	CHECK_INT(errno, ENOMEM);
}
