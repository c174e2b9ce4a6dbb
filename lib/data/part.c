/* part.c - some of the samples of a data set
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * For training and validation, the samples of each class are permuted by a key
 * of their own, and the first ones are for validation.  So both parts are found
 * from the seed alone, and the fraction of every class is the same.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/philox.h"
#include "data/dataset.h"

struct part {
    struct ddp_dataset d;
    ddp_dataset_t *of; /* owned */
    int64_t *index;    /* of each sample in it; owned */
};

/* ---- the data set ------------------------------------------------------- */

static int get_sample(ddp_dataset_t *d, int64_t index, uint64_t key,
                      struct ddp_sample *s)
{
    struct part *p = (struct part *)d;

    return ddp__dataset_get(p->of, p->index[index], key, s);
}

static void begin_sample(ddp_dataset_t *d, int64_t index)
{
    struct part *p = (struct part *)d;

    p->of->ops->ahead(p->of, p->index[index]);
}

static const char *path_of(const ddp_dataset_t *d, int64_t index)
{
    const struct part *p = (const struct part *)d;

    return ddp_dataset_path(p->of, p->index[index]);
}

static uint32_t checksum(const ddp_dataset_t *d)
{
    const struct part *p = (const struct part *)d;
    uint32_t crc = p->of->ops->checksum(p->of);

    return ddp__crc32c(crc, p->index, (size_t)d->count * sizeof(*p->index));
}

static int content_of(const ddp_dataset_t *d, int64_t index,
                      struct ddp__content *c)
{
    const struct part *p = (const struct part *)d;

    if (!p->of->ops->content)
        return DDP_EDATA; /* checksum() covers it */
    return p->of->ops->content(p->of, p->index[index], c);
}

static uint32_t labels(const ddp_dataset_t *d)
{
    return ddp__dataset_labels(((const struct part *)d)->of);
}

static int options(const ddp_dataset_t *d,
                   struct ddp_option o[DDP__IMAGE_OPTIONS])
{
    const ddp_dataset_t *of = ((const struct part *)d)->of;

    return of->ops->options ? of->ops->options(of, o) : 0;
}

static void free_part(ddp_dataset_t *d)
{
    struct part *p = (struct part *)d;

    ddp_dataset_free(p->of);
    free(p->index);
}

/* Of data whose samples are known, and of others. */
static const struct ddp__dataset_ops known = {.get = get_sample,
                                              .ahead = begin_sample,
                                              .path = path_of,
                                              .checksum = checksum,
                                              .content = content_of,
                                              .labels = labels,
                                              .options = options,
                                              .free = free_part};
static const struct ddp__dataset_ops unknown = {.get = get_sample,
                                                .ahead = begin_sample,
                                                .path = path_of,
                                                .labels = labels,
                                                .options = options,
                                                .free = free_part};

/* ---- which samples ------------------------------------------------------ */

/* A class, as the samples are counted. */
struct stratum {
    int64_t n, val; /* samples, and those for validation */
    int64_t seen;
};

/* As the kind has it; one for all, if that does not know it. */
static int32_t stratum_of(const ddp_dataset_t *d, int64_t index)
{
    int32_t label = d->ops->label ? d->ops->label(d, index) : 0;

    return label < 0 ? 0 : label;
}

static int64_t count_val(int64_t n, double val)
{
    int64_t some = (int64_t)floor(val * (double)n + 0.5);

    if (n < 2)
        return 0;
    return some < 1 ? 1 : some > n - 1 ? n - 1 : some;
}

static void choose_samples(struct part *p, struct stratum *s, bool val,
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

static int divide(struct part *p, bool val, double fraction, uint64_t seed)
{
    const ddp_dataset_t *of = p->of;
    int classes = of->label_of ? of->kind_classes : of->classes;
    struct stratum *s = calloc((size_t)classes + 1, sizeof(*s));

    p->index = calloc((size_t)of->count + 1, sizeof(*p->index));
    if (!s || !p->index) {
        free(s);
        return ddp__fail(DDP_ENOMEM, "out of memory to divide %lld samples",
                         (long long)of->count);
    }
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

static int copy_names(ddp_dataset_t *d, const ddp_dataset_t *of)
{
    d->classes = of->classes;
    if (!of->class_name)
        return 0;
    if (!(d->class_name = calloc((size_t)of->classes + 1, sizeof(char *))))
        return ddp__fail(DDP_ENOMEM, "out of memory for class names");
    for (int i = 0; i < of->classes; i++)
        if (of->class_name[i] &&
            !(d->class_name[i] = strdup(of->class_name[i])))
            return ddp__fail(DDP_ENOMEM, "out of memory for class names");
    return 0;
}

static void copy_fields(ddp_dataset_t *d, const ddp_dataset_t *of)
{
    d->shape = of->shape;
    d->type = of->type;
    d->target_len = of->target_len;
    memcpy(d->mean, of->mean, sizeof(d->mean));
    memcpy(d->std, of->std, sizeof(d->std));
    d->resize = of->resize;
    d->far = of->far;
    d->max_bad = of->max_bad;
}

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

static int make_shard(struct part *p, int part, int parts)
{
    int64_t begin = p->of->count * part / parts;
    int rc;

    copy_fields(&p->d, p->of);
    if ((rc = copy_names(&p->d, p->of)) < 0)
        return rc;
    p->d.count = p->of->count * (part + 1) / parts - begin;
    if (!(p->index = calloc((size_t)p->d.count + 1, sizeof(*p->index))))
        return ddp__fail(DDP_ENOMEM, "out of memory for %lld samples",
                         (long long)p->d.count);
    for (int64_t i = 0; i < p->d.count; i++)
        p->index[i] = begin + i;
    return ddp__dataset_describe(&p->d, "%s; of these %lld, part %d of %d",
                                 ddp_dataset_describe(p->of),
                                 (long long)p->d.count, part, parts);
}

static int make_part(struct part *p, enum ddp_split part, double val,
                     uint64_t seed)
{
    int rc;

    copy_fields(&p->d, p->of);
    if ((rc = copy_names(&p->d, p->of)) < 0 ||
        (rc = divide(p, part == DDP_VAL, val, seed)) < 0)
        return rc;
    return ddp__dataset_describe(
        &p->d, "%s; of these %lld for %s", ddp_dataset_describe(p->of),
        (long long)p->d.count, part == DDP_VAL ? "validation" : "training");
}

/* Takes over of, which is freed if rc < 0, too. */
static struct part *part_new(ddp_dataset_t *of, int rc)
{
    struct part *p = NULL;

    if (rc == 0)
        p = (void *)ddp__dataset_new(sizeof(*p),
                                     of->ops->checksum ? &known : &unknown);
    if (p)
        p->of = of;
    else
        ddp_dataset_free(of);
    return p;
}

static ddp_dataset_t *finish_part(struct part *p, int rc)
{
    if (rc == 0)
        return &p->d;
    ddp_dataset_free(&p->d);
    return NULL;
}

ddp_dataset_t *ddp_dataset_part(ddp_dataset_t *d, enum ddp_split part,
                                double val, uint64_t seed)
{
    struct part *p;

    if (!d) {
        ddp__fail_null("data set");
        return NULL;
    }
    p = part_new(d, check_arguments(part, val));
    return p ? finish_part(p, make_part(p, part, val, seed)) : NULL;
}

ddp_dataset_t *ddp_dataset_shard(ddp_dataset_t *d, int part, int parts)
{
    struct part *p;
    int rc = 0;

    if (!d) {
        ddp__fail_null("data set");
        return NULL;
    }
    if (parts < 1 || part < 0 || part >= parts)
        rc = ddp__fail(DDP_EINVAL, "part %d of %d, expected 0 to %d", part,
                       parts, parts - 1);
    p = part_new(d, rc);
    return p ? finish_part(p, make_shard(p, part, parts)) : NULL;
}
