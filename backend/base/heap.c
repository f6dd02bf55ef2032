/* SPDX-License-Identifier: MIT */
#include "heap.h"

#include <errno.h>
#include <stdlib.h>

void heap_fini(struct heap *h)
{
	free(h->nodes);
	*h = (struct heap){0};
}

/* Slot 0 stays unused: index 0 is how a node says that it is in no heap. */
int heap_reserve(struct heap *h)
{
	size_t cap = h->cap ? h->cap * 2 : HEAP_RESERVED + 1;
	struct heap_node **nodes;

	if (h->len + 1 < h->cap)
		return 0;
	nodes = reallocarray(h->nodes, cap, sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	h->nodes = nodes;
	h->cap = cap;
	return 0;
}

static void put(struct heap *h, size_t i, struct heap_node *n)
{
	h->nodes[i] = n;
	n->index = i;
}

/* Both move the hole at I to where N belongs, and put N there. */
static void sift_up(struct heap *h, size_t i, struct heap_node *n)
{
	for (; i > 1 && h->nodes[i / 2]->key > n->key; i /= 2)
		put(h, i, h->nodes[i / 2]);
	put(h, i, n);
}

static void sift_down(struct heap *h, size_t i, struct heap_node *n)
{
	for (;;) {
		size_t child = i * 2;

		if (child > h->len)
			break;
		if (child < h->len && h->nodes[child + 1]->key < h->nodes[child]->key)
			child++;
		if (h->nodes[child]->key >= n->key)
			break;
		put(h, i, h->nodes[child]);
		i = child;
	}
	put(h, i, n);
}

static void settle(struct heap *h, size_t i, struct heap_node *n)
{
	if (i > 1 && h->nodes[i / 2]->key > n->key)
		sift_up(h, i, n);
	else
		sift_down(h, i, n);
}

int heap_set(struct heap *h, struct heap_node *n, int64_t key)
{
	if (!heap_has(n)) {
		int err = heap_reserve(h);

		if (err)
			return err;
		put(h, ++h->len, n);
	}
	n->key = key;
	settle(h, n->index, n);
	return 0;
}

void heap_remove(struct heap *h, struct heap_node *n)
{
	size_t i = n->index;
	struct heap_node *last;

	if (!heap_has(n))
		return;
	last = h->nodes[h->len--];
	n->index = 0;
	if (last != n)
		settle(h, i, last);
}

struct heap_node *heap_min(const struct heap *h)
{
	return h->len ? h->nodes[1] : NULL;
}
