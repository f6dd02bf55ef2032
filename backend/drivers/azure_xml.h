/* SPDX-License-Identifier: MIT */
/*
 * The XML of Azure Storage queues, read and written with expat. Pure.
 *
 * Both dialects are read: the service's (a byte order mark, <X />) and the
 * emulator's (<X/>). A document type is refused: it could define entities.
 *
 * Source: "Get Messages", "Put Message", "Status and error codes" (Microsoft).
 */
#ifndef SPOOLFS_DRIVERS_AZURE_XML_H
#define SPOOLFS_DRIVERS_AZURE_XML_H

#include <stdbool.h>
#include <stdint.h>

#include "../base/buf.h"

/* The most that one answer holds. */
#define AZURE_PAGE_MAX 32

/* A <QueueMessage>. What was not there is NULL, 0 or -1. */
struct azure_message {
	char *id;            /* always there, and only of what azure_is_id() takes */
	char *receipt;       /* not of a peek */
	char *text;          /* NUL-terminated; NULL after a put */
	size_t text_len;     /* without the NUL */
	int64_t inserted_ns; /* wall clock; always there */
	unsigned dequeued;
};

/* A <QueueMessagesList>. Zero-initialise. */
struct azure_page {
	struct azure_message *items;
	unsigned n;
};

/* An <Error>. What was not there is "". */
struct azure_error_text {
	char code[64];      /* "ServerBusy" */
	char message[128];  /* its first line, printable ASCII; cut */
	char parameter[32]; /* the query parameter it is about */
};

/* 0, -EPROTO (it is no such list) or -ENOMEM. On failure OUT is empty. */
int azure_xml_page(const void *xml, size_t len, struct azure_page *out);
void azure_page_fini(struct azure_page *p);
void azure_message_fini(struct azure_message *m);

/* Takes anything: what is no such document leaves OUT empty. */
void azure_xml_error(const void *xml, size_t len, struct azure_error_text *out);

/* The document that puts TEXT, appended to OUT. 0, -EILSEQ (XML 1.0 cannot carry
 * it, or it is no UTF-8) or -ENOMEM. */
int azure_xml_message(const void *text, size_t len, struct buf *out);

/* Whether ID can be a message's: letters, digits and dashes. */
bool azure_is_id(const char *id);

#endif
