/* cifar.c - CIFAR-10's and CIFAR-100's binary files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   Krizhevsky, www.cs.toronto.edu/~kriz/cifar.html: records of a label
 *          (CIFAR-100: a coarse one, then the fine one) and 32 x 32 bytes each
 *          of red, green and blue.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/cifar.h"
#include "data/pixels.h"
#include "data/tar_index.h"
#include "storage/storage.h"

enum { PLANE = DDP__CIFAR_SIDE * DDP__CIFAR_SIDE, BATCHES = 5 };

/* The files of a data set, as its archive has them. */
struct layout {
    const char *name, *folder;
    const char *train[BATCHES + 1], *test[2];
    int labels; /* of a record, the last of which is the class */
    int classes;
    const char *names_file;         /* has a class in each line; NULL: */
    const char *const *class_names; /* they are these */
};

static const char *const names_10[] = {
    "airplane", "automobile", "bird",  "cat",  "deer",
    "dog",      "frog",       "horse", "ship", "truck"};

static const struct layout cifar_10 = {
    .name = "CIFAR-10",
    .folder = "cifar-10-batches-bin",
    .train = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
              "data_batch_4.bin", "data_batch_5.bin"},
    .test = {"test_batch.bin"},
    .labels = 1,
    .classes = 10,
    .class_names = names_10,
};

static const struct layout cifar_100 = {
    .name = "CIFAR-100",
    .folder = "cifar-100-binary",
    .train = {"train.bin"},
    .test = {"test.bin"},
    .labels = 2,
    .classes = 100,
    .names_file = "fine_label_names.txt",
};

static bool is_there(const struct layout *l, const char *dir)
{
    if (ddp__storage_has_folder(dir, l->folder))
        return true;
    return ddp__storage_has_file(dir, l->train[0]) &&
           (!l->names_file || ddp__storage_has_file(dir, l->names_file));
}

bool ddp__cifar_is_10(const char *dir)
{
    return is_there(&cifar_10, dir);
}

bool ddp__cifar_is_100(const char *dir)
{
    return is_there(&cifar_100, dir);
}

/* ---- records ------------------------------------------------------------ */

static size_t record_size(const struct layout *l)
{
    return (size_t)l->labels + 3 * PLANE;
}

static int add_record(struct ddp__pixels *p, const struct layout *l,
                      const uint8_t *record)
{
    uint8_t label = record[l->labels - 1], *x;

    if (label >= l->classes)
        return ddp__fail(DDP_EDATA, "label %d, expected 0 to %d", label,
                         l->classes - 1);
    record += l->labels;
    x = ddp__pixels_add(p, label);
    for (int i = 0; i < PLANE; i++)
        for (int k = 0; k < 3; k++)
            x[3 * i + k] = record[k * PLANE + i];
    return 0;
}

static int add_records(struct ddp__pixels *p, const struct layout *l,
                       const char *path, const struct ddp__bytes *b)
{
    size_t size = record_size(l);
    char why[128];
    int rc;

    if (b->len % size)
        return ddp__fail(DDP_EDATA,
                         "%s: has %zu bytes, expected records of %zu", path,
                         b->len, size);
    if ((rc = ddp__pixels_reserve(p, b->len / size)) < 0)
        return rc;
    for (size_t at = 0; at < b->len; at += size)
        if ((rc = add_record(p, l, b->data + at)) < 0) {
            snprintf(why, sizeof(why), "%s", ddp_errmsg());
            return ddp__fail(rc, "%s: record %zu: %s", path, at / size, why);
        }
    return 0;
}

static int load_file(const char *dir, const char *name, char **path,
                     struct ddp__bytes *b)
{
    if (!(*path = ddp__path_join(dir, name)))
        return DDP_ENOMEM;
    return ddp__storage_load(*path, (size_t)1 << 30, b);
}

static int add_file(struct ddp__pixels *p, const struct layout *l,
                    const char *dir, const char *name)
{
    struct ddp__bytes b = {0};
    char *path;
    int rc = load_file(dir, name, &path, &b);

    if (rc == 0)
        rc = add_records(p, l, path, &b);
    free(b.data);
    free(path);
    return rc;
}

static int add_split(struct ddp__pixels *p, const struct layout *l,
                     const char *dir, enum ddp_split split)
{
    const char *const *name = split == DDP_TRAIN ? l->train : l->test;
    int rc = 0;

    for (; rc == 0 && *name; name++)
        rc = add_file(p, l, dir, *name);
    return rc;
}

/* ---- the data set ------------------------------------------------------- */

static int copy_names(ddp_dataset_t *d, const struct layout *l)
{
    d->class_name = calloc((size_t)l->classes, sizeof(*d->class_name));
    if (!d->class_name)
        return ddp__fail(DDP_ENOMEM, "out of memory for class names");
    d->classes = l->classes;
    for (int i = 0; i < l->classes; i++)
        if (!(d->class_name[i] = strdup(l->class_names[i])))
            return ddp__fail(DDP_ENOMEM, "out of memory for class names");
    return 0;
}

static int read_names(ddp_dataset_t *d, const struct layout *l, const char *dir)
{
    struct ddp__bytes b = {0};
    struct ddp__names names = {0};
    char *path;
    int rc = load_file(dir, l->names_file, &path, &b);

    if (rc == 0)
        rc = ddp__tar_classes_read(&names, path, &b);
    while (names.count > l->classes && !*names.name[names.count - 1])
        free(names.name[--names.count]); /* an empty line at the end */
    d->class_name = names.name;
    d->classes = names.count;
    if (rc == 0 && names.count != l->classes)
        rc = ddp__fail(DDP_EDATA, "%s: has %d lines, expected the %d classes",
                       path, names.count, l->classes);
    free(b.data);
    free(path);
    return rc;
}

static int load_dataset(struct ddp__pixels *p, const struct layout *l,
                        const char *dir, enum ddp_split split)
{
    char *inside = NULL;
    int rc;

    if (ddp__storage_has_folder(dir, l->folder)) {
        if (!(inside = ddp__path_join(dir, l->folder)))
            return DDP_ENOMEM;
        dir = inside;
    }
    rc = l->names_file ? read_names(&p->d, l, dir) : copy_names(&p->d, l);
    if (rc == 0)
        rc = add_split(p, l, dir, split);
    free(inside);
    if (rc < 0)
        return rc;
    return ddp__dataset_describe(&p->d, "%s %s, %lld images of %d classes",
                                 l->name, split == DDP_TRAIN ? "train" : "test",
                                 (long long)p->d.count, p->d.classes);
}

static ddp_dataset_t *open_dataset(const struct layout *l, const char *dir,
                                   enum ddp_split split,
                                   const struct ddp_image_options *o)
{
    struct ddp__pixels *p;

    if (!dir) {
        ddp__fail(DDP_EINVAL, "a data set needs a folder");
        return NULL;
    }
    if (!(p = ddp__pixels_new(DDP__CIFAR_SIDE, o)))
        return NULL;
    if (load_dataset(p, l, dir, split) == 0)
        return &p->d;
    ddp_dataset_free(&p->d);
    return NULL;
}

ddp_dataset_t *ddp_dataset_cifar10(const char *dir, enum ddp_split split,
                                   const struct ddp_image_options *o)
{
    return open_dataset(&cifar_10, dir, split, o);
}

ddp_dataset_t *ddp_dataset_cifar100(const char *dir, enum ddp_split split,
                                    const struct ddp_image_options *o)
{
    return open_dataset(&cifar_100, dir, split, o);
}
