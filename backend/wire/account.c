/* SPDX-License-Identifier: MIT */
/*
 * Credentials change under our feet: tokens are renewed, files are replaced, a
 * signature runs out. So nothing of them is kept in a request: each try of one is
 * prepared anew, with what is good then. What cannot be read when it was changed
 * leaves the credentials of before in use, since they may be good still.
 */
#include "account.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "../base/clock.h"
#include "../base/log.h"
#include "../base/loop.h"
#include "account_creds.h"
#include "account_expiry.h"
#include "account_file.h"
#include "account_int.h"
#include "token.h"

/* Of refused requests, which may be many, only one in so long looks at the file. */
#define LOOK_NS NS_PER_S
/* The Date header has whole seconds and was on its way. */
#define SKEW_NS (2 * NS_PER_S)
/* Of that much a service may have refused. */
#define REFUSED_SKEW_NS (60 * NS_PER_S)
/* In 2100 or so; further away no clock is, and sums with it would overflow. */
#define DATE_MAX_NS (CLOCK_NEVER / 9 * 4)

static void tell(void *arg)
{
	struct account *a = arg;

	if (a->changed)
		a->changed(a->arg);
}

static void has_news(void *arg)
{
	struct account *a = arg;

	loop_task_queue(a->loop, &a->news);
}

/* ---- what there is ---------------------------------------------------------- */

static int load_file(struct account *a, struct creds *c, unsigned char digest[32],
	char *err, size_t err_len)
{
	struct buf text = {0};
	char why[160];
	int r = account_file_read(a->path, ACCOUNT_FILE_SECRET, &text, err, err_len);

	if (r < 0)
		return r;
	SHA256((const unsigned char *)text.p, text.len, digest);
	r = creds_from_text(c, text.p, text.len, why, sizeof(why));
	if (r < 0)
		snprintf(err, err_len, "%s: %s", a->path, why);
	account_buf_wipe(&text);
	return r;
}

static int check_name(
	const struct account *a, const struct creds *c, char *err, size_t err_len)
{
	if (!a->name && !c->name) {
		snprintf(err, err_len,
			"nothing names the account: AZURE_STORAGE_ACCOUNT is not set");
		return -EINVAL;
	}
	if (!a->name || !c->name || strcasecmp(a->name, c->name) == 0)
		return 0;
	snprintf(err, err_len, "the credentials are those of account %s, not of %s",
		c->name, a->name);
	return -EINVAL;
}

static int load(struct account *a, struct creds *c, unsigned char digest[32], char *err,
	size_t err_len)
{
	int r = a->path ? load_file(a, c, digest, err, err_len)
			: creds_from_env(c, err, err_len);

	if (r == 0)
		r = check_name(a, c, err, err_len);
	if (r < 0)
		creds_fini(c);
	return r;
}

static struct token *token_for(struct account *a, const struct creds *c)
{
	static const enum token_kind kinds[] = {
		[CREDS_SECRET] = TOKEN_SECRET,
		[CREDS_FEDERATED] = TOKEN_FEDERATED,
		[CREDS_ENDPOINT] = TOKEN_ENDPOINT,
		[CREDS_IMDS] = TOKEN_IMDS,
	};

	return token_create(&(struct token_params){
		.loop = a->loop,
		.http = a->http,
		.kind = kinds[c->kind],
		.authority = c->authority,
		.tenant = c->tenant,
		.client = c->client,
		.secret = c->secret,
		.file = c->file,
		.header = c->header,
		.changed = has_news,
		.arg = a,
	});
}

/* Speaks of the end of the SAS when it is time, and sets the timer. */
static void look_at_expiry(void *arg)
{
	struct account *a = arg;
	int64_t now = account_now_ns(a), next;
	enum expiry_news news = expiry_look(&a->expiry, now, &next);
	long long minutes = (long long)((a->expiry.end_ns - now) / (60 * NS_PER_S));

	if (news == EXPIRY_NEAR)
		log_warn("account", "the SAS ends soon account=%s minutes=%lld", a->name,
			minutes);
	else if (news == EXPIRY_ENDED)
		log_error("account", "the SAS has ended account=%s", a->name);
	loop_timer_set(a->loop, &a->expiry_timer,
		next == CLOCK_NEVER ? CLOCK_NEVER : clock_add(clock_mono(), next - now));
}

/* Takes over *C, in any case. */
static int adopt(struct account *a, struct creds *c)
{
	bool by_token = c->kind != CREDS_KEY && c->kind != CREDS_SAS;
	struct token *token = by_token ? token_for(a, c) : NULL;

	if (!a->name)
		a->name = strdup(c->name);
	if ((by_token && !token) || !a->name) {
		token_destroy(token);
		creds_fini(c);
		return -ENOMEM;
	}
	token_destroy(a->token);
	creds_fini(&a->creds);
	a->token = token;
	a->creds = *c;
	*c = (struct creds){0};
	a->expiry = (struct expiry){.end_ns = -1};
	if (a->creds.kind == CREDS_SAS) {
		a->expiry.end_ns = a->creds.sas_expires_ns;
		a->expiry.begin_ns = a->creds.sas_start_ns >= 0 ? a->creds.sas_start_ns
								: account_now_ns(a);
	}
	look_at_expiry(a);
	return 0;
}

/* The file may have been changed. */
static void reload(void *arg)
{
	struct account *a = arg;
	unsigned char digest[SHA256_DIGEST_LENGTH];
	struct creds c = {0};
	char err[HTTP_DETAIL + 64];
	int r = load(a, &c, digest, err, sizeof(err));

	if (r == 0 && memcmp(digest, a->digest, sizeof(digest)) == 0) {
		creds_fini(&c);
		a->bad_file = false;
		return;
	}
	if (r == 0)
		r = adopt(a, &c);
	else if (!a->bad_file)
		log_warn("account", "the credentials of before stay in use: %s", err);
	a->bad_file = r < 0;
	if (r < 0)
		return;
	memcpy(a->digest, digest, sizeof(digest));
	log_info("account", "new credentials account=%s kind=\"%s\"", a->name,
		account_kind(a));
	has_news(a);
}

/* ---- life ------------------------------------------------------------------- */

/* The daemon may go to another directory. */
static char *absolute(const char *path)
{
	char *dir, *whole = NULL;

	if (*path == '/')
		return strdup(path);
	dir = getcwd(NULL, 0);
	if (dir && asprintf(&whole, "%s/%s", dir, path) < 0)
		whole = NULL;
	free(dir);
	return whole;
}

static int start(
	struct account *a, const struct account_params *p, char *err, size_t err_len)
{
	struct creds c = {0};
	int r;

	if (p->name)
		a->name = strdup(p->name);
	if (p->credentials)
		a->path = absolute(p->credentials);
	snprintf(err, err_len, "out of memory");
	if ((p->name && !a->name) || (p->credentials && !a->path))
		return -ENOMEM;
	r = load(a, &c, a->digest, err, err_len);
	if (r == 0)
		r = adopt(a, &c);
	if (r < 0 || !a->path)
		return r;
	r = account_watch_start(&a->watch, a->loop, a->path, reload, a);
	if (r < 0)
		log_warn(
			"account", "%s is not watched: %s", a->path, strerrordesc_np(-r));
	return 0;
}

int account_open(
	const struct account_params *p, struct account **out, char *err, size_t err_len)
{
	struct account *a = calloc(1, sizeof(*a));
	int r;

	*out = NULL;
	if (!a) {
		snprintf(err, err_len, "out of memory");
		return -ENOMEM;
	}
	a->loop = p->loop;
	a->http = p->http;
	a->changed = p->changed;
	a->arg = p->arg;
	loop_task_init(&a->news, tell, a);
	loop_timer_init(&a->expiry_timer, look_at_expiry, a);
	r = start(a, p, err, err_len);
	if (r < 0) {
		account_close(a);
		return r;
	}
	log_debug("account", "account=%s kind=\"%s\"", a->name, account_kind(a));
	*out = a;
	return 0;
}

void account_close(struct account *a)
{
	if (!a)
		return;
	account_watch_stop(&a->watch);
	token_destroy(a->token);
	loop_timer_clear(a->loop, &a->expiry_timer);
	loop_task_cancel(a->loop, &a->news);
	creds_fini(&a->creds);
	free(a->name);
	free(a->path);
	free(a);
}

const char *account_name(const struct account *a)
{
	return a->name;
}

const char *account_kind(const struct account *a)
{
	return a->creds.label;
}

int64_t account_now_ns(const struct account *a)
{
	return clock_wall() + a->offset_ns;
}

/* ---- answers ---------------------------------------------------------------- */

/* Whether the service's clock was found to be quite another than we took it for. */
static bool learn_date(struct account *a, const struct http_req *req)
{
	int64_t date = http_date_ns(req), change;

	if (date < 0 || date > DATE_MAX_NS)
		return false;
	change = date - account_now_ns(a);
	if (change >= -SKEW_NS && change <= SKEW_NS)
		return false;
	a->offset_ns += change;
	if (!a->skew_told)
		log_warn("account",
			"the service's clock is another one, and is used "
			"offset_s=%lld",
			(long long)(a->offset_ns / NS_PER_S));
	a->skew_told = true;
	look_at_expiry(a);
	return change > REFUSED_SKEW_NS || change < -REFUSED_SKEW_NS;
}

void account_answered(struct account *a, const struct http_req *req)
{
	bool refused = req->status == 401 || req->status == 403;
	bool skewed;

	if (req->err)
		return;
	skewed = learn_date(a, req);
	if (refused && skewed)
		has_news(a);
	if (refused && a->token)
		token_refused(a->token);
	if (!refused || !a->path || clock_mono() < a->look_ns)
		return;
	a->look_ns = clock_add(clock_mono(), LOOK_NS);
	reload(a);
}
