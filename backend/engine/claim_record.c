/* SPDX-License-Identifier: MIT */
#include "claim_record.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int claim_record_format(const struct claim_record *r, const struct owner_chain *chain,
	const char *boot, char *buf, size_t len)
{
	int n = snprintf(buf, len, "%lld %lld %d%d ", (long long)r->claimed_ns,
		(long long)r->left_ns, r->read, r->explicit);
	size_t used;

	if (n < 0 || (size_t)n >= len ||
		owner_record_format(chain, boot, buf + n, len - (size_t)n))
		return -ENOSPC;
	if (!r->alias)
		return 0;
	used = strlen(buf);
	n = snprintf(buf + used, len - used, "\n%s", r->alias);
	return n < 0 || (size_t)n >= len - used ? -ENOSPC : 0;
}

/* A number that is not negative, and the blank behind it. */
static int take_time(char **text, int64_t *out)
{
	char *end;

	if (**text < '0' || **text > '9')
		return -EINVAL;
	errno = 0;
	*out = strtoll(*text, &end, 10);
	if (errno || *end != ' ')
		return -EINVAL;
	*text = end + 1;
	return 0;
}

static int take_flag(char **text, bool *out)
{
	if (**text != '0' && **text != '1')
		return -EINVAL;
	*out = *(*text)++ == '1';
	return 0;
}

/* It becomes a name in a listing, whoever wrote the record. */
static bool is_file_name(const char *s)
{
	size_t n = strlen(s);

	return n > 0 && n <= NAME_MAX && !strchr(s, '/') && strcmp(s, ".") != 0 &&
	       strcmp(s, "..") != 0;
}

int claim_record_parse(char *text, struct claim_record *r, struct owner_record *owner)
{
	char *alias = strchr(text, '\n');

	if (alias)
		*alias++ = '\0';
	if (alias && !is_file_name(alias))
		return -EINVAL;
	*r = (struct claim_record){.alias = alias};
	if (take_time(&text, &r->claimed_ns) || take_time(&text, &r->left_ns) ||
		take_flag(&text, &r->read) || take_flag(&text, &r->explicit) ||
		*text != ' ')
		return -EINVAL;
	return owner_record_parse(text + 1, owner);
}
