/* SPDX-License-Identifier: MIT */
/*
 * Hash tables: uthash, which ends the process when there is no memory unless it
 * is told not to, before its first inclusion. So include this, never <uthash.h>.
 *
 * HASH_ADD and its like may leave an element out: table_took() says whether it
 * is in. One that is not must not be given to HASH_DEL.
 */
#ifndef SPOOLFS_BASE_TABLE_H
#define SPOOLFS_BASE_TABLE_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define table_took(hh, element) ((element)->hh.tbl != NULL)

#endif
