/* SPDX-License-Identifier: MIT */
/*
 * The whole test harness. A test program includes this once and says
 *
 *	TEST(deletes_the_newest)
 *	{
 *		CHECK_INT(f(1), 2);
 *	}
 *
 * A test registers itself, runs in the order of the file, and ends at its first
 * failed check. All run in one process; `program FILTER` runs those whose name
 * contains FILTER. Output is TAP lines and, last, `N passed, M failed`; the exit
 * code is 1 when M > 0. A check in a helper function ends the whole test too:
 * memory held at that moment is lost, so leak checkers speak up after failures.
 */
#ifndef SPOOLFS_TEST_H
#define SPOOLFS_TEST_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct test {
	const char *name;
	const char *file;
	void (*fn)(void);
	struct test *next;
};

static struct test *test_first;
static struct test **test_last = &test_first;
static jmp_buf test_end;

static inline void test_register(struct test *t)
{
	*test_last = t;
	test_last = &t->next;
}

#define TEST(id)                                                                         \
	static void test_##id(void);                                                     \
	__attribute__((constructor)) static void test_register_##id(void)                \
	{                                                                                \
		static struct test t = {.name = #id, .file = __FILE__, .fn = test_##id}; \
                                                                                         \
		test_register(&t);                                                       \
	}                                                                                \
	static void test_##id(void)

#define CHECK(cond) \
	((cond) ? (void)0 : test_fail(__FILE__, __LINE__, "%s", "CHECK(" #cond ")"))

/* Both are evaluated once. Any integers; shown as signed. */
#define CHECK_INT(got, want) \
	test_check_int(__FILE__, __LINE__, #got, (intmax_t)(got), (intmax_t)(want))

/* NULL equals only NULL. */
#define CHECK_STR(got, want) test_check_str(__FILE__, __LINE__, #got, (got), (want))

#define test_fail(file, line, fmt, ...) \
	(printf("# %s:%d: " fmt "\n", (file), (line), __VA_ARGS__), longjmp(test_end, 1))

static inline void test_check_int(
	const char *file, int line, const char *what, intmax_t got, intmax_t want)
{
	if (got != want)
		test_fail(file, line, "%s is %jd, not %jd", what, got, want);
}

static inline void test_check_str(
	const char *file, int line, const char *what, const char *got, const char *want)
{
	if (got == want || (got && want && strcmp(got, want) == 0))
		return;
	test_fail(file, line, "%s is \"%s\", not \"%s\"", what, got ? got : "(null)",
		want ? want : "(null)");
}

static inline int test_run_one(const struct test *t, unsigned number)
{
	const char *slash = strrchr(t->file, '/');
	int failed = setjmp(test_end);

	if (!failed)
		t->fn();
	printf("%sok %u - %s: %s\n", failed ? "not " : "", number,
		slash ? slash + 1 : t->file, t->name);
	return failed;
}

int main(int argc, char **argv)
{
	unsigned n = 0, failed = 0;

	/* What was said before a crash, or at exit by a leak checker, is kept. */
	setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
	for (const struct test *t = test_first; t; t = t->next) {
		if (argc > 1 && !strstr(t->name, argv[1]))
			continue;
		n++;
		if (test_run_one(t, n))
			failed++;
	}
	printf("1..%u\n%u passed, %u failed\n", n, n - failed, failed);
	return failed ? 1 : 0;
}

#endif
