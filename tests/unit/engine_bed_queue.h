/* SPDX-License-Identifier: MIT */
/* The queue in memory: the half of engine_bed.h that is a driver. */
#ifndef SPOOLFS_TESTS_UNIT_ENGINE_BED_QUEUE_H
#define SPOOLFS_TESTS_UNIT_ENGINE_BED_QUEUE_H

#include "engine_bed.h"

void eb_queue_init(struct eb *b);
void eb_queue_fini(struct eb *b); /* after driver_close() */
/* Goes on with those that are not to be held any more. */
void eb_queue_let(struct eb *b);
/* Ends the test program when P is NULL. */
void *eb_need(void *p);
/* A waiting message with BODY, of which the caller keeps its reference. */
struct eb_message *eb_insert(
	struct eb *b, const char *id, const char *given, struct blob *body);

#endif
