/* SPDX-License-Identifier: MIT */
/*
 * No memory: the n-th allocation of the program's own code fails.
 *
 * What counts is who calls: a return address in the program, not in a library.
 * SQLite's and libfuse's own allocations are theirs.
 *
 *	ALLOC_FAIL_AT=N     the N-th one, from 1; 0 none: they are only counted
 *	ALLOC_FAIL_EVERY=N  and every N-th after it
 *	ALLOC_SAID=FILE     gets "failed N FUNCTION OFFSET", and "counted N" at the end
 *	ALLOC_PROGRAM=NAME  leaves all other programs alone
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FROM_PROGRAM is_mine(__builtin_return_address(0))
#define REAL(name)   ((__typeof__(name) *)next(#name))

static uintptr_t low, high, base;
static atomic_ulong counted;
static unsigned long fail_at, fail_every;
static bool on;
static int said = -1;
/* Before all is set up there may be nobody to ask: dlsym() wants memory itself, and
 * a sanitizer before it has found what it stands before. */
static char early[4 << 20];
static bool begun;
static size_t early_used;
/* Found without a call: that would be the sanitizer's as well. */
static _Thread_local bool looking __attribute__((tls_model("initial-exec")));

static void *next(const char *name)
{
	void *f;

	looking = true;
	f = dlsym(RTLD_NEXT, name);
	looking = false;
	return f;
}

static int note_program(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	base = info->dlpi_addr;
	low = UINTPTR_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		if (base + p->p_vaddr < low)
			low = base + p->p_vaddr;
		if (base + p->p_vaddr + p->p_memsz > high)
			high = base + p->p_vaddr + p->p_memsz;
	}
	return 1; /* the first one is the program */
}

static unsigned long number(const char *name)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 10) : 0;
}

__attribute__((constructor)) static void begin(void)
{
	const char *program = getenv("ALLOC_PROGRAM"), *file = getenv("ALLOC_SAID");

	begun = true;
	if (!program || !file || strcmp(program, program_invocation_short_name) != 0)
		return;
	fail_at = number("ALLOC_FAIL_AT");
	fail_every = number("ALLOC_FAIL_EVERY");
	dl_iterate_phdr(note_program, NULL);
	said = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	on = said >= 0;
}

__attribute__((destructor)) static void end(void)
{
	if (on)
		dprintf(said, "counted %lu\n", atomic_load(&counted));
}

static bool is_mine(const void *caller)
{
	return on && (uintptr_t)caller >= low && (uintptr_t)caller < high;
}

static bool fails(const char *what, const void *caller)
{
	unsigned long n;
	char line[128];
	int len;

	if (!is_mine(caller))
		return false;
	n = atomic_fetch_add(&counted, 1) + 1;
	if (!fail_at || n < fail_at ||
		(n > fail_at && (!fail_every || (n - fail_at) % fail_every)))
		return false;
	len = snprintf(line, sizeof(line), "failed %lu %s %#lx\n", n, what,
		(unsigned long)((uintptr_t)caller - base));
	if (write(said, line, (size_t)len) < 0)
		abort();
	errno = ENOMEM;
	return true;
}
#define FAILS(name) fails(name, __builtin_return_address(0))

static void *take_early(size_t n)
{
	void *p = early + early_used;

	early_used += (n + 15) & ~(size_t)15;
	if (early_used > sizeof(early))
		abort();
	return p;
}

static bool is_early(const void *p)
{
	return (const char *)p >= early && (const char *)p < early + sizeof(early);
}

void *malloc(size_t n);

/* What is behind P in EARLY is copied with it: how long P is nobody knows. */
static void *move_early(const void *p, size_t n)
{
	size_t room = p ? (size_t)(early + early_used - (const char *)p) : 0;
	void *to = malloc(n);

	if (p && to)
		memcpy(to, p, n < room ? n : room);
	return to;
}

void *malloc(size_t n)
{
	static void *(*real)(size_t);

	if (looking || !begun)
		return take_early(n);
	if (!real)
		real = REAL(malloc);
	if (!real)
		return take_early(n);
	return FAILS("malloc") ? NULL : real(n);
}

void *calloc(size_t k, size_t n)
{
	static void *(*real)(size_t, size_t);

	if (looking || !begun)
		return take_early(k * n);
	if (!real)
		real = REAL(calloc);
	if (!real)
		return take_early(k * n);
	return FAILS("calloc") ? NULL : real(k, n);
}

void *realloc(void *p, size_t n)
{
	static void *(*real)(void *, size_t);

	if (looking || !begun || is_early(p))
		return move_early(p, n);
	if (!real)
		real = REAL(realloc);
	return FAILS("realloc") ? NULL : real(p, n);
}

void free(void *p)
{
	static void (*real)(void *);

	if (is_early(p))
		return;
	if (!real)
		real = REAL(free);
	real(p);
}

char *strdup(const char *s)
{
	return FAILS("strdup") ? NULL : REAL(strdup)(s);
}

char *strndup(const char *s, size_t n)
{
	return FAILS("strndup") ? NULL : REAL(strndup)(s, n);
}

int vasprintf(char **out, const char *fmt, va_list ap)
{
	return FAILS("vasprintf") ? -1 : REAL(vasprintf)(out, fmt, ap);
}

int asprintf(char **out, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (FAILS("asprintf"))
		return -1;
	va_start(ap, fmt);
	n = REAL(vasprintf)(out, fmt, ap);
	va_end(ap);
	return n;
}

char *realpath(const char *path, char *out)
{
	return !out && FAILS("realpath") ? NULL : REAL(realpath)(path, out);
}

FILE *open_memstream(char **p, size_t *n)
{
	return FAILS("open_memstream") ? NULL : REAL(open_memstream)(p, n);
}
