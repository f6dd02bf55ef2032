/* SPDX-License-Identifier: MIT */
/* The errors of a driver as kinds that are counted for .metrics. Pure. */
#ifndef SPOOLFS_ENGINE_ERRORS_H
#define SPOOLFS_ENGINE_ERRORS_H

enum error_kind {
	ERROR_UNAVAILABLE, /* -EAGAIN: unreachable, busy or throttled */
	ERROR_DENIED,      /* -EACCES */
	ERROR_GONE,        /* -ENOENT, -ESTALE */
	ERROR_REFUSED,     /* -EMSGSIZE, -EILSEQ, -EINVAL: this message, or request */
	ERROR_PROTOCOL,    /* -EPROTO */
	ERROR_IO,          /* -EIO and all others */
	ERROR_KINDS,
};

/* ERR as in driver_req.err, negative. */
enum error_kind error_kind(int err);
/* "unavailable" and so on. */
const char *error_kind_name(enum error_kind k);

#endif
