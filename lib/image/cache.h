/* cache.h - decoded images in memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Images are kept as they were decoded, before any crop: so samples are the
 * same with and without the cache.
 */
#ifndef DDP_IMAGE_CACHE_H
#define DDP_IMAGE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pixels of 3 bytes, as stored in the file. */
struct ddp__decoded {
    int w, h, orientation;
    uint8_t *rgb; /* owned */
};

/* The images of one data set; all zeros: none. */
struct ddp__kept {
    int64_t count;
    struct ddp__decoded **image; /* of each sample, or NULL; owned */
};

/* Image `index` of `count`, or NULL; it is kept until ddp__cache_drop(). */
const struct ddp__decoded *ddp__cache_find(struct ddp__kept *k, int64_t index,
                                           int64_t count);

/* Whether it is there, which is not counted as a use. */
bool ddp__cache_has(const struct ddp__kept *k, int64_t index);

/* Bytes that are left. */
size_t ddp__cache_room(void);

/* Keep an image, whose pixels are taken; NULL if there is no room (any more),
 * or if it is there. */
const struct ddp__decoded *ddp__cache_keep(struct ddp__kept *k, int64_t index,
                                           const struct ddp__decoded *d);

/* Count a read that a cache on a disk answered, or an image of so many bytes
 * that it keeps now; 0: one that it did not answer. */
void ddp__cache_count(bool hit, int64_t kept);

void ddp__cache_drop(struct ddp__kept *k);

#endif
