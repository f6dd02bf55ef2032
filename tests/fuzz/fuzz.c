/* SPDX-License-Identifier: MIT */
/*
 * The slice of a fuzz target that every run of the tests can have: its seeds as
 * they are, then mutations of them. The same numbers each time, so what fails
 * once fails always. Output is that of tests/test.h. When the target gives up,
 * the input is printed in hexadecimal: `xxd -r -p` makes a seed of it.
 *
 *	FUZZ_CORPUS     directory of the corpora (tests/fuzz/corpus)
 *	FUZZ_MUTATIONS  how many (20000)
 */
#include "fuzz.h"

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

#define INPUT_MAX 4096
#define SEEDS_MAX 256
#define PATIENCE  60

struct seed {
	uint8_t *data;
	size_t size;
};

static struct seed seeds[SEEDS_MAX];
static unsigned n_seeds;
/* What the target has now; for the handler of signals. */
static uint8_t input[INPUT_MAX];
static size_t input_size;
static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

/* A sanitizer is to end by a signal, so that we hear of it. */
const char *__asan_default_options(void);
const char *__ubsan_default_options(void);

const char *__asan_default_options(void)
{
	return "abort_on_error=1";
}

const char *__ubsan_default_options(void)
{
	return "abort_on_error=1:print_stacktrace=1";
}

/* xorshift64: good enough, and the same everywhere. */
static size_t below(size_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (size_t)(state % n);
}

static void died(int signal)
{
	static const char digits[] = "0123456789abcdef";
	char hex[2 * INPUT_MAX + 1];
	size_t n = 0;

	for (size_t i = 0; i < input_size; i++) {
		hex[n++] = digits[input[i] >> 4];
		hex[n++] = digits[input[i] & 15];
	}
	hex[n++] = '\n';
	(void)!write(STDERR_FILENO, hex, n);
	(void)raise(signal); /* SA_RESETHAND: now it ends us */
}

static void watch(void)
{
	static const int signals[] = {SIGABRT, SIGALRM, SIGBUS, SIGFPE, SIGILL, SIGSEGV};
	struct sigaction act = {.sa_handler = died, .sa_flags = (int)SA_RESETHAND};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)sigaction(signals[i], &act, NULL);
}

static void feed(void)
{
	(void)alarm(PATIENCE);
	(void)LLVMFuzzerTestOneInput(input, input_size);
}

/* ---- mutations -------------------------------------------------------------- */

static void replace(size_t at, size_t cut, const uint8_t *with, size_t n)
{
	size_t rest = input_size - at - cut;

	if (at + n + rest > INPUT_MAX)
		return;
	memmove(input + at + n, input + at + cut, rest);
	memmove(input + at, with, n);
	input_size = at + n + rest;
}

/* Where text formats have their edges. */
static void put_edge(size_t at)
{
	static const char edges[] = "\0\n\r\t %&<>/\\.-_~:;,='\"\x01\x7f\x80\xc2\xff"
				    "09aAfFzZT*{}[]";
	uint8_t c = (uint8_t)edges[below(sizeof(edges) - 1)];

	replace(at, below(2) && at < input_size, &c, 1);
}

/* A stretch of this input or of another, in place of a stretch or between. */
static void splice(size_t at)
{
	const struct seed *s = &seeds[below(n_seeds)];
	uint8_t piece[INPUT_MAX];
	size_t from = below(s->size + 1);
	size_t n = below(s->size - from + 1);

	memcpy(piece, s->data + from, n);
	replace(at, below(2) ? below(input_size - at + 1) : 0, piece, n);
}

static void repeat(size_t at)
{
	uint8_t piece[64];
	size_t n = below(input_size - at + 1) % sizeof(piece);

	memcpy(piece, input + at, n);
	for (size_t times = below(40); times > 0; times--)
		replace(at, 0, piece, n);
}

static void mutate(void)
{
	for (size_t times = 1 + below(4); times > 0; times--) {
		size_t at = below(input_size + 1);

		switch (below(6)) {
		case 0:
			if (at < input_size)
				input[at] ^= (uint8_t)(1u << below(8));
			break;
		case 1:
			replace(at, below(input_size - at + 1), input, 0);
			break;
		case 2:
			splice(at);
			break;
		case 3:
			repeat(at);
			break;
		default:
			put_edge(at);
		}
	}
}

/* ---- seeds ------------------------------------------------------------------ */

static void take_seed(const char *dir, const char *name)
{
	struct seed *s = &seeds[n_seeds];
	char path[4096 + NAME_MAX + 2];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "r");
	MUST(f && n_seeds < SEEDS_MAX);
	s->data = malloc(INPUT_MAX);
	MUST(s->data);
	s->size = fread(s->data, 1, INPUT_MAX, f);
	n_seeds++;
	fclose(f);
}

static int visible(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static void take_seeds(const char *dir)
{
	struct dirent **names;
	int n = scandir(dir, &names, visible, alphasort);

	for (int i = 0; i < n; i++) {
		take_seed(dir, names[i]->d_name);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
}

static void begin_with(const struct seed *s)
{
	memcpy(input, s->data, s->size);
	input_size = s->size;
}

static unsigned long mutations(void)
{
	const char *text = getenv("FUZZ_MUTATIONS");

	return text ? strtoul(text, NULL, 10) : 20000;
}

int main(int argc, char **argv)
{
	const char *root = getenv("FUZZ_CORPUS"), *slash = strrchr(argv[0], '/');
	const char *name = slash ? slash + 1 : argv[0];
	unsigned long n = mutations();
	char dir[4096];

	(void)argc;
	(void)snprintf(
		dir, sizeof(dir), "%s/%s", root ? root : "tests/fuzz/corpus", name);
	take_seeds(dir);
	if (n_seeds == 0) {
		printf("not ok 1 - %s: no seeds in %s\n1..1\n0 passed, 1 failed\n", name,
			dir);
		return 1;
	}
	watch();
	for (unsigned i = 0; i < n_seeds; i++) {
		begin_with(&seeds[i]);
		feed();
	}
	printf("ok 1 - %s: %u seeds\n", name, n_seeds);
	for (unsigned long i = 0; i < n; i++) {
		begin_with(&seeds[below(n_seeds)]);
		mutate();
		feed();
	}
	printf("ok 2 - %s: %lu mutations\n1..2\n2 passed, 0 failed\n", name, n);
	for (unsigned i = 0; i < n_seeds; i++)
		free(seeds[i].data);
	return 0;
}
