/* SPDX-License-Identifier: MIT */
/* An account, the environment it is opened in, and who answers: what tests of
 * accounts share. The clocks stand still. */
#ifndef SPOOLFS_TESTS_UNIT_ACCOUNT_BED_H
#define SPOOLFS_TESTS_UNIT_ACCOUNT_BED_H

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/wire/account.h"
#include "http_bed.h"
#include "log_file.h"

/* When the signatures of the tests were made. */
#define DATE    "Fri, 20 Nov 2026 04:17:41 GMT"
#define WALL_NS (1795148261 * NS_PER_S)

#define EMULATOR_KEY \
	"Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

struct account_bed {
	struct bed b;
	struct account_params p;
	struct account *account;
	struct http_req req;
	char err[300];
	char file[64], origin[64], text[512];
	unsigned changes;
	struct log_file log;
};

static inline void on_change(void *arg)
{
	((struct account_bed *)arg)->changes++;
}

/* Only these are set, as NAME=VALUE. */
static inline void set_env(const char *const *vars)
{
	static const char *const all[] = {"AZURE_STORAGE_CONNECTION_STRING",
		"AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT",
		"AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE",
		"AZURE_CLIENT_SECRET", "AZURE_AUTHORITY_HOST", "IDENTITY_ENDPOINT",
		"IDENTITY_HEADER", "AZURE_POD_IDENTITY_AUTHORITY_HOST"};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		unsetenv(all[i]);
	for (; *vars; vars += 2)
		CHECK_INT(setenv(vars[0], vars[1], 1), 0);
}

#define ENV(...) set_env((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static inline void setup(struct account_bed *ab)
{
	*ab = (struct account_bed){.file = "/tmp/spoolfs-account-XXXXXX"};
	ENV();
	clock_fake(1000 * NS_PER_S, WALL_NS);
	bed_setup(&ab->b);
	log_file_start(&ab->log);
	CHECK(mkdtemp(ab->file));
	strcat(ab->file, "/f");
	snprintf(
		ab->origin, sizeof(ab->origin), "http://127.0.0.1:%d", ab->b.server.port);
	ab->p = (struct account_params){
		.loop = ab->b.loop,
		.http = ab->b.http,
		.changed = on_change,
		.arg = ab,
	};
}

static inline void teardown(struct account_bed *ab)
{
	account_close(ab->account);
	http_req_fini(&ab->req);
	unlink(ab->file);
	*strrchr(ab->file, '/') = '\0';
	CHECK_INT(rmdir(ab->file), 0);
	/* Each secret of these tests has this in it, or is the emulator's. */
	CHECK_INT(log_file_count(&ab->log, "qqq"), 0);
	CHECK_INT(log_file_count(&ab->log, "Eby8"), 0);
	CHECK_INT(log_file_count(&ab->log, "SharedKey"), 0);
	CHECK_INT(log_file_count(&ab->log, "Bearer"), 0);
	log_file_stop(&ab->log);
	bed_teardown(&ab->b);
}

static inline int open_account(struct account_bed *ab)
{
	int r = account_open(&ab->p, &ab->account, ab->err, sizeof(ab->err));

	CHECK_INT(r < 0, ab->account == NULL);
	CHECK(!strstr(ab->err, "qqq"));
	return r;
}

static inline void put_file(struct account_bed *ab, const char *text, mode_t mode)
{
	int fd = open(ab->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	CHECK_INT(fchmod(fd, mode), 0);
	CHECK_INT(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* What is at hand is done; nothing that needs an answer from elsewhere. */
static inline void settle(struct account_bed *ab)
{
	for (int i = 0; i < 10; i++)
		CHECK_INT(loop_once(ab->b.loop, 0), 0);
}

/* Making the queue "jobs" of the emulator's account. */
static inline int prepare(struct account_bed *ab)
{
	static const struct sign_param headers[] = {{"x-ms-meta-owner", "qfs"}};
	const struct account_call call = {
		.method = "PUT",
		.origin = ab->origin,
		.path = "/devstoreaccount1/jobs",
		.headers = headers,
		.n_headers = 1,
	};

	return account_prepare(ab->account, &call, &ab->req);
}

/* An answer with this Date. */
static inline void show(struct account_bed *ab, int status, const char *date)
{
	struct http_req req = {.status = status};

	CHECK_INT(buf_printf(&req.answer_headers, "Date: %s\r\n", date), 0);
	account_answered(ab->account, &req);
	http_req_fini(&req);
}

#endif
