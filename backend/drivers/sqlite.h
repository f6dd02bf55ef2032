/* SPDX-License-Identifier: MIT */
/* The embedded queue: one SQLite file. For the registry. */
#ifndef SPOOLFS_DRIVERS_SQLITE_H
#define SPOOLFS_DRIVERS_SQLITE_H

#include "driver.h"

extern const struct driver_ops sqlite_driver_ops;

#endif
