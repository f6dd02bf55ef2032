/* SPDX-License-Identifier: MIT */
#include "encode.h"

#include <errno.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <string.h>

/* Not isalnum(): that asks the locale. */
static bool is_alnum(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

int base64_encode(const void *data, size_t len, struct buf *out)
{
	size_t n = (len + 2) / 3 * 4;
	int err;

	if (len > INT_MAX / 2)
		return -EFBIG;
	err = buf_reserve(out, out->len + n);
	if (err)
		return err;
	/* It writes a NUL behind, for which a buffer always has room. */
	(void)EVP_EncodeBlock((unsigned char *)out->p + out->len, data, (int)len);
	out->len += n;
	return 0;
}

/* OpenSSL's decoder forgives blanks and takes '=' anywhere for zero bits. So
 * what it gets is looked at before: *PAD is the number of '=' at the end. */
static bool is_base64(const char *text, size_t len, size_t *pad)
{
	*pad = 0;
	if (len % 4 != 0 || len > INT_MAX / 2)
		return false;
	while (*pad < 2 && *pad < len && text[len - 1 - *pad] == '=')
		++*pad;
	for (size_t i = 0; i < len - *pad; i++) {
		if (!is_alnum(text[i]) && text[i] != '+' && text[i] != '/')
			return false;
	}
	return true;
}

int base64_decode(const char *text, size_t len, struct buf *out)
{
	size_t n = len / 4 * 3, pad;
	int err;

	if (!is_base64(text, len, &pad))
		return -EINVAL;
	err = buf_reserve(out, out->len + n);
	if (err || !n)
		return err;
	if (EVP_DecodeBlock((unsigned char *)out->p + out->len,
		    (const unsigned char *)text, (int)len) != (int)n)
		return -EINVAL;
	out->len += n - pad;
	out->p[out->len] = '\0';
	return 0;
}

int percent_encode(const char *text, struct buf *out)
{
	size_t was = out->len;
	int err = buf_reserve(out, was);

	for (; *text && !err; text++) {
		if (is_alnum(*text) || strchr("-._~", *text))
			err = buf_add(out, text, 1);
		else
			err = buf_printf(out, "%%%02X", (unsigned char)*text);
	}
	if (err && out->p)
		(void)buf_truncate(out, was);
	return err;
}

/* The value of a hexadecimal digit, or -1. */
static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int percent_decode(const char *text, size_t len, struct buf *out)
{
	int err = buf_reserve(out, out->len + len);

	if (err)
		return err;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (c == '%' && len - i > 2 && digit(text[i + 1]) >= 0 &&
			digit(text[i + 2]) >= 0) {
			c = (char)(digit(text[i + 1]) * 16 + digit(text[i + 2]));
			i += 2;
		}
		out->p[out->len++] = c;
	}
	out->p[out->len] = '\0';
	return 0;
}
