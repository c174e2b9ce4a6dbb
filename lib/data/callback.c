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

static int make_callback(struct callback *c, const struct ddp_source *src)
{
    int rc;

    if (!src || !src->get)
        return ddp__fail(DDP_EINVAL, "a source needs a get()");
    if (src->count < 1)
        return ddp__fail(DDP_EINVAL,
                         "a source has %lld samples, expected at least 1",
                         (long long)src->count);
    c->src = *src;
    c->d.count = src->count;
    rc = ddp__dataset_set_samples(&c->d, src->shape, src->type, src->classes,
                                  src->target_len);
    return rc < 0
               ? rc
               : ddp__dataset_describe(&c->d, "%lld samples from the program",
                                       (long long)src->count);
}

ddp_dataset_t *ddp_dataset_callback(const struct ddp_source *src)
{
    struct callback *c = (void *)ddp__dataset_new(sizeof(*c), &ops);

    if (!c || make_callback(c, src) == 0)
        return c ? &c->d : NULL;
    ddp_dataset_free(&c->d);
    return NULL;
}
