/* SPDX-License-Identifier: MIT */
#include "registry.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "azure_queue.h"
#include "azure_source.h"
#include "relay.h"
#include "sqlite.h"

static const struct driver_ops *const drivers[] = {
	&sqlite_driver_ops,
	&azure_queue_driver_ops,
	NULL,
};

const struct driver_ops *registry_find(const char *source, const char **rest)
{
	static const char scheme[] = "sqlite:";
	size_t len = sizeof(scheme) - 1;

	*rest = strncmp(source, scheme, len) == 0 ? source + len : source;
	if (azure_source_is(source))
		return &azure_queue_driver_ops;
	if (!strstr(*rest, "://"))
		return &sqlite_driver_ops;
	errno = EINVAL;
	return NULL;
}

int registry_open(const char *source, const struct driver_params *p, struct driver **out,
	char *err, size_t err_len)
{
	struct driver_params params = *p;
	const struct driver_ops *ops = registry_find(source, &params.source);

	*out = NULL;
	if (!ops) {
		snprintf(err, err_len, "%s: no such kind of source", source);
		return -EINVAL;
	}
	return ops->caps & DRIVER_FAR ? relay_open(ops, &params, out, err, err_len)
				      : driver_open(ops, &params, out, err, err_len);
}

const struct driver_ops *const *registry_all(void)
{
	return drivers;
}
