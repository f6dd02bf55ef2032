/* SPDX-License-Identifier: MIT */
#include "errors.h"

#include <errno.h>

enum error_kind error_kind(int err)
{
	switch (err) {
	case -EAGAIN:
		return ERROR_UNAVAILABLE;
	case -EACCES:
		return ERROR_DENIED;
	case -ENOENT:
	case -ESTALE:
		return ERROR_GONE;
	case -EMSGSIZE:
	case -EILSEQ:
	case -EINVAL:
		return ERROR_REFUSED;
	case -EPROTO:
		return ERROR_PROTOCOL;
	default:
		return ERROR_IO;
	}
}

const char *error_kind_name(enum error_kind k)
{
	static const char *const names[] = {
		[ERROR_UNAVAILABLE] = "unavailable",
		[ERROR_DENIED] = "denied",
		[ERROR_GONE] = "gone",
		[ERROR_REFUSED] = "refused",
		[ERROR_PROTOCOL] = "protocol",
		[ERROR_IO] = "io",
	};

	return names[k];
}
