/* callback.c - a data set of samples from a callback of the program
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/error.h"
#include "data/dataset.h"

struct callback {
    struct ddp_dataset d;
    struct ddp_source src;
};

static int get_sample(ddp_dataset_t *d, int64_t index, uint64_t key,
                      struct ddp_sample *s)
{
    const struct ddp_source *src = &((struct callback *)d)->src;
    int rc = src->get(src->arg, index, key, s);

    if (rc != 0)
        return ddp__fail(rc < 0 ? rc : DDP_EDATA,
                         "the program's get() returned %d for sample %lld", rc,
                         (long long)index);
    if (src->classes && (s->label < 0 || s->label >= src->classes))
        return ddp__fail(DDP_EINVAL,
                         "the program's get() returned label %d for sample "
                         "%lld, expected 0 to %d",
                         s->label, (long long)index, src->classes - 1);
    return 0;
}

static const struct ddp__dataset_ops ops = {.get = get_sample};

/* A sentence for each field, with its value, because the reader wrote the
 * program that set it. */
static int check_source(const struct ddp_source *src)
{
    if (!src || !src->get)
        return ddp__fail(DDP_EINVAL, "a source needs a get()");
    if (src->count < 1)
        return ddp__fail(DDP_EINVAL,
                         "a source has %lld samples, expected at least 1",
                         (long long)src->count);
    if (src->shape.h < 1 || src->shape.w < 1 || src->shape.c < 1)
        return ddp__fail(
            DDP_EINVAL,
            "samples of shape (%d, %d, %d), expected positive numbers",
            src->shape.h, src->shape.w, src->shape.c);
    if (src->type != DDP_F32 && src->type != DDP_U8)
        return ddp__fail(DDP_EINVAL,
                         "samples of type %d, expected DDP_F32 or DDP_U8",
                         (int)src->type);
    if (src->type == DDP_U8 && src->shape.c > 4)
        return ddp__fail(DDP_EINVAL,
                         "DDP_U8 samples have %d channels, expected at most 4",
                         src->shape.c);
    if (src->classes < 0 || src->target_len < 0 ||
        (src->classes == 0) == (src->target_len == 0))
        return ddp__fail(
            DDP_EINVAL,
            "a source needs either classes or a target_len, not both");
    return 0;
}

ddp_dataset_t *ddp_dataset_callback(const struct ddp_source *src)
{
    struct callback *c;

    if (check_source(src) < 0)
        return NULL;
    if (!(c = (void *)ddp__dataset_new(sizeof(*c), &ops)))
        return NULL;
    c->src = *src;
    c->d.count = src->count;
    c->d.shape = src->shape;
    c->d.type = src->type;
    c->d.classes = src->classes;
    c->d.target_len = src->target_len;
    if (ddp__dataset_describe(&c->d, "%lld samples from the program",
                              (long long)src->count) < 0) {
        ddp_dataset_free(&c->d);
        return NULL;
    }
    return &c->d;
}
