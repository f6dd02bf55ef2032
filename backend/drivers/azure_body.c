/* SPDX-License-Identifier: MIT */
/* Bodies as the text that the service stores. */
#include <errno.h>
#include <string.h>

#include "../base/log.h"
#include "../wire/encode.h"
#include "azure_int.h"

#define VISIBLE_MAX_S INT64_C(604800)

static void say_no_base64(struct azure *az, const char *id)
{
	if (az->said_no_base64)
		return;
	az->said_no_base64 = true;
	log_warn("azure",
		"a text is no base64 and is handed on as it is (told once): is "
		"encoding=base64 right? queue=%s id=%s",
		az->queue.name, id);
}

int azure_decode(struct azure *az, const struct azure_message *m, struct blob **out)
{
	struct buf raw = {0};
	int r = -EINVAL;

	if (az->encoding == DRIVER_BASE64) {
		r = base64_decode(m->text, m->text_len, &raw);
		if (r == -EINVAL)
			say_no_base64(az, m->id);
	}
	if (r == 0)
		*out = blob_create(raw.p ? raw.p : "", raw.len);
	else if (r == -EINVAL)
		*out = blob_create(m->text, m->text_len);
	buf_fini(&raw);
	return (r == 0 || r == -EINVAL) && *out ? 0 : -ENOMEM;
}

int azure_encode(const struct azure *az, const void *body, size_t len, struct buf *out)
{
	struct buf text = {0};
	int r;

	/* What is longer than base64 can be (none is sent, but one may be buried)
	 * came as plain text, and goes as such. */
	if (az->encoding == DRIVER_TEXT || len > az->base.max_body)
		return azure_xml_message(body, len, out);
	r = base64_encode(body, len, &text);
	if (r == 0)
		r = azure_xml_message(text.p ? text.p : "", text.len, out);
	buf_fini(&text);
	return r ? -ENOMEM : 0;
}

bool azure_carries(const struct driver *d, const void *body, size_t len)
{
	const struct azure *az = (const struct azure *)(const void *)d;
	struct buf document = {0};
	int r;

	if (az->encoding == DRIVER_BASE64)
		return true;
	r = azure_xml_message(body, len, &document);
	buf_fini(&document);
	return r != -EILSEQ; /* no memory: it is for the sending to say so */
}

int64_t azure_seconds(int64_t ns, int64_t min_s)
{
	int64_t s = ns <= 0 ? 0 : (ns - 1) / NS_PER_S + 1;

	return s < min_s ? min_s : s > VISIBLE_MAX_S ? VISIBLE_MAX_S : s;
}
