/* SPDX-License-Identifier: MIT */
#include "histogram.h"

#include "../base/clock.h"

static const struct {
	int64_t ns;
	const char *le;
} bounds[HISTOGRAM_BUCKETS] = {
	{5 * NS_PER_MS, "0.005"},
	{10 * NS_PER_MS, "0.01"},
	{25 * NS_PER_MS, "0.025"},
	{50 * NS_PER_MS, "0.05"},
	{100 * NS_PER_MS, "0.1"},
	{250 * NS_PER_MS, "0.25"},
	{500 * NS_PER_MS, "0.5"},
	{1 * NS_PER_S, "1.0"},
	{2500 * NS_PER_MS, "2.5"},
	{5 * NS_PER_S, "5.0"},
	{10 * NS_PER_S, "10.0"},
	{30 * NS_PER_S, "30.0"},
	{60 * NS_PER_S, "60.0"},
	{120 * NS_PER_S, "120.0"},
	{300 * NS_PER_S, "300.0"},
	{600 * NS_PER_S, "600.0"},
	{1800 * NS_PER_S, "1800.0"},
	{3600 * NS_PER_S, "3600.0"},
	{CLOCK_NEVER, "+Inf"},
};

void histogram_observe(struct histogram *h, int64_t ns)
{
	unsigned i = 0;

	if (ns < 0)
		ns = 0;
	while (ns > bounds[i].ns)
		i++;
	h->in[i]++;
	h->sum_ns += ns % NS_PER_S;
	h->sum_s += (uint64_t)(ns / NS_PER_S + h->sum_ns / NS_PER_S);
	h->sum_ns %= NS_PER_S;
}

const char *histogram_le(unsigned i)
{
	return bounds[i].le;
}

uint64_t histogram_at_most(const struct histogram *h, unsigned i)
{
	uint64_t n = 0;

	for (unsigned k = 0; k <= i; k++)
		n += h->in[k];
	return n;
}

uint64_t histogram_count(const struct histogram *h)
{
	return histogram_at_most(h, HISTOGRAM_BUCKETS - 1);
}
