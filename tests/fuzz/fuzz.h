/* SPDX-License-Identifier: MIT */
/*
 * What fuzz targets share. A target is one file with LLVMFuzzerTestOneInput(),
 * which gives what it was given to a parser and MUST() what the parser's header
 * promises; its seeds are in corpus/NAME/. It is linked
 *
 *	with libFuzzer    make fuzz: looks for new inputs, with clang
 *	with fuzz.c       make test: the seeds, and mutations of them that are
 *	                  the same in every run; any compiler
 *
 * Fields of an input end at a NUL: no C string can hold one.
 */
#ifndef SPOOLFS_FUZZ_H
#define SPOOLFS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition) \
	((condition) ? (void)0 : fuzz_broken(__FILE__, __LINE__, #condition))

_Noreturn static inline void fuzz_broken(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: broken: %s\n", file, line, what);
	abort();
}

/* A copy with a NUL behind, on the heap: a sanitizer sees who reads beyond. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	MUST(text);
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

/* The next field of *DATA as fuzz_text() gives it; "" when there is none. */
static inline char *fuzz_field(const uint8_t **data, size_t *size)
{
	const uint8_t *end = *size > 0 ? memchr(*data, '\0', *size) : NULL;
	size_t n = end ? (size_t)(end - *data) : *size;
	char *text = fuzz_text(*data, n);

	*data += n + (end != NULL);
	*size -= n + (end != NULL);
	return text;
}

/* Whether TEXT, of a buffer of LEN, is ended within it and not empty. */
static inline bool fuzz_says(const char *text, size_t len)
{
	size_t n = strnlen(text, len);

	return n > 0 && n < len;
}

/* Whether it is what a log and a terminal can be given. */
static inline bool fuzz_printable(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return true;
}

#endif
