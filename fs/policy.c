/* SPDX-License-Identifier: MIT */
#include "policy.h"

#include <errno.h>
#include <sysexits.h>

struct engine_config policy_of(const struct config *cfg, unsigned max_receive)
{
	return (struct engine_config){
		.lease = cfg->lease,
		.backoff = cfg->poll,
		.budget = cfg->budget,
		.idle_timeout_ns = cfg->idle_timeout_ns,
		.window = cfg->window ? cfg->window : max_receive,
		.window_bytes = (size_t)cfg->window_bytes,
		.receives = cfg->role != CONFIG_ROLE_OUT,
		.owned = cfg->claims == CONFIG_CLAIMS_OWNER,
		.rm_unread_deletes = cfg->rm_unread == CONFIG_UNREAD_DELETE,
	};
}

struct driver_params policy_params(const struct config *cfg)
{
	return (struct driver_params){
		.create = cfg->create,
		.state = cfg->state,
		.credentials = cfg->credentials,
		.ca_file = cfg->ca_file,
		.encoding = cfg->encoding == CONFIG_ENCODING_BASE64 ? DRIVER_BASE64
								    : DRIVER_TEXT,
	};
}

int policy_exit_code(int err)
{
	switch (err) {
	case -EACCES:
		return EX_NOPERM;
	case -EINVAL:
		return EX_USAGE;
	default:
		return EX_UNAVAILABLE;
	}
}

int policy_end_code(const struct engine_stats *st)
{
	if (st->poll_err)
		return st->poll_err == -EACCES ? EX_NOPERM : EX_UNAVAILABLE;
	return st->buried_total > 0;
}
