/* load.c - images from where they are stored, or from the cache
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "image/cache.h"
#include "image/image.h"
#include "image/load.h"
#include "storage/storage.h"

static const size_t max_file = (size_t)1 << 30;

/* Decode all of an image and keep it; NULL if it is not to be kept.  One that
 * is damaged is not: a crop may not need the part that is, or see another. */
static const struct ddp__decoded *keep(const struct ddp__wanted *w,
                                       const struct ddp__bytes *file)
{
    size_t room = w->kept ? ddp__cache_room() : 0;
    struct ddp__decoded d = {0};
    struct ddp__error before;
    int rc;

    if (!room)
        return NULL;
    before = ddp__error_save();
    rc = ddp__image_whole(file->data, file->len, w->o->max_pixels, room, &d);
    ddp__error_restore(&before);
    return rc == 0 ? ddp__cache_keep(w->kept, w->index, &d) : NULL;
}

static int decode(const struct ddp__wanted *w, struct ddp__bytes *file,
                  uint8_t *x)
{
    const struct ddp__decoded *d = keep(w, file);
    int rc = d ? ddp__image_again(d, w->o, w->key, x)
               : ddp__image_decode(
                     file->data, file->len, w->o,
                     w->o->upright ? DDP__UPRIGHT : DDP__AS_STORED, w->key, x);

    ddp__image_trim(file);
    return rc;
}

static const struct ddp__decoded *find(const struct ddp__wanted *w)
{
    return w->kept ? ddp__cache_find(w->kept, w->index, w->count) : NULL;
}

/* A part whose bytes have changed may still decode, as another image. */
int ddp__part_read(struct ddp__storage *in, const struct ddp__part *p,
                   struct ddp__bytes *b)
{
    int rc = in->ops->read_part(in, p->path, p->at, p->len, b);
    uint32_t crc;

    if (rc < 0 || p->unchecked ||
        (crc = ddp__crc32c(0, b->data, b->len)) == p->crc)
        return rc;
    return ddp__fail(DDP_EDATA,
                     "is damaged: its CRC-32C is %08x, and the index has %08x",
                     crc, p->crc);
}

/* The image in the file at path, or in a part of one. */
static int load(struct ddp__storage *in, const char *path,
                const struct ddp__part *p, const struct ddp__wanted *w,
                uint8_t *x)
{
    const struct ddp__decoded *d = find(w);
    struct ddp__bytes *file;
    int rc;

    if (d)
        return ddp__image_again(d, w->o, w->key, x);
    if (!(file = ddp__image_file()))
        return DDP_ENOMEM;
    rc = p ? ddp__part_read(in, p, file)
           : ddp__storage_read(in, path, max_file, file);
    return rc < 0 ? rc : decode(w, file, x);
}

int ddp__image_load(struct ddp__storage *in, const char *path,
                    const struct ddp__wanted *w, uint8_t *x)
{
    return load(in, path, NULL, w, x);
}

int ddp__image_load_part(struct ddp__storage *in, const struct ddp__part *p,
                         const struct ddp__wanted *w, uint8_t *x)
{
    return load(in, NULL, p, w, x);
}
