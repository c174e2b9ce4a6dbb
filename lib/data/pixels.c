/* pixels.c - data sets of small images, all of which are in memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/options.h"
#include "data/pixels.h"
#include "image/image.h"

static size_t image_size(const struct ddp__pixels *p)
{
    return (size_t)p->side * (size_t)p->side * 3;
}

/* ---- the data set ------------------------------------------------------- */

static int get_sample(ddp_dataset_t *d, int64_t index, uint64_t key,
                      struct ddp_sample *s)
{
    struct ddp__pixels *p = (struct ddp__pixels *)d;

    s->label = p->label[index];
    return ddp__image_pixels(p->x + (size_t)index * image_size(p), p->side,
                             p->side, &p->o, key, s->x);
}

static void free_pixels(ddp_dataset_t *d)
{
    free(((struct ddp__pixels *)d)->x);
    free(((struct ddp__pixels *)d)->label);
}

static uint32_t checksum(const ddp_dataset_t *d)
{
    const struct ddp__pixels *p = (const struct ddp__pixels *)d;
    uint32_t crc = ddp__crc32c(0, p->x, (size_t)d->count * image_size(p));

    return ddp__crc32c(crc, p->label, (size_t)d->count);
}

static int options(const ddp_dataset_t *d,
                   struct ddp_option o[DDP__IMAGE_OPTIONS])
{
    return ddp__image_list(&((const struct ddp__pixels *)d)->o, o);
}

static int32_t label_of(const ddp_dataset_t *d, int64_t index)
{
    return ((const struct ddp__pixels *)d)->label[index];
}

static const struct ddp__dataset_ops ops = {
    .get = get_sample,
    .label = label_of,
    .checksum = checksum,
    .options = options,
    .free = free_pixels,
};

/* ---- making ------------------------------------------------------------- */

/* As for other images, but the default is the whole image as it is. */
static int set_options(struct ddp__pixels *p,
                       const struct ddp_image_options *in)
{
    struct ddp_image_options o;
    int rc;

    ddp_image_options_init(&o);
    if ((rc = ddp__options_copy(&o, sizeof(o), in, "ddp_image_options")) < 0)
        return rc;
    if (!o.size)
        o.size = p->side;
    if (!o.resize)
        o.resize = o.size;
    if ((rc = ddp__image_options(&o, p->side, &p->o)) == 0)
        ddp__dataset_set_images(&p->d, &p->o);
    return rc;
}

struct ddp__pixels *ddp__pixels_new(int side, const struct ddp_image_options *o)
{
    struct ddp__pixels *p = (void *)ddp__dataset_new(sizeof(*p), &ops);

    if (!p)
        return NULL;
    p->side = side;
    if (set_options(p, o) == 0)
        return p;
    ddp_dataset_free(&p->d);
    return NULL;
}

int ddp__pixels_reserve(struct ddp__pixels *p, size_t more)
{
    size_t count = (size_t)p->d.count + more;
    uint8_t *x = realloc(p->x, count * image_size(p) + 1), *label;

    if (x)
        p->x = x;
    if ((label = realloc(p->label, count + 1)))
        p->label = label;
    if (!x || !label)
        return ddp__fail(DDP_ENOMEM, "out of memory for %zu images", count);
    return 0;
}

uint8_t *ddp__pixels_add(struct ddp__pixels *p, uint8_t label)
{
    p->label[p->d.count] = label;
    return p->x + (size_t)p->d.count++ * image_size(p);
}
