/* SPDX-License-Identifier: MIT */
/*
 * A far queue made whole: a driver of a service, and beside it a local keeper
 * (an SQLite file in the state directory) for what the service cannot hold.
 *
 *   drafts, the outbox           in the keeper, until the service has them
 *   claims, receipts, bodies     in the keeper too, for the daemon's next life
 *   attempts, reasons of burials in the keeper: a service counts deliveries,
 *                                not handlings, and knows no reasons
 *   the mounts of this machine   know each other through the keeper
 *
 * Everything else goes to the service as it is. No policy: an answer is handed
 * on, the engine decides. The result has DRIVER_STORE, _ATTEMPTS, _NOTIFIES and
 * _PEERS_KNOWN beside what the far driver can do.
 */
#ifndef SPOOLFS_DRIVERS_RELAY_H
#define SPOOLFS_DRIVERS_RELAY_H

#include "driver.h"

/* Opens FAR as P says, behind a keeper in the state directory; as driver_open(). */
int relay_open(const struct driver_ops *far, const struct driver_params *p,
	struct driver **out, char *err, size_t err_len);

/*
 * Where the state of SOURCE is: "DIR/NAME.db", DIR made if missing, for its
 * owner only. GIVEN is the state option; else the first of $STATE_DIRECTORY,
 * /var/lib/spoolfs (root), $XDG_STATE_HOME/spoolfs, $HOME/.local/state/spoolfs
 * and, with a warning, a directory of its own in /tmp. 0, or -errno and a line.
 */
int relay_state_path(const char *given, const char *source, char *out, size_t len,
	char *err, size_t err_len);
/*
 * Whether a file at PATH, where there is one, is ours: no link, of this user, and
 * nobody else writes to it. Bodies and receipts are in it: whoever made it could
 * read them. 0, or -EACCES and a line.
 */
int relay_state_check(const char *path, char *err, size_t err_len);
/* The NAME alone. Pure: the same source gives the same name, another another. */
void relay_state_name(const char *source, char *out, size_t len);

#endif
