/* SPDX-License-Identifier: MIT */
/*
 * How long handlings took, for .metrics: counts in fixed buckets from 5 ms to
 * 1 h, and their exact sum. Constant memory. Pure.
 *
 * Zero-initialise it. To render it: for I in 0..HISTOGRAM_BUCKETS-1 a line with
 * histogram_le(I) and histogram_at_most(h, I), which is cumulative as Prometheus
 * wants it; then the count and the sum.
 */
#ifndef SPOOLFS_ENGINE_HISTOGRAM_H
#define SPOOLFS_ENGINE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BUCKETS 19 /* the last is +Inf */

struct histogram {
	uint64_t in[HISTOGRAM_BUCKETS]; /* each observation is in one */
	uint64_t sum_s;                 /* the sum is sum_s + sum_ns / 1e9 seconds */
	int64_t sum_ns;                 /* 0..999999999 */
};

/* A handling took so long. Below 0 counts as 0. */
void histogram_observe(struct histogram *h, int64_t ns);
/* The bound of bucket I in seconds, as OpenMetrics spells numbers: "0.005",
 * "1.0", last "+Inf". */
const char *histogram_le(unsigned i);
/* How many took at most that long; for the last bucket: all of them. */
uint64_t histogram_at_most(const struct histogram *h, unsigned i);
uint64_t histogram_count(const struct histogram *h);

#endif
