/* SPDX-License-Identifier: MIT */
/* From what the user asked for to what the engine obeys. Pure. */
#ifndef SPOOLFS_FS_POLICY_H
#define SPOOLFS_FS_POLICY_H

#include "../backend/engine/engine.h"
#include "config.h"

/* MAX_RECEIVE is the driver's: the window where none was given. */
struct engine_config policy_of(const struct config *cfg, unsigned max_receive);

/* What of it the driver is told; the rest of it is the caller's to fill in. */
struct driver_params policy_params(const struct config *cfg);

/* The exit code of <sysexits.h> for an error (-errno) of a source. */
int policy_exit_code(int err);
/* That of a bounded run that has come to its end. */
int policy_end_code(const struct engine_stats *st);

#endif
