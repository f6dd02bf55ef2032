/* SPDX-License-Identifier: MIT */
/* A growable byte buffer with a stated maximum, and shared immutable bytes. */
#ifndef SPOOLFS_BASE_BUF_H
#define SPOOLFS_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>
#include <stdarg.h>
#include <sys/types.h>

/*
 * Zero-initialise, then set max (0 means BUF_MAX_DEFAULT). p is always
 * NUL-terminated when it is not NULL; the NUL is not counted in len.
 */
struct buf {
	char *p;
	size_t len;
	size_t cap;
	size_t max;
};

#define BUF_MAX_DEFAULT ((size_t)16 << 20)

void buf_fini(struct buf *b);
/* Makes it empty and keeps the memory. */
void buf_clear(struct buf *b);
/* All return 0, -ENOMEM, or -EFBIG when max would be exceeded (b unchanged). */
int buf_reserve(struct buf *b, size_t total);
int buf_add(struct buf *b, const void *data, size_t n);
int buf_addstr(struct buf *b, const char *s);
int buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int buf_vprintf(struct buf *b, const char *fmt, va_list ap);
/* Writes N bytes at OFF as pwrite(2) does: a gap is filled with zeros. */
int buf_pwrite(struct buf *b, const void *data, size_t n, size_t off);
/* Cuts, or extends with zeros. */
int buf_truncate(struct buf *b, size_t len);
/* Hands the memory over (free() it); b is empty afterwards. An empty buffer
 * gives "". NULL only when out of memory. LEN may be NULL. */
char *buf_take(struct buf *b, size_t *len);

/*
 * Immutable bytes with a reference count (single-threaded unless the count
 * is 1: a worker may build one and hand it over).
 */
struct blob {
	unsigned refs;
	size_t len;
	unsigned char data[];
};

/* A new blob with one reference, a copy of DATA (or uninitialised when DATA
 * is NULL). NULL and errno ENOMEM. */
struct blob *blob_create(const void *data, size_t len);
struct blob *blob_ref(struct blob *b);
/* Takes NULL. Frees with the last reference. */
void blob_unref(struct blob *b);

#endif
