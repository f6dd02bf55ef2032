/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "crowd.h"

void die(const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	va_start(ap, fmt);
	fputs("bench: ", stderr);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, ": %s\n", strerror(saved));
	_exit(1); /* a child must not flush what its parent printed */
}

int64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

size_t number(const char *text, size_t max)
{
	char *end;
	size_t n = strtoul(text, &end, 10);

	if (end == text || *end != '\0' || n < 1 || n > max) {
		errno = EINVAL;
		die("%s", text);
	}
	return n;
}

void print_us(const char *name, double ns)
{
	printf("%s %.2f\n", name, ns / 1000);
	fflush(stdout);
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

void print_spread(const char *name, int64_t *ns, size_t n)
{
	const struct {
		const char *name;
		size_t per_cent;
	} at[] = {{"p10", 10}, {"median", 50}, {"p90", 90}, {"p99", 99}};
	char line[64];

	qsort(ns, n, sizeof(*ns), by_value);
	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
		snprintf(line, sizeof(line), "%s_%s", name, at[i].name);
		print_us(line, (double)ns[n * at[i].per_cent / 100]);
	}
	snprintf(line, sizeof(line), "%s_max", name);
	print_us(line, (double)ns[n - 1]);
}

/* ---- crowd ------------------------------------------------------------------ */

/*
 * A person says by closing HERE that it is prepared, and begins when the other
 * end of GATE is closed.
 */
__attribute__((noreturn)) static void attend(
	const struct crowd *c, int who, const int gate[2], const int here[2])
{
	struct person p = {.who = who, .arg = c->arg};
	size_t people = (size_t)c->people;
	void *prepared;
	char byte;

	close(gate[1]);
	close(here[0]);
	p.part = c->n / people + ((size_t)who < c->n % people);
	prepared = c->prepare != NULL ? c->prepare(&p) : NULL;
	close(here[1]);
	if (read(gate[0], &byte, 1) != 0)
		die("gate");
	c->work(&p, prepared);
	_exit(0);
}

static void gather(const struct crowd *c, int gate[2])
{
	int here[2];
	char byte;

	if (pipe(gate) < 0 || pipe(here) < 0)
		die("pipe");
	for (int i = 0; i < c->people; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (pid == 0)
			attend(c, i, gate, here);
	}
	close(here[1]);
	if (read(here[0], &byte, 1) != 0)
		die("gathering");
	close(here[0]);
	close(gate[0]);
}

int64_t crowd_run(const struct crowd *c)
{
	int gate[2], status, failed = 0;
	int64_t start;

	gather(c, gate);
	start = now();
	close(gate[1]);
	for (int i = 0; i < c->people; i++) {
		if (wait(&status) < 0 || status != 0)
			failed++;
	}
	if (failed > 0) {
		fprintf(stderr, "bench: %d of %d processes failed\n", failed, c->people);
		exit(1);
	}
	return now() - start;
}
