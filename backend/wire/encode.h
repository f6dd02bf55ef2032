/* SPDX-License-Identifier: MIT */
/* How bytes travel as text: base64 (RFC 4648, with padding) and %XX (RFC 3986). */
#ifndef SPOOLFS_WIRE_ENCODE_H
#define SPOOLFS_WIRE_ENCODE_H

#include <stddef.h>

#include "../base/buf.h"

/* All append to OUT and return 0, -ENOMEM or -EFBIG; then OUT is unchanged. */
int base64_encode(const void *data, size_t len, struct buf *out);
/* -EINVAL when TEXT is no base64: no blanks, no line ends, padding required. */
int base64_decode(const char *text, size_t len, struct buf *out);

/* TEXT, each byte but A-Z a-z 0-9 - . _ ~ as %XX. */
int percent_encode(const char *text, struct buf *out);
/* The same back. A '%' that begins no pair of digits stays as it is. */
int percent_decode(const char *text, size_t len, struct buf *out);

#endif
