/* arrays.c - a data set of samples that the program has in memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/options.h"
#include "data/dataset.h"

struct arrays {
    struct ddp_dataset d;
    struct ddp_arrays a;
};

/* ---- the data set ------------------------------------------------------- */

static int get_sample(ddp_dataset_t *d, int64_t index, uint64_t key,
                      struct ddp_sample *s)
{
    const struct ddp_arrays *a = &((struct arrays *)d)->a;
    size_t size = ddp__dataset_x_size(d), len = (size_t)a->target_len;

    (void)key;
    memcpy(s->x, (const char *)a->x + (size_t)index * size, size);
    if (a->label)
        s->label = a->label[index];
    if (a->target)
        memcpy(s->target, a->target + (size_t)index * len,
               len * sizeof(*a->target));
    if (a->weight)
        s->weight = a->weight[index];
    return 0;
}

static uint32_t checksum(const ddp_dataset_t *d)
{
    const struct ddp_arrays *a = &((const struct arrays *)d)->a;
    size_t n = (size_t)a->count, len = (size_t)a->target_len;
    uint32_t crc = ddp__crc32c(0, a->x, n * ddp__dataset_x_size(d));

    if (a->label)
        crc = ddp__crc32c(crc, a->label, n * sizeof(*a->label));
    if (a->target)
        crc = ddp__crc32c(crc, a->target, n * len * sizeof(*a->target));
    return a->weight ? ddp__crc32c(crc, a->weight, n * sizeof(*a->weight))
                     : crc;
}

static int32_t label_of(const ddp_dataset_t *d, int64_t index)
{
    const struct ddp_arrays *a = &((const struct arrays *)d)->a;

    return a->label ? a->label[index] : -1;
}

static const struct ddp__dataset_ops ops = {
    .get = get_sample,
    .label = label_of,
    .checksum = checksum,
};

/* ---- making ------------------------------------------------------------- */

void ddp_arrays_init_sized(struct ddp_arrays *a, size_t size)
{
    const struct ddp_arrays none = {.type = DDP_F32};

    ddp__options_init(a, size, &none, sizeof(none));
}

static int check_arrays(const struct ddp_arrays *a)
{
    bool classes = a->label && a->classes > 0;
    bool targets = a->target && a->target_len > 0;

    if (a->count < 1 || !a->x)
        return ddp__fail(DDP_EINVAL,
                         "arrays of %lld samples, expected one at least and "
                         "their x",
                         (long long)a->count);
    if (classes == targets || (!classes && a->label) || (!targets && a->target))
        return ddp__fail(DDP_EINVAL,
                         "arrays need either labels and classes, or targets "
                         "and a target_len, not both");
    for (int64_t i = 0; classes && i < a->count; i++)
        if (a->label[i] < 0 || a->label[i] >= a->classes)
            return ddp__fail(DDP_EINVAL,
                             "label %d of sample %lld, expected 0 to %d",
                             (int)a->label[i], (long long)i, a->classes - 1);
    return 0;
}

static int make_arrays(struct arrays *s, const struct ddp_arrays *given)
{
    struct ddp_arrays *a = &s->a;
    int rc;

    ddp_arrays_init(a);
    if ((rc = ddp__options_copy(a, sizeof(*a), given, "ddp_arrays")) < 0 ||
        (rc = check_arrays(a)) < 0 ||
        (rc = ddp__dataset_set_samples(&s->d, a->shape, a->type,
                                       a->label ? a->classes : 0,
                                       a->target ? a->target_len : 0)) < 0)
        return rc;
    s->d.count = a->count;
    return ddp__dataset_describe(&s->d, "%lld samples in the program's memory",
                                 (long long)a->count);
}

ddp_dataset_t *ddp_dataset_arrays(const struct ddp_arrays *a)
{
    struct arrays *s = (void *)ddp__dataset_new(sizeof(*s), &ops);

    if (!s || make_arrays(s, a) == 0)
        return s ? &s->d : NULL;
    ddp_dataset_free(&s->d);
    return NULL;
}
