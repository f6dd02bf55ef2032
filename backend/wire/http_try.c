/* SPDX-License-Identifier: MIT */
/*
 * One request as curl is told it, and its outcome as our callers are.
 *
 * curl sends a request again, over a fresh connection, when a kept one was
 * closed before a byte of an answer came. That cannot be turned off and is not
 * always harmless, so the beginnings of sending are counted and told.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "../base/clock.h"
#include "http_int.h"

#define MAX_BODY_DEFAULT ((size_t)1 << 20)
#define MAX_HEADERS      ((size_t)64 << 10)

/* ---- what curl calls --------------------------------------------------- */

/* Short of N, which ends the transfer, when there is no room. */
static size_t keep(struct http_try *t, struct buf *b, const void *data, size_t n)
{
	int r = buf_add(b, data, n);

	if (!r)
		return n;
	t->err = r == -EFBIG ? -EMSGSIZE : r;
	return 0;
}

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
	struct http_req *req = arg;

	(void)size; /* is 1 */
	return keep(req->try, &req->answer, data, n);
}

static size_t on_header(char *line, size_t size, size_t n, void *arg)
{
	struct http_req *req = arg;

	(void)size;
	/* A status line: what came before was an interim answer's. */
	if (n > 5 && memcmp(line, "HTTP/", 5) == 0)
		buf_clear(&req->answer_headers);
	return keep(req->try, &req->answer_headers, line, n);
}

static int on_sending(void *arg, char *to, char *from, int to_port, int from_port)
{
	struct http_req *req = arg;

	(void)to, (void)from, (void)to_port, (void)from_port;
	req->try->sendings++;
	return CURL_PREREQFUNC_OK;
}

/* Children that are started meanwhile do not inherit it. */
static curl_socket_t on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
	(void)arg, (void)purpose;
	return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

/* ---- setting up -------------------------------------------------------- */

static int refuse(struct http_req *req, int err, const char *why)
{
	req->err = err;
	(void)snprintf(req->detail, sizeof(req->detail), "%s", why);
	return err;
}

static int parse_url(struct http_req *req)
{
	struct http_try *t = req->try;
	CURLU *u = curl_url();
	CURLUcode rc = CURLUE_OUT_OF_MEMORY;

	if (!req->url.p || strlen(req->url.p) != req->url.len)
		rc = CURLUE_MALFORMED_INPUT;
	else if (u)
		rc = curl_url_set(u, CURLUPART_URL, req->url.p,
			CURLU_PATH_AS_IS | CURLU_DISALLOW_USER);
	if (!rc)
		rc = curl_url_get(u, CURLUPART_HOST, &t->host, 0);
	if (!rc)
		rc = curl_url_get(u, CURLUPART_PATH, &t->path, 0);
	curl_url_cleanup(u);
	if (!rc)
		return 0;
	return refuse(req, rc == CURLUE_OUT_OF_MEMORY ? -ENOMEM : -EINVAL,
		curl_url_strerror(rc));
}

static int add_header(struct http_try *t, const char *line)
{
	struct curl_slist *list = curl_slist_append(t->headers, line);

	if (!list)
		return -ENOMEM;
	t->headers = list;
	return 0;
}

/* A line that is not what it seems would put words into the request. */
static int add_line(struct http_req *req, const char *line, size_t n)
{
	char *copy;
	int r;

	if (memchr(line, '\0', n) || memchr(line, '\r', n) || !memchr(line, ':', n))
		return refuse(req, -EINVAL, "malformed request header");
	copy = strndup(line, n);
	r = copy ? add_header(req->try, copy) : -ENOMEM;
	free(copy);
	return r;
}

/* The caller's; and two of curl's own are never wanted: a type nobody stated,
 * and asking first, which costs a round trip. */
static int add_headers(struct http_req *req)
{
	const char *p = req->headers.p, *end = p ? p + req->headers.len : p;
	int r = 0;

	while (!r && p != end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t n = (size_t)((nl ? nl : end) - p);

		if (n)
			r = add_line(req, p, n);
		p += n + (nl != NULL);
	}
	if (!r)
		r = add_header(req->try, "Expect:");
	if (!r)
		r = add_header(req->try, "Content-Type:");
	return r;
}

/* Metadata services of the machine are on link-local addresses. */
static bool is_near(const char *host)
{
	const char *last = strrchr(host, '.');
	struct in_addr a;

	if (strcasecmp(last ? last + 1 : host, "localhost") == 0)
		return true;
	if (inet_pton(AF_INET, host, &a) == 1)
		return ntohl(a.s_addr) >> 24 == 127 || ntohl(a.s_addr) >> 16 == 0xa9fe;
	return strcmp(host, "[::1]") == 0 || strncasecmp(host, "[fe80:", 6) == 0;
}

static long ceil_div(int64_t ns, int64_t unit)
{
	int64_t n = ns / unit + (ns % unit > 0);

	return n < 1 ? 1 : n > INT_MAX ? INT_MAX : (long)n;
}

/* Keeps the first failure. */
#define SET(option, value)                                              \
	do {                                                            \
		if (!rc)                                                \
			rc = curl_easy_setopt(easy, (option), (value)); \
	} while (0)

static CURLcode set_limits(CURL *easy, const struct http_config *cfg)
{
	CURLcode rc = CURLE_OK;

	SET(CURLOPT_CONNECTTIMEOUT_MS, ceil_div(cfg->connect_timeout_ns, NS_PER_MS));
	SET(CURLOPT_TIMEOUT_MS, ceil_div(cfg->total_timeout_ns, NS_PER_MS));
	SET(CURLOPT_LOW_SPEED_LIMIT, 1L);
	SET(CURLOPT_LOW_SPEED_TIME, ceil_div(cfg->stall_timeout_ns, NS_PER_S));
	SET(CURLOPT_MAXAGE_CONN, (long)(cfg->idle_ns / NS_PER_S));
	SET(CURLOPT_NOSIGNAL, 1L);
	/* Else whoever gives up waits for the resolver's thread. */
	SET(CURLOPT_QUICK_EXIT, 1L);
	return rc;
}

static CURLcode set_trust(CURL *easy, const struct http_config *cfg)
{
	CURLcode rc = CURLE_OK;

	SET(CURLOPT_SSL_VERIFYPEER, 1L);
	SET(CURLOPT_SSL_VERIFYHOST, 2L);
	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (cfg->ca_file) {
		SET(CURLOPT_CAINFO, cfg->ca_file);
		SET(CURLOPT_CAPATH, NULL);
	}
	return rc;
}

static CURLcode set_callbacks(CURL *easy, struct http_req *req)
{
	CURLcode rc = CURLE_OK;

	SET(CURLOPT_PRIVATE, (char *)req);
	SET(CURLOPT_ERRORBUFFER, req->try->text);
	SET(CURLOPT_WRITEFUNCTION, on_body);
	SET(CURLOPT_WRITEDATA, req);
	SET(CURLOPT_HEADERFUNCTION, on_header);
	SET(CURLOPT_HEADERDATA, req);
	SET(CURLOPT_PREREQFUNCTION, on_sending);
	SET(CURLOPT_PREREQDATA, req);
	SET(CURLOPT_OPENSOCKETFUNCTION, on_open);
	SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	return rc;
}

/*
 * No PIPEWAIT: with it a burst would wait for the first connection, to find
 * out that most services speak HTTP/1.1 and one for each was right.
 */
static CURLcode set_target(CURL *easy, struct http_req *req)
{
	CURLcode rc = CURLE_OK;

	SET(CURLOPT_URL, req->url.p);
	/* As it was signed. */
	SET(CURLOPT_PATH_AS_IS, 1L);
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	if (is_near(req->try->host))
		SET(CURLOPT_PROXY, "");
	SET(CURLOPT_USERAGENT, "spoolfs/" SPOOLFS_VERSION);
	SET(CURLOPT_HTTPHEADER, req->try->headers);
	return rc;
}

/* A body, if only an empty one, is curl's POST, whatever it is called. */
static CURLcode set_method(CURL *easy, struct http_req *req)
{
	bool upload = req->body || strcmp(req->method, "PUT") == 0 ||
		      strcmp(req->method, "POST") == 0;
	CURLcode rc = CURLE_OK;

	if (upload) {
		size_t n = req->body ? req->body_len : 0;

		SET(CURLOPT_POST, 1L);
		SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)n);
		SET(CURLOPT_POSTFIELDS, n ? req->body : "");
	} else if (strcmp(req->method, "HEAD") == 0) {
		SET(CURLOPT_NOBODY, 1L);
		return rc;
	}
	SET(CURLOPT_CUSTOMREQUEST, req->method);
	return rc;
}

static CURLcode set_all(struct http_req *req, const struct http_config *cfg)
{
	CURL *easy = req->try->easy;
	CURLcode rc = set_limits(easy, cfg);

	if (!rc)
		rc = set_trust(easy, cfg);
	if (!rc)
		rc = set_callbacks(easy, req);
	if (!rc)
		rc = set_target(easy, req);
	return rc ? rc : set_method(easy, req);
}

static void clear_outputs(struct http_req *req)
{
	req->err = 0;
	req->in_doubt = req->resent = false;
	req->detail[0] = '\0';
	req->status = 0;
	req->took_ns = 0;
	buf_clear(&req->answer);
	buf_clear(&req->answer_headers);
	req->answer.max = req->max_body ? req->max_body : MAX_BODY_DEFAULT;
	req->answer_headers.max = MAX_HEADERS;
}

int http_try_create(struct http_req *req, const struct http_config *cfg)
{
	int r;

	clear_outputs(req);
	req->try = calloc(1, sizeof(*req->try));
	if (req->try)
		req->try->easy = curl_easy_init();
	if (!req->try || !req->try->easy)
		return refuse(req, -ENOMEM, strerrordesc_np(ENOMEM));
	r = parse_url(req);
	if (!r)
		r = add_headers(req);
	if (!r && set_all(req, cfg))
		r = -ENOMEM;
	return r == -ENOMEM ? refuse(req, r, strerrordesc_np(ENOMEM)) : r;
}

void http_try_destroy(struct http_try *t)
{
	if (!t)
		return;
	curl_easy_cleanup(t->easy);
	curl_slist_free_all(t->headers);
	curl_free(t->host);
	curl_free(t->path);
	free(t);
}

/* ---- the outcome ------------------------------------------------------- */

static int err_of_receiving(const struct http_try *t)
{
	/* curl has no code of its own for these. */
	return strstr(t->text, "chunked-encoding") ? -EPROTO : -EAGAIN;
}

static int err_of(const struct http_try *t, CURLcode code)
{
	switch (code) {
	case CURLE_OK:
		return 0;
	case CURLE_OUT_OF_MEMORY:
	case CURLE_FAILED_INIT:
		return -ENOMEM;
	case CURLE_UNSUPPORTED_PROTOCOL:
		/* Of the URL; or what came looked like HTTP/0.9. */
		return t->sendings ? -EPROTO : -EINVAL;
	case CURLE_URL_MALFORMAT:
		return -EINVAL;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CLIENTCERT:
	case CURLE_SSL_INVALIDCERTSTATUS:
	case CURLE_SSL_ISSUER_ERROR:
		return -EACCES;
	case CURLE_FILESIZE_EXCEEDED:
		return -EMSGSIZE;
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_BAD_CONTENT_ENCODING:
		return -EPROTO;
	case CURLE_RECV_ERROR:
		return err_of_receiving(t);
	default:
		return -EAGAIN;
	}
}

/* curl's own words may quote an URL: the request's with its query, a proxy's with
 * its password. The words for the code never do. */
static const char *words(const struct http_try *t, CURLcode code)
{
	bool quotes = strpbrk(t->text, "?@") || strstr(t->text, "://");

	if (t->err)
		return strerrordesc_np(-t->err);
	return t->text[0] && !quotes ? t->text : curl_easy_strerror(code);
}

static void describe(struct http_req *req, CURLcode code)
{
	const struct http_try *t = req->try;
	const char *text = words(t, code);

	if (strstr(text, t->host))
		(void)snprintf(req->detail, sizeof(req->detail), "%.159s", text);
	else
		(void)snprintf(
			req->detail, sizeof(req->detail), "%.60s: %.90s", t->host, text);
	for (char *p = req->detail; *p; p++) {
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = ' ';
	}
}

void http_try_result(struct http_req *req, CURLcode code)
{
	struct http_try *t = req->try;
	curl_off_t us = 0;
	long status = 0, sent = 0;

	(void)curl_easy_getinfo(t->easy, CURLINFO_TOTAL_TIME_T, &us);
	(void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	/* Counts a proxy's CONNECT too, so it does not do alone. */
	(void)curl_easy_getinfo(t->easy, CURLINFO_REQUEST_SIZE, &sent);
	req->took_ns = us * NS_PER_US;
	req->status = (int)status;
	req->resent = t->sendings > 1;
	req->err = t->err ? t->err : err_of(t, code);
	if (!req->err)
		return;
	req->in_doubt = t->sendings && sent > 0;
	describe(req, code);
}
