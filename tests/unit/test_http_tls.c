/* SPDX-License-Identifier: MIT */
/* Whom the client believes: openssl(1) makes certificates and is the server. */
#include "backend/wire/http.h"

#include "children.h"
#include "http_bed.h"

#define MAKE_KEY                                                               \
	"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes" \
	" -days 2 -addext basicConstraints=critical,CA:"

/* An authority, a certificate of its for 127.0.0.1, and another authority. */
static const char make_certificates[] =
	"cd '%s' && exec >log 2>&1 && " MAKE_KEY
	"TRUE -subj /CN=one -keyout ca.key -out ca.pem && " MAKE_KEY
	"TRUE -subj /CN=two -keyout other.key -out other.pem && " MAKE_KEY
	"FALSE -subj /CN=server -addext subjectAltName=IP:127.0.0.1"
	" -CA ca.pem -CAkey ca.key -keyout server.key -out server.pem";

struct tls {
	struct bed bed;
	char dir[32];
	char ca[64];
	struct child server;
	FILE *said;
	int port;
};

/* Set before the child is made: it takes no argument. */
static const char *server_dir;

static void be_server(int in, int out)
{
	(void)in;
	if (chdir(server_dir) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
		!freopen("server.log", "w", stderr))
		_exit(97);
	(void)execlp("openssl", "openssl", "s_server", "-www", "-accept", "127.0.0.1:0",
		"-cert", "server.pem", "-key", "server.key", NULL);
	_exit(96);
}

static void start_server(struct tls *t)
{
	char line[128];

	server_dir = t->dir;
	t->server = spawn(be_server);
	t->said = fdopen(t->server.from, "r");
	CHECK(t->said);
	while (!t->port) {
		CHECK(fgets(line, sizeof(line), t->said));
		(void)sscanf(line, "ACCEPT 127.0.0.1:%d", &t->port);
	}
}

static void run_in(const char *dir, const char *format)
{
	char command[1024];

	(void)snprintf(command, sizeof(command), format, dir);
	CHECK_INT(system(command), 0);
}

static void setup(struct tls *t)
{
	*t = (struct tls){.dir = "/tmp/spoolfs-tls.XXXXXX"};
	CHECK(mkdtemp(t->dir));
	run_in(t->dir, make_certificates);
	bed_setup(&t->bed);
	start_server(t);
}

static void teardown(struct tls *t)
{
	CHECK_INT(kill(t->server.pid, SIGKILL), 0);
	CHECK_INT(waitpid(t->server.pid, NULL, 0), t->server.pid);
	close(t->server.to);
	fclose(t->said);
	bed_teardown(&t->bed);
	run_in(t->dir, "rm -r '%s'");
}

/* NULL: the system's, which know nothing of ours. */
static const struct http_req *get(struct tls *t, const char *host, const char *ca_file)
{
	struct http_req *req = &t->bed.reqs[0];

	(void)snprintf(t->ca, sizeof(t->ca), "%s/%s", t->dir, ca_file ? ca_file : "");
	t->bed.cfg.ca_file = ca_file ? t->ca : NULL;
	bed_reconfigure(&t->bed);
	buf_clear(&req->url);
	buf_printf(&req->url, "https://%s:%d/?%s", host, t->port, BED_QUERY);
	return bed_run(&t->bed, 0, "GET");
}

static void check_refused(const struct http_req *req)
{
	bed_check(req, -EACCES, 0);
	CHECK(!req->in_doubt);
}

TEST(certificate_of_a_known_authority_is_trusted)
{
	struct tls t;

	setup(&t);
	bed_check(get(&t, "127.0.0.1", "ca.pem"), 0, 200);
	CHECK(t.bed.reqs[0].answer.len > 0);
	teardown(&t);
}

TEST(other_certificates_are_refused)
{
	struct tls t;

	setup(&t);
	check_refused(get(&t, "127.0.0.1", NULL));
	check_refused(get(&t, "127.0.0.1", "other.pem"));
	check_refused(get(&t, "127.0.0.1", "missing.pem"));
	/* It is for another name. */
	check_refused(get(&t, "localhost", "ca.pem"));
	teardown(&t);
}

TEST(server_without_tls_is_no_server)
{
	struct bed b;

	bed_setup(&b);
	buf_printf(&b.reqs[0].url, "https://127.0.0.1:%d/", b.server.port);
	bed_submit(&b, 0, "GET");
	AWAIT(&b, b.server.accepted);
	hs_close(TAILQ_FIRST(&b.server.conns), hs_hello);
	AWAIT(&b, b.done);
	bed_check(&b.reqs[0], -EAGAIN, 0);
	CHECK(!b.reqs[0].in_doubt);
	bed_teardown(&b);
}
