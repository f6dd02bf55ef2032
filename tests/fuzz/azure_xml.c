/* SPDX-License-Identifier: MIT */
/* Documents of the Azure driver: read, and written and read again. */
#include "backend/drivers/azure_xml.h"

#include "fuzz.h"

#include <errno.h>

#define MESSAGE "<QueueMessage>"
#define BEFORE                                                   \
	"<QueueMessagesList>" MESSAGE "<MessageId>m</MessageId>" \
	"<InsertionTime>Fri, 20 Nov 2026 04:17:41 GMT</InsertionTime>"
#define BEHIND "</QueueMessagesList>"

static void read_page(const uint8_t *data, size_t size)
{
	struct azure_page page;
	int r = azure_xml_page(data, size, &page);

	MUST(r == 0 || r == -EPROTO);
	MUST(page.n <= AZURE_PAGE_MAX && (r == 0 || (page.n == 0 && !page.items)));
	for (unsigned i = 0; i < page.n; i++) {
		const struct azure_message *m = &page.items[i];

		MUST(m->id && azure_is_id(m->id) && m->inserted_ns >= 0);
		MUST(m->text ? strlen(m->text) == m->text_len : m->text_len == 0);
	}
	azure_page_fini(&page);
}

static void read_error(const uint8_t *data, size_t size)
{
	struct azure_error_text e;

	memset(&e, '#', sizeof(e));
	azure_xml_error(data, size, &e);
	MUST(memchr(e.code, '\0', sizeof(e.code)) && fuzz_printable(e.code));
	MUST(memchr(e.message, '\0', sizeof(e.message)) && fuzz_printable(e.message));
	MUST(memchr(e.parameter, '\0', sizeof(e.parameter)));
	MUST(fuzz_printable(e.parameter));
}

/* What we put is what the next one gets. */
static void put_and_get(const uint8_t *data, size_t size)
{
	struct buf put = {0}, got = {0};
	struct azure_page page;
	int r = azure_xml_message(data, size, &put);

	MUST(r == 0 || r == -EILSEQ);
	if (r == 0) {
		MUST(put.len > strlen(MESSAGE));
		MUST(buf_addstr(&got, BEFORE) == 0);
		MUST(buf_addstr(&got, put.p + strlen(MESSAGE)) == 0);
		MUST(buf_addstr(&got, BEHIND) == 0);
		MUST(azure_xml_page(got.p, got.len, &page) == 0);
		MUST(page.n == 1 && page.items[0].text_len == size);
		MUST(size == 0 || memcmp(page.items[0].text, data, size) == 0);
		azure_page_fini(&page);
	}
	buf_fini(&put);
	buf_fini(&got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_page(data, size);
	read_error(data, size);
	put_and_get(data, size);
	return 0;
}
