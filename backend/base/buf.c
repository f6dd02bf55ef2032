/* SPDX-License-Identifier: MIT */
#include "buf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUF_FIRST_CAP ((size_t)64)

static size_t limit(const struct buf *b)
{
	return b->max ? b->max : BUF_MAX_DEFAULT;
}

void buf_fini(struct buf *b)
{
	free(b->p);
	*b = (struct buf){.max = b->max};
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	if (b->p)
		b->p[0] = '\0';
}

/* Doubles, so that many small additions cost linear time; never beyond the
 * maximum and its NUL. */
static size_t next_cap(const struct buf *b, size_t need)
{
	size_t cap = b->cap ? b->cap : BUF_FIRST_CAP;

	while (cap < need && cap <= limit(b) / 2)
		cap *= 2;
	return cap < need ? limit(b) + 1 : cap;
}

int buf_reserve(struct buf *b, size_t total)
{
	size_t cap;
	char *p;

	if (total > limit(b))
		return -EFBIG;
	if (total < b->cap)
		return 0;
	cap = next_cap(b, total + 1);
	p = realloc(b->p, cap);
	if (!p)
		return -ENOMEM;
	p[b->len] = '\0';
	b->p = p;
	b->cap = cap;
	return 0;
}

/* The end of OFF + N in *END, or -EFBIG when the sum cannot be a length. */
static int end_of(size_t off, size_t n, size_t *end)
{
	return __builtin_add_overflow(off, n, end) ? -EFBIG : 0;
}

int buf_add(struct buf *b, const void *data, size_t n)
{
	return buf_pwrite(b, data, n, b->len);
}

int buf_addstr(struct buf *b, const char *s)
{
	return buf_add(b, s, strlen(s));
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int err;

	va_start(ap, fmt);
	err = buf_vprintf(b, fmt, ap);
	va_end(ap);
	return err;
}

/* Measures first: a half-written text must not be left behind on -EFBIG. */
int buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
	va_list measure;
	size_t end;
	int n;
	int err;

	va_copy(measure, ap);
	n = vsnprintf(NULL, 0, fmt, measure);
	va_end(measure);
	if (n < 0)
		return -EFBIG;
	err = end_of(b->len, (size_t)n, &end);
	if (!err)
		err = buf_reserve(b, end);
	if (err)
		return err;
	(void)vsnprintf(b->p + b->len, (size_t)n + 1, fmt, ap);
	b->len = end;
	return 0;
}

int buf_pwrite(struct buf *b, const void *data, size_t n, size_t off)
{
	size_t end;
	int err = end_of(off, n, &end);

	if (!err)
		err = buf_reserve(b, n ? end : b->len);
	if (err || !n)
		return err;
	if (off > b->len)
		memset(b->p + b->len, 0, off - b->len);
	memcpy(b->p + off, data, n);
	if (end > b->len) {
		b->len = end;
		b->p[end] = '\0';
	}
	return 0;
}

int buf_truncate(struct buf *b, size_t len)
{
	int err = buf_reserve(b, len);

	if (err)
		return err;
	if (len > b->len)
		memset(b->p + b->len, 0, len - b->len);
	b->len = len;
	b->p[len] = '\0';
	return 0;
}

char *buf_take(struct buf *b, size_t *len)
{
	char *p;

	if (len)
		*len = 0;
	if (buf_reserve(b, b->len))
		return NULL;
	p = b->p;
	if (len)
		*len = b->len;
	*b = (struct buf){.max = b->max};
	return p;
}

struct blob *blob_create(const void *data, size_t len)
{
	struct blob *b = NULL;
	size_t size;

	if (!__builtin_add_overflow(sizeof(*b), len, &size))
		b = malloc(size);
	if (!b) {
		errno = ENOMEM;
		return NULL;
	}
	b->refs = 1;
	b->len = len;
	if (data && len)
		memcpy(b->data, data, len);
	return b;
}

struct blob *blob_ref(struct blob *b)
{
	b->refs++;
	return b;
}

void blob_unref(struct blob *b)
{
	if (b && --b->refs == 0)
		free(b);
}
