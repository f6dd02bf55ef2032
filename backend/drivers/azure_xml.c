/* SPDX-License-Identifier: MIT */
#include "azure_xml.h"

#include <errno.h>
#include <expat.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../wire/sign.h"

/* Deeper than any document there is. */
#define DEPTH_MAX 8
/* A full page of the longest texts, each character written as a reference. */
#define TEXT_MAX ((size_t)1 << 20)

/* One parse under way. */
struct reader {
	XML_Parser parser;
	unsigned depth;
	struct buf text; /* of the innermost element */
	int err;         /* why the parser was stopped */
	/* An element ended, DEPTH elements around it. */
	void (*element)(struct reader *r, const char *name, unsigned depth);
	void (*begun)(struct reader *r, const char *name, unsigned depth);
	struct azure_page *page;
	struct azure_error_text *error;
};

static void stop(struct reader *r, int err)
{
	if (!r->err)
		r->err = err;
	(void)XML_StopParser(r->parser, XML_FALSE);
}

static void XMLCALL on_start(void *arg, const char *name, const char **attributes)
{
	struct reader *r = arg;

	(void)attributes;
	buf_clear(&r->text);
	if (r->depth >= DEPTH_MAX)
		stop(r, -EPROTO);
	else if (r->begun)
		r->begun(r, name, r->depth);
	r->depth++;
}

static void XMLCALL on_end(void *arg, const char *name)
{
	struct reader *r = arg;

	r->depth--;
	if (!r->err && r->element)
		r->element(r, name, r->depth);
	buf_clear(&r->text);
}

static void XMLCALL on_text(void *arg, const char *text, int len)
{
	struct reader *r = arg;
	int err = buf_add(&r->text, text, (size_t)len);

	if (err)
		stop(r, err == -EFBIG ? -EPROTO : err);
}

static void XMLCALL on_doctype(
	void *arg, const char *name, const char *system, const char *public, int internal)
{
	(void)name;
	(void)system;
	(void)public;
	(void)internal;
	stop(arg, -EPROTO);
}

/* 0, -EPROTO or -ENOMEM. */
static int parse(struct reader *r, const void *xml, size_t len)
{
	enum XML_Status ok;

	if (len > INT_MAX)
		return -EPROTO;
	r->text.max = TEXT_MAX;
	r->parser = XML_ParserCreate("UTF-8");
	if (!r->parser)
		return -ENOMEM;
	XML_SetUserData(r->parser, r);
	XML_SetElementHandler(r->parser, on_start, on_end);
	XML_SetCharacterDataHandler(r->parser, on_text);
	XML_SetStartDoctypeDeclHandler(r->parser, on_doctype);
	ok = XML_Parse(r->parser, xml, (int)len, XML_TRUE);
	if (ok != XML_STATUS_OK && !r->err)
		r->err = XML_GetErrorCode(r->parser) == XML_ERROR_NO_MEMORY ? -ENOMEM
									    : -EPROTO;
	XML_ParserFree(r->parser);
	buf_fini(&r->text);
	return r->err;
}

/* ---- a page of messages ---- */

bool azure_is_id(const char *id)
{
	size_t len = strspn(id, "0123456789-"
				"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				"abcdefghijklmnopqrstuvwxyz");

	return len > 0 && len < 64 && !id[len];
}

/* The text of the element into *TO, once. */
static void keep(struct reader *r, char **to, size_t *len)
{
	if (*to) {
		stop(r, -EPROTO);
		return;
	}
	*to = buf_take(&r->text, len);
	if (!*to)
		stop(r, -ENOMEM);
}

static void keep_count(struct reader *r, unsigned *out)
{
	const char *text = r->text.p ? r->text.p : "";
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (end == text || *end || errno || n > UINT_MAX)
		stop(r, -EPROTO);
	*out = (unsigned)n;
}

static void message_field(struct reader *r, struct azure_message *m, const char *name)
{
	if (strcmp(name, "MessageId") == 0)
		keep(r, &m->id, NULL);
	else if (strcmp(name, "PopReceipt") == 0)
		keep(r, &m->receipt, NULL);
	else if (strcmp(name, "MessageText") == 0)
		keep(r, &m->text, &m->text_len);
	else if (strcmp(name, "InsertionTime") == 0)
		m->inserted_ns = sign_date_parse(r->text.p ? r->text.p : "");
	else if (strcmp(name, "DequeueCount") == 0)
		keep_count(r, &m->dequeued);
}

static void page_add(struct reader *r)
{
	struct azure_page *p = r->page;

	if (!p->items)
		p->items = calloc(AZURE_PAGE_MAX, sizeof(*p->items));
	if (!p->items || p->n == AZURE_PAGE_MAX) {
		stop(r, p->items ? -EPROTO : -ENOMEM);
		return;
	}
	p->items[p->n++].inserted_ns = -1;
}

static void page_begun(struct reader *r, const char *name, unsigned depth)
{
	if (depth == 0 && strcmp(name, "QueueMessagesList") != 0)
		stop(r, -EPROTO);
	if (depth == 1 && strcmp(name, "QueueMessage") != 0)
		stop(r, -EPROTO);
	if (depth == 1 && !r->err)
		page_add(r);
}

static void page_element(struct reader *r, const char *name, unsigned depth)
{
	struct azure_message *m = r->page->n ? &r->page->items[r->page->n - 1] : NULL;

	if (depth == 2)
		message_field(r, m, name);
	if (depth == 1 && (!m->id || !azure_is_id(m->id) || m->inserted_ns < 0))
		stop(r, -EPROTO);
}

int azure_xml_page(const void *xml, size_t len, struct azure_page *out)
{
	struct reader r = {.begun = page_begun, .element = page_element, .page = out};
	int err;

	*out = (struct azure_page){0};
	err = parse(&r, xml, len);
	if (err)
		azure_page_fini(out);
	return err;
}

void azure_message_fini(struct azure_message *m)
{
	free(m->id);
	free(m->receipt);
	free(m->text);
	*m = (struct azure_message){0};
}

void azure_page_fini(struct azure_page *p)
{
	for (unsigned i = 0; i < p->n; i++)
		azure_message_fini(&p->items[i]);
	free(p->items);
	*p = (struct azure_page){0};
}

/* ---- an error ---- */

/* The first line of the element's text; it goes to logs. */
static void first_line(const struct reader *r, char *out, size_t len)
{
	size_t n = 0;

	for (const char *p = r->text.p; p && *p && *p != '\n' && n + 1 < len; p++)
		out[n++] = *p >= ' ' && *p <= '~' ? *p : '?';
	out[n] = '\0';
}

static void error_element(struct reader *r, const char *name, unsigned depth)
{
	if (depth != 1)
		return;
	if (strcmp(name, "Code") == 0)
		first_line(r, r->error->code, sizeof(r->error->code));
	else if (strcmp(name, "Message") == 0)
		first_line(r, r->error->message, sizeof(r->error->message));
	else if (strcmp(name, "QueryParameterName") == 0)
		first_line(r, r->error->parameter, sizeof(r->error->parameter));
}

static void error_begun(struct reader *r, const char *name, unsigned depth)
{
	if (depth == 0 && strcmp(name, "Error") != 0)
		stop(r, -EPROTO);
}

void azure_xml_error(const void *xml, size_t len, struct azure_error_text *out)
{
	struct reader r = {.begun = error_begun, .element = error_element, .error = out};

	*out = (struct azure_error_text){0};
	if (parse(&r, xml, len) < 0)
		*out = (struct azure_error_text){0};
}

/* ---- a message to put ---- */

static const char *reference(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '\r': /* as it is, it would be read as a line feed */
		return "&#xD;";
	default:
		return NULL;
	}
}

static int add_escaped(const char *text, size_t len, struct buf *out)
{
	size_t from = 0;
	int r = 0;

	for (size_t i = 0; i < len && r == 0; i++) {
		const char *ref = reference(text[i]);

		if (!ref)
			continue;
		r = buf_add(out, text + from, i - from);
		if (r == 0)
			r = buf_addstr(out, ref);
		from = i + 1;
	}
	return r ? r : buf_add(out, text + from, len - from);
}

/* Whether it can be carried, expat says: what it does not read, nobody does. */
int azure_xml_message(const void *text, size_t len, struct buf *out)
{
	struct reader r = {0};
	size_t begin = out->len;
	int err;

	err = buf_addstr(out, "<QueueMessage><MessageText>");
	if (err == 0)
		err = add_escaped(text, len, out);
	if (err == 0)
		err = buf_addstr(out, "</MessageText></QueueMessage>");
	if (err)
		return -ENOMEM;
	err = parse(&r, out->p + begin, out->len - begin);
	return err == -EPROTO ? -EILSEQ : err;
}
