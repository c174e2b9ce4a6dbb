/* load.c - images from where they are stored, or from the cache
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "image/cache.h"
#include "image/disk_cache.h"
#include "image/image.h"
#include "image/load.h"
#include "storage/storage.h"

enum { NOT_THERE = 1 };
static const size_t max_file = (size_t)1 << 30;

/* All of an image, which the caller frees; false: it cannot be had, and there
 * is no message.  One that is damaged is not: a crop may not need the part that
 * is, or see another. */
static bool decode_all(const struct ddp__wanted *w,
                       const struct ddp__bytes *file, size_t room,
                       struct ddp__decoded *d)
{
    struct ddp__error before = ddp__error_save();
    int rc = ddp__image_whole(file->data, file->len, w->o->max_pixels, room, d);

    ddp__error_restore(&before);
    return rc == 0;
}

/* Decode all of an image and keep it; NULL if it is not to be kept. */
static const struct ddp__decoded *keep(const struct ddp__wanted *w,
                                       const struct ddp__bytes *file)
{
    size_t room = w->kept ? ddp__cache_room() : 0;
    struct ddp__decoded d = {0};

    return room && decode_all(w, file, room, &d)
               ? ddp__cache_keep(w->kept, w->index, &d)
               : NULL;
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

/* Keep an image that was read on a disk. */
static int decode_to_disk(const struct ddp__wanted *w, const char *key,
                          struct ddp__bytes *file, uint8_t *x)
{
    struct ddp__decoded d = {0};
    int rc;

    if (!decode_all(w, file, SIZE_MAX, &d))
        return decode(w, file, x);
    ddp__disk_keep(key, &d);
    rc = ddp__image_again(&d, w->o, w->key, x);
    free(d.rgb);
    ddp__image_trim(file);
    return rc;
}

static int find_on_disk(const struct ddp__wanted *w, const char *key,
                        uint8_t *x)
{
    struct ddp__decoded d;
    int rc;

    if (!ddp__disk_find(key, &d))
        return NOT_THERE;
    rc = ddp__image_again(&d, w->o, w->key, x);
    ddp__image_trim(ddp__image_file());
    return rc;
}

/* The image in the file at path, or in a part of one. */
static int load(struct ddp__storage *in, const char *path,
                const struct ddp__part *p, const struct ddp__wanted *w,
                uint8_t *x)
{
    const struct ddp__decoded *d = find(w);
    char key[DDP__COPY_KEY];
    bool disk = w->kept && !d && ddp__disk_key(in, path, p, key);
    struct ddp__bytes *file;
    int rc;

    if (d)
        return ddp__image_again(d, w->o, w->key, x);
    if (disk && (rc = find_on_disk(w, key, x)) != NOT_THERE)
        return rc;
    if (!(file = ddp__image_file()))
        return DDP_ENOMEM;
    rc = p ? ddp__part_read(in, p, file)
           : ddp__storage_read(in, path, max_file, file);
    if (rc < 0)
        return rc;
    return disk ? decode_to_disk(w, key, file, x) : decode(w, file, x);
}

bool ddp__image_kept(struct ddp__storage *in, const char *path,
                     const struct ddp__part *p, const struct ddp__kept *k,
                     int64_t index)
{
    char key[DDP__COPY_KEY];

    return ddp__cache_has(k, index) ||
           (ddp__disk_key(in, path, p, key) && ddp__disk_has(key));
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
