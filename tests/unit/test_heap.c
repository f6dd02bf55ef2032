/* SPDX-License-Identifier: MIT */
#include "backend/base/heap.h"

#include "tests/test.h"

#define N 500

/* Repeatable, and as good as random here. */
static int64_t scramble(int64_t i)
{
	return i * 7919 % 1009;
}

static void fill(struct heap *h, struct heap_node *nodes)
{
	for (int i = 0; i < N; i++)
		CHECK_INT(heap_set(h, &nodes[i], scramble(i)), 0);
	CHECK_INT(h->len, N);
}

/* Takes all out; returns how many there were. */
static int drain_in_order(struct heap *h)
{
	int64_t last = INT64_MIN;
	int n = 0;

	for (struct heap_node *m; (m = heap_min(h)); n++) {
		CHECK(m->key >= last);
		last = m->key;
		heap_remove(h, m);
		CHECK(!heap_has(m));
	}
	return n;
}

TEST(empty_heap_has_no_minimum)
{
	struct heap h = {0};

	CHECK(!heap_min(&h));
	heap_fini(&h);
	CHECK(!h.nodes);
}

TEST(comes_out_in_order)
{
	static struct heap_node nodes[N];
	struct heap h = {0};

	fill(&h, nodes);
	CHECK_INT(drain_in_order(&h), N);
	heap_fini(&h);
}

TEST(setting_again_moves)
{
	static struct heap_node nodes[N];
	struct heap h = {0};

	fill(&h, nodes);
	for (int i = 0; i < N; i++)
		CHECK_INT(heap_set(&h, &nodes[i], scramble(i * 3 + 1)), 0);
	CHECK_INT(h.len, N);
	heap_set(&h, &nodes[77], -1);
	CHECK(heap_min(&h) == &nodes[77]);
	CHECK_INT(drain_in_order(&h), N);
	heap_fini(&h);
}

TEST(removing_from_the_middle_keeps_order)
{
	static struct heap_node nodes[N];
	struct heap h = {0};

	fill(&h, nodes);
	for (int i = 0; i < N; i += 3)
		heap_remove(&h, &nodes[i]);
	for (int i = 0; i < N; i++)
		CHECK_INT(heap_has(&nodes[i]), i % 3 != 0);
	CHECK_INT(drain_in_order(&h), N - (N + 2) / 3);
	heap_fini(&h);
}

TEST(removing_what_is_in_no_heap_does_nothing)
{
	struct heap h = {0};
	struct heap_node in = {0}, out = {0};

	heap_remove(&h, &out);
	CHECK_INT(heap_set(&h, &in, 5), 0);
	heap_remove(&h, &out);
	CHECK(heap_min(&h) == &in);
	heap_fini(&h);
}
