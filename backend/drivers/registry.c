/* SPDX-License-Identifier: MIT */
#include "registry.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "sqlite.h"

static const struct driver_ops *const drivers[] = {
	&sqlite_driver_ops,
	NULL,
};

const struct driver_ops *registry_find(const char *source, const char **rest)
{
	static const char scheme[] = "sqlite:";
	size_t len = sizeof(scheme) - 1;

	*rest = strncmp(source, scheme, len) == 0 ? source + len : source;
	if (!strstr(*rest, "://"))
		return &sqlite_driver_ops;
	errno = EINVAL;
	return NULL;
}

const struct driver_ops *const *registry_all(void)
{
	return drivers;
}
