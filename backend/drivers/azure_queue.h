/* SPDX-License-Identifier: MIT */
/*
 * Azure Storage queues, over HTTP.
 *
 * A message is leased for whole seconds, up to seven days. The service counts
 * no attempts, keeps no names, claims or drafts and tells of no change: that is
 * for a relay. It counts leased messages with the waiting ones, and so do we.
 *
 * Dead letters are messages of a second queue, QUEUE-poison, as other readers of
 * these queues have it. A buried message gets another id there (settle.new_id),
 * and another when it is brought back. To discard one, or bring it back, it must
 * be leased first, and others with it that are given back: one that somebody
 * else looks at in that moment is not found (-ENOENT).
 */
#ifndef SPOOLFS_DRIVERS_AZURE_QUEUE_H
#define SPOOLFS_DRIVERS_AZURE_QUEUE_H

#include "driver.h"

extern const struct driver_ops azure_queue_driver_ops;

#endif
