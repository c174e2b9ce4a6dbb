/* load.h - images from where they are stored, or from the cache
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_LOAD_H
#define DDP_LOAD_H

#include <stdbool.h>

#include "ddp.h"

struct ddp__bytes;
struct ddp__kept;
struct ddp__storage;

/* A sample of an image, of o->size; and where the image is kept, if it is. */
struct ddp__wanted {
    const struct ddp_image_options *o;
    uint64_t key;
    struct ddp__kept *kept; /* NULL: nowhere */
    int64_t index, count;   /* of all that may be kept there */
};

/* Read, decode, crop, resize and flip the image at path of a storage into x
 * (size, size, 3).  DDP_EDATA, DDP_EIO: a bad image, and
 * the message says why, without the path. */
int ddp__image_load(struct ddp__storage *in, const char *path,
                    const struct ddp__wanted *w, uint8_t *x);

/* The same for a part of a file; DDP_EDATA if its checksum is another. */
struct ddp__part {
    const char *path;
    int64_t at;
    size_t len;
    bool unchecked; /* there is no checksum */
    uint32_t crc;   /* CRC-32C */
};
int ddp__part_read(struct ddp__storage *in, const struct ddp__part *p,
                   struct ddp__bytes *b);
/* Whether a cache has the image of path, or of a part. */
bool ddp__image_kept(struct ddp__storage *in, const char *path,
                     const struct ddp__part *p, const struct ddp__kept *k,
                     int64_t index);

int ddp__image_load_part(struct ddp__storage *in, const struct ddp__part *p,
                         const struct ddp__wanted *w, uint8_t *x);

#endif
