/* disk_cache.h - decoded images in a folder
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_IMAGE_DISK_CACHE_H
#define DDP_IMAGE_DISK_CACHE_H

#include <stdbool.h>

#include "image/cache.h"
#include "storage/copies.h"

struct ddp__part;
struct ddp__storage;

bool ddp__disk_used(void);

/* What an image in the file at path, or in a part of one, is kept under: it
 * changes when the file does.  False: it is not kept. */
bool ddp__disk_key(struct ddp__storage *in, const char *path,
                   const struct ddp__part *p, char key[DDP__COPY_KEY]);

/* Whether the image is there, which is not counted as a use. */
bool ddp__disk_has(const char *key);

/* The image, in this thread's memory for files. */
bool ddp__disk_find(const char *key, struct ddp__decoded *d);

void ddp__disk_keep(const char *key, const struct ddp__decoded *d);

#endif
