/* part.c - a data set divided for training and validation
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The samples of each class are permuted by a key of their own, and the first
 * ones are for validation.  So both parts are found from the seed alone, and
 * the fraction of every class is the same.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/philox.h"
#include "data/subset.h"

/* ---- which samples ------------------------------------------------------ */

/* A class, as the samples are counted. */
struct stratum {
    int64_t n, val; /* samples, and those for validation */
    int64_t seen;
};

/* The class; one for all, if it is not known. */
static int32_t stratum_of(const ddp_dataset_t *d, int64_t index)
{
    int32_t label = ddp__dataset_label(d, index);

    return label < 0 ? 0 : label;
}

static int64_t count_val(int64_t n, double val)
{
    int64_t some = (int64_t)floor(val * (double)n + 0.5);

    if (n < 2)
        return 0;
    return some < 1 ? 1 : some > n - 1 ? n - 1 : some;
}

static void choose_samples(struct ddp__subset *p, struct stratum *s, bool val,
                           uint64_t seed)
{
    for (int64_t i = 0; i < p->of->count; i++) {
        int32_t label = stratum_of(p->of, i);
        struct stratum *one = &s[label];
        uint64_t key = ddp__key(seed, (uint64_t)label, 0);
        int64_t place = ddp__permute(key, 0, one->n, one->seen++);

        if ((place < one->val) == val)
            p->index[p->d.count++] = i;
    }
}

static int divide(struct ddp__subset *p, bool val, double fraction,
                  uint64_t seed)
{
    const ddp_dataset_t *of = p->of;
    int classes = of->classes;
    struct stratum *s = calloc((size_t)classes + 1, sizeof(*s));

    if (!s)
        return ddp__fail(DDP_ENOMEM, "out of memory to divide %lld samples",
                         (long long)of->count);
    for (int64_t i = 0; i < of->count; i++)
        s[stratum_of(of, i)].n++;
    for (int k = 0; k <= classes; k++)
        s[k].val = count_val(s[k].n, fraction);
    choose_samples(p, s, val, seed);
    free(s);
    if (p->d.count)
        return 0;
    return ddp__fail(DDP_EDATA,
                     "%s: no class has two samples, one for training and one "
                     "for validation",
                     ddp_dataset_describe(of));
}

/* ---- making ------------------------------------------------------------- */

static int check_arguments(enum ddp_split part, double val)
{
    if (part != DDP_TRAIN && part != DDP_VAL)
        return ddp__fail(DDP_EINVAL, "data are divided for training and "
                                     "validation only");
    if (!(val > 0 && val < 1))
        return ddp__fail(DDP_EINVAL,
                         "a fraction of %g for validation, expected one above "
                         "0 and below 1",
                         val);
    return 0;
}

static int make_part(struct ddp__subset *p, enum ddp_split part, double val,
                     uint64_t seed)
{
    int rc;

    if ((rc = ddp__subset_copy_classes(&p->d, p->of)) < 0 ||
        (rc = divide(p, part == DDP_VAL, val, seed)) < 0)
        return rc;
    return ddp__dataset_describe(
        &p->d, "%s; of these %lld for %s", ddp_dataset_describe(p->of),
        (long long)p->d.count, part == DDP_VAL ? "validation" : "training");
}

ddp_dataset_t *ddp_dataset_part(ddp_dataset_t *d, enum ddp_split part,
                                double val, uint64_t seed)
{
    struct ddp__subset *p;

    if (!d) {
        ddp__fail_null("data set");
        return NULL;
    }
    p = ddp__subset_new(d, d->count, check_arguments(part, val));
    return p ? ddp__subset_finish(p, make_part(p, part, val, seed)) : NULL;
}
