/* SPDX-License-Identifier: MIT */
/* Which driver serves a SOURCE. */
#ifndef SPOOLFS_DRIVERS_REGISTRY_H
#define SPOOLFS_DRIVERS_REGISTRY_H

#include "driver.h"

/*
 * The driver for SOURCE, and in *rest (a pointer into SOURCE) what it opens:
 * "sqlite:q.db" and "q.db" give the SQLite driver and "q.db", the URL of an Azure
 * Storage queue its driver and all of it. A driver with DRIVER_FAR means a remote
 * source. NULL and errno EINVAL when the scheme is unknown (a path that contains "://").
 */
const struct driver_ops *registry_find(const char *source, const char **rest);
/* Opens SOURCE, whatever it is: p->source is ignored. A far one comes with a
 * relay around it. As driver_open(). */
int registry_open(const char *source, const struct driver_params *p, struct driver **out,
	char *err, size_t err_len);
/* All drivers, ended by NULL. */
const struct driver_ops *const *registry_all(void);

#endif
