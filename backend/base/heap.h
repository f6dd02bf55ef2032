/* SPDX-License-Identifier: MIT */
/* An intrusive binary min-heap over int64 keys: deadlines in order. */
#ifndef SPOOLFS_BASE_HEAP_H
#define SPOOLFS_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAP_RESERVED 63

/* Embedded by the user. index 0 means "in no heap": zero-initialise. */
struct heap_node {
	int64_t key;
	size_t index;
};

/* Zero-initialise. Owns only its array, never the nodes. */
struct heap {
	struct heap_node **nodes; /* [1..len] */
	size_t len;
	size_t cap;
};

void heap_fini(struct heap *h);
/* Makes room for one node more, and the first time for HEAP_RESERVED. 0 or -ENOMEM. */
int heap_reserve(struct heap *h);
/*
 * Inserts N with KEY, or moves it when it is in H already. Equal keys come
 * out in any order. 0 or -ENOMEM (then N is where it was).
 */
int heap_set(struct heap *h, struct heap_node *n, int64_t key);
/* Removes N; nothing happens when it is in no heap. */
void heap_remove(struct heap *h, struct heap_node *n);
/* The node with the smallest key, or NULL. Stays in the heap. */
struct heap_node *heap_min(const struct heap *h);
static inline bool heap_has(const struct heap_node *n)
{
	return n->index != 0;
}

#endif
