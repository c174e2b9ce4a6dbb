/* mnist.c - MNIST's files, and those of data sets that took its place
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   LeCun, Cortes, Burges, yann.lecun.com/exdb/mnist: "idx": two zero
 *          bytes, the type (8: bytes), the number of dimensions, each of them
 *          as 32 bits with the highest byte first, the values.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/gunzip.h"
#include "data/mnist.h"
#include "data/pixels.h"
#include "storage/storage.h"

enum { CLASSES = 10, SIDE = DDP__MNIST_SIDE, BYTES = 8 };

static const size_t max_file = (size_t)1 << 30;

/* ---- where files are ---------------------------------------------------- */

static const char *const folders[] = {"", "raw/", "MNIST/raw/"};
static const char *const ends[] = {"", ".gz"};

/* The name below dir of one of the files, or NULL: it is not there. */
static const char *find_file(const char *dir, const char *file, char name[64])
{
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 2; k++) {
            snprintf(name, 64, "%s%s%s", folders[i], file, ends[k]);
            if (ddp__storage_has_file(dir, name))
                return name;
        }
    return NULL;
}

bool ddp__mnist_is_there(const char *dir)
{
    char name[64];

    return find_file(dir, "train-images-idx3-ubyte", name);
}

/* ---- one file ----------------------------------------------------------- */

/* An array of bytes from a file. */
struct idx {
    char *path; /* owned */
    struct ddp__bytes file;
    int64_t dim[3];
    const uint8_t *x;
};

static void idx_free(struct idx *a)
{
    free(a->path);
    free(a->file.data);
}

static int64_t number_at(const uint8_t *x)
{
    return (int64_t)x[0] << 24 | x[1] << 16 | x[2] << 8 | x[3];
}

/* The header, and that the values are there: no more of them, no less. */
static int check_header(struct idx *a, int dims)
{
    const uint8_t *x = a->file.data;
    size_t head = 4 + 4 * (size_t)dims, size = 1;

    if (a->file.len < head || x[0] || x[1] || x[2] != BYTES || x[3] != dims)
        return ddp__fail(DDP_EDATA,
                         "%s: expected an idx file of bytes with %d dimensions",
                         a->path, dims);
    for (int i = 0; i < dims; i++) {
        a->dim[i] = number_at(x + 4 + 4 * i);
        if (a->dim[i] < 1 || (size_t)a->dim[i] > max_file / size)
            return ddp__fail(DDP_EDATA, "%s: dimension %d is %lld", a->path,
                             i + 1, (long long)a->dim[i]);
        size *= (size_t)a->dim[i];
    }
    if (a->file.len - head != size)
        return ddp__fail(DDP_EDATA, "%s: has %zu values, expected %zu", a->path,
                         a->file.len - head, size);
    a->x = x + head;
    return 0;
}

static int unpack_file(struct idx *a)
{
    struct ddp__bytes packed = a->file;
    char why[200];
    int rc = ddp__gunzip(&packed, max_file, &a->file);

    free(packed.data);
    if (rc == 0)
        return 0;
    snprintf(why, sizeof(why), "%s", ddp_errmsg());
    return ddp__fail(rc, "%s: %s", a->path, why);
}

static int idx_read(struct idx *a, const char *dir, const char *file, int dims)
{
    char name[64];
    int rc;

    if (!find_file(dir, file, name))
        return ddp__fail(DDP_EDATA, "%s: expected a file %s or %s.gz in it",
                         dir, file, file);
    if (!(a->path = ddp__path_join(dir, name)))
        return DDP_ENOMEM;
    if ((rc = ddp__storage_load(a->path, max_file, &a->file)) < 0)
        return rc;
    if (!strcmp(name + strlen(name) - 3, ".gz") && (rc = unpack_file(a)) < 0)
        return rc;
    return check_header(a, dims);
}

/* ---- the data set ------------------------------------------------------- */

static int add_images(struct ddp__pixels *p, const struct idx *images,
                      const struct idx *labels)
{
    const uint8_t *from = images->x;
    int rc;

    if (images->dim[0] != labels->dim[0])
        return ddp__fail(DDP_EDATA, "%s: has %lld labels for %lld images",
                         labels->path, (long long)labels->dim[0],
                         (long long)images->dim[0]);
    if (images->dim[1] != SIDE || images->dim[2] != SIDE)
        return ddp__fail(DDP_EDATA,
                         "%s: has images of %lldx%lld, expected %dx%d",
                         images->path, (long long)images->dim[2],
                         (long long)images->dim[1], SIDE, SIDE);
    if ((rc = ddp__pixels_reserve(p, (size_t)images->dim[0])) < 0)
        return rc;
    for (int64_t i = 0; i < images->dim[0]; i++) {
        uint8_t *x;

        if (labels->x[i] >= CLASSES)
            return ddp__fail(DDP_EDATA,
                             "%s: label %d of image %lld, expected 0 "
                             "to %d",
                             labels->path, labels->x[i], (long long)i,
                             CLASSES - 1);
        x = ddp__pixels_add(p, labels->x[i]);
        for (int k = 0; k < SIDE * SIDE; k++, x += 3)
            x[0] = x[1] = x[2] = *from++;
    }
    return 0;
}

static int set_names(ddp_dataset_t *d)
{
    if (!(d->class_name = calloc(CLASSES, sizeof(*d->class_name))))
        return ddp__fail(DDP_ENOMEM, "out of memory for class names");
    d->classes = CLASSES;
    for (int i = 0; i < CLASSES; i++)
        if (!(d->class_name[i] = strdup((char[]){(char)('0' + i), 0})))
            return ddp__fail(DDP_ENOMEM, "out of memory for class names");
    return 0;
}

static int load_dataset(struct ddp__pixels *p, const char *dir, bool train)
{
    struct idx images = {0}, labels = {0};
    int rc;

    if ((rc = idx_read(&images, dir,
                       train ? "train-images-idx3-ubyte"
                             : "t10k-images-idx3-ubyte",
                       3)) == 0 &&
        (rc = idx_read(&labels, dir,
                       train ? "train-labels-idx1-ubyte"
                             : "t10k-labels-idx1-ubyte",
                       1)) == 0 &&
        (rc = set_names(&p->d)) == 0)
        rc = add_images(p, &images, &labels);
    idx_free(&images);
    idx_free(&labels);
    if (rc < 0)
        return rc;
    return ddp__dataset_describe(
        &p->d, "%s, %lld images of 10 classes (MNIST's files, %s)", dir,
        (long long)p->d.count, train ? "train" : "test");
}

ddp_dataset_t *ddp_dataset_mnist(const char *dir, enum ddp_split split,
                                 const struct ddp_image_options *o)
{
    struct ddp__pixels *p;

    if (!dir) {
        ddp__fail(DDP_EINVAL, "a data set needs a folder");
        return NULL;
    }
    if (!(p = ddp__pixels_new(SIDE, o)))
        return NULL;
    if (load_dataset(p, dir, split == DDP_TRAIN) == 0)
        return &p->d;
    ddp_dataset_free(&p->d);
    return NULL;
}
