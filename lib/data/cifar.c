/* cifar.c - CIFAR-10's binary files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   Krizhevsky, www.cs.toronto.edu/~kriz/cifar.html: records of a label
 *          and 32 x 32 bytes each of red, green and blue.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/options.h"
#include "data/cifar.h"
#include "data/dataset.h"
#include "image/image.h"
#include "storage/storage.h"

enum {
    SIDE = DDP__CIFAR_SIDE,
    PLANE = SIDE * SIDE,
    RECORD = 1 + 3 * PLANE,
    CLASSES = 10
};

struct cifar {
    struct ddp_dataset d;
    struct ddp_image_options o;
    uint8_t *x;     /* (count, 32, 32, 3); owned */
    uint8_t *label; /* owned */
};

static int get_sample(ddp_dataset_t *d, int64_t index, uint64_t key,
                      struct ddp_sample *s)
{
    struct cifar *c = (struct cifar *)d;

    s->label = c->label[index];
    return ddp__image_pixels(c->x + (size_t)index * 3 * PLANE, SIDE, SIDE,
                             &c->o, key, s->x);
}

static void free_cifar(ddp_dataset_t *d)
{
    free(((struct cifar *)d)->x);
    free(((struct cifar *)d)->label);
}

static uint32_t checksum(const ddp_dataset_t *d)
{
    const struct cifar *c = (const struct cifar *)d;
    uint32_t crc = ddp__crc32c(0, c->x, (size_t)d->count * 3 * PLANE);

    return ddp__crc32c(crc, c->label, (size_t)d->count);
}

static int options(const ddp_dataset_t *d,
                   struct ddp_option o[DDP__IMAGE_OPTIONS])
{
    return ddp__image_list(&((const struct cifar *)d)->o, o);
}

static int32_t label_of(const ddp_dataset_t *d, int64_t index)
{
    return ((const struct cifar *)d)->label[index];
}

static const struct ddp__dataset_ops ops = {
    .get = get_sample,
    .label = label_of,
    .checksum = checksum,
    .options = options,
    .free = free_cifar,
};

/* ---- files -------------------------------------------------------------- */

static int add_record(struct cifar *c, const uint8_t *record)
{
    uint8_t *x = c->x + (size_t)c->d.count * 3 * PLANE;

    if (record[0] >= CLASSES)
        return ddp__fail(DDP_EDATA, "label %d, expected 0 to %d", record[0],
                         CLASSES - 1);
    c->label[c->d.count++] = record[0];
    for (int i = 0; i < PLANE; i++)
        for (int k = 0; k < 3; k++)
            x[3 * i + k] = record[1 + k * PLANE + i];
    return 0;
}

static int reserve_images(struct cifar *c, size_t more)
{
    size_t count = (size_t)c->d.count + more;
    uint8_t *x = realloc(c->x, count * 3 * PLANE), *label;

    if (x)
        c->x = x;
    if ((label = realloc(c->label, count)))
        c->label = label;
    if (!x || !label)
        return ddp__fail(DDP_ENOMEM, "out of memory for %zu images", count);
    return 0;
}

static int add_records(struct cifar *c, const char *path,
                       const struct ddp__bytes *b)
{
    char why[128];
    int rc;

    if (b->len % RECORD)
        return ddp__fail(DDP_EDATA,
                         "%s: has %zu bytes, expected records of "
                         "%d",
                         path, b->len, RECORD);
    if ((rc = reserve_images(c, b->len / RECORD)) < 0)
        return rc;
    for (size_t at = 0; at < b->len; at += RECORD)
        if ((rc = add_record(c, b->data + at)) < 0) {
            snprintf(why, sizeof(why), "%s", ddp_errmsg());
            return ddp__fail(rc, "%s: record %zu: %s", path, at / RECORD, why);
        }
    return 0;
}

static int add_file(struct cifar *c, const char *dir, const char *name)
{
    char *path = ddp__path_join(dir, name);
    struct ddp__bytes b = {0};
    int rc;

    if (!path)
        return DDP_ENOMEM;
    if ((rc = ddp__storage_load(path, (size_t)1 << 30, &b)) == 0)
        rc = add_records(c, path, &b);
    free(b.data);
    free(path);
    return rc;
}

static int add_split(struct cifar *c, const char *dir, enum ddp_split split)
{
    char name[32];
    int rc = 0;

    if (split != DDP_TRAIN)
        return add_file(c, dir, "test_batch.bin");
    for (int i = 1; rc == 0 && i <= 5; i++) {
        snprintf(name, sizeof(name), "data_batch_%d.bin", i);
        rc = add_file(c, dir, name);
    }
    return rc;
}

static int set_names(ddp_dataset_t *d)
{
    static const char *const name[CLASSES] = {
        "airplane", "automobile", "bird",  "cat",  "deer",
        "dog",      "frog",       "horse", "ship", "truck"};

    if (!(d->class_name = calloc(CLASSES, sizeof(*d->class_name))))
        return ddp__fail(DDP_ENOMEM, "out of memory for class names");
    d->classes = CLASSES;
    for (int i = 0; i < CLASSES; i++)
        if (!(d->class_name[i] = strdup(name[i])))
            return ddp__fail(DDP_ENOMEM, "out of memory for class names");
    return 0;
}

/* ---- the data set ------------------------------------------------------- */

/* As for other images, but the default is the whole image of 32 x 32. */
static int set_options(struct cifar *c, const struct ddp_image_options *in)
{
    struct ddp_image_options o;
    int rc;

    ddp_image_options_init(&o);
    if ((rc = ddp__options_copy(&o, sizeof(o), in, "ddp_image_options")) < 0)
        return rc;
    if (!o.size)
        o.size = SIDE;
    if (!o.resize)
        o.resize = o.size;
    if ((rc = ddp__image_options(&o, SIDE, &c->o)) < 0)
        return rc;
    c->d.shape = (struct ddp_shape){c->o.size, c->o.size, 3};
    c->d.type = DDP_U8;
    c->d.resize = c->o.resize;
    memcpy(c->d.mean, c->o.mean, sizeof(c->o.mean));
    memcpy(c->d.std, c->o.std, sizeof(c->o.std));
    return 0;
}

static int load_dataset(struct cifar *c, const char *dir, enum ddp_split split,
                        const struct ddp_image_options *o)
{
    const char *sub = "cifar-10-batches-bin"; /* as the archive has it */
    char *inside = NULL;
    int rc;

    if (ddp__storage_has_folder(dir, sub) &&
        !(inside = ddp__path_join(dir, sub)))
        return DDP_ENOMEM;
    if ((rc = set_options(c, o)) == 0 && (rc = set_names(&c->d)) == 0)
        rc = add_split(c, inside ? inside : dir, split);
    free(inside);
    if (rc < 0)
        return rc;
    return ddp__dataset_describe(
        &c->d, "CIFAR-10 %s, %lld images of 10 classes",
        split == DDP_TRAIN ? "train" : "test", (long long)c->d.count);
}

ddp_dataset_t *ddp_dataset_cifar10(const char *dir, enum ddp_split split,
                                   const struct ddp_image_options *o)
{
    struct cifar *c;

    if (!dir) {
        ddp__fail(DDP_EINVAL, "a data set needs a folder");
        return NULL;
    }
    if (!(c = (void *)ddp__dataset_new(sizeof(*c), &ops)))
        return NULL;
    if (load_dataset(c, dir, split, o) < 0) {
        ddp_dataset_free(&c->d);
        return NULL;
    }
    return &c->d;
}
