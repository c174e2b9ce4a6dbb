/* cache.h - copies of objects on a disk of this machine
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Several processes may share a folder.  Only objects with an ETag are kept:
 * the name of a copy depends on it, so a changed object is another one.
 */
#ifndef DDP_CACHE_H
#define DDP_CACHE_H

#include <stdbool.h>

#include "storage/server.h"

/* Read the copy of an object, if there is one that is whole. */
bool ddp__cache_get(const struct ddp__object *o, struct ddp__bytes *b);

/* Keep a copy.  What cannot be written is not kept: the run does not need it.
 */
void ddp__cache_put(const struct ddp__object *o, const struct ddp__bytes *b);

#endif
