/* SPDX-License-Identifier: MIT */
/* Which driver serves a SOURCE. */
#ifndef SPOOLFS_DRIVERS_REGISTRY_H
#define SPOOLFS_DRIVERS_REGISTRY_H

#include "driver.h"

/*
 * The driver for SOURCE, and in *rest (a pointer into SOURCE) what it opens:
 * "sqlite:q.db" and "q.db" give the SQLite driver and "q.db". NULL and errno
 * EINVAL when the scheme is unknown (a path that contains "://").
 */
const struct driver_ops *registry_find(const char *source, const char **rest);
/* All drivers, ended by NULL. */
const struct driver_ops *const *registry_all(void);

#endif
