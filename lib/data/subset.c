/* subset.c - some of the samples of a data set, by their numbers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "data/stream.h"
#include "data/subset.h"

/* ---- the data set ------------------------------------------------------- */

static int get_sample(ddp_dataset_t *d, int64_t index, uint64_t key,
                      struct ddp_sample *s)
{
    struct ddp__subset *p = (struct ddp__subset *)d;

    return ddp__dataset_get(p->of, p->index[index], key, s);
}

static void begin_sample(ddp_dataset_t *d, int64_t index)
{
    struct ddp__subset *p = (struct ddp__subset *)d;

    p->of->ops->ahead(p->of, p->index[index]);
}

static const char *path_of(const ddp_dataset_t *d, int64_t index)
{
    const struct ddp__subset *p = (const struct ddp__subset *)d;

    return ddp_dataset_path(p->of, p->index[index]);
}

static uint32_t checksum(const ddp_dataset_t *d)
{
    const struct ddp__subset *p = (const struct ddp__subset *)d;
    uint32_t crc = p->of->ops->checksum(p->of);

    return ddp__crc32c(crc, p->index, (size_t)d->count * sizeof(*p->index));
}

static int content_of(const ddp_dataset_t *d, int64_t index,
                      struct ddp__content *c)
{
    const struct ddp__subset *p = (const struct ddp__subset *)d;

    return p->of->ops->content(p->of, p->index[index], c);
}

static uint32_t labels(const ddp_dataset_t *d)
{
    return ddp__dataset_labels(((const struct ddp__subset *)d)->of);
}

static int options(const ddp_dataset_t *d,
                   struct ddp_option o[DDP__IMAGE_OPTIONS])
{
    const ddp_dataset_t *of = ((const struct ddp__subset *)d)->of;

    return of->ops->options(of, o);
}

static int file_of(ddp_dataset_t *d, int64_t index, struct ddp__bytes *b)
{
    struct ddp__subset *p = (struct ddp__subset *)d;

    return p->of->ops->file(p->of, p->index[index], b);
}

static const char *name_of(const ddp_dataset_t *d, int64_t index)
{
    const struct ddp__subset *p = (const struct ddp__subset *)d;

    return p->of->ops->name(p->of, p->index[index]);
}

static int32_t label_of(const ddp_dataset_t *d, int64_t index)
{
    const struct ddp__subset *p = (const struct ddp__subset *)d;

    return ddp__dataset_label(p->of, p->index[index]);
}

static void free_subset(ddp_dataset_t *d)
{
    struct ddp__subset *p = (struct ddp__subset *)d;

    ddp_dataset_free(p->of);
    free(p->index);
}

/* Only what `of` can do: what is unknown of it is unknown of a part. */
static struct ddp__dataset_ops ops_like(const struct ddp__dataset_ops *of)
{
    struct ddp__dataset_ops ops = {
        .get = get_sample, .labels = labels, .free = free_subset};

    ops.ahead = of->ahead ? begin_sample : NULL;
    ops.path = of->path ? path_of : NULL;
    ops.checksum = of->checksum ? checksum : NULL;
    ops.content = of->content ? content_of : NULL;
    ops.options = of->options ? options : NULL;
    ops.file = of->file ? file_of : NULL;
    ops.name = of->name ? name_of : NULL;
    ops.label = of->label ? label_of : NULL;
    return ops;
}

/* ---- making ------------------------------------------------------------- */

void ddp__subset_copy_fields(ddp_dataset_t *d, const ddp_dataset_t *of)
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

struct ddp__subset *ddp__subset_new(ddp_dataset_t *of, int64_t room, int rc)
{
    struct ddp__subset *p = NULL;

    if (rc == 0)
        rc = ddp__stream_refuse(of);
    if (rc == 0)
        p = (void *)ddp__dataset_new(sizeof(*p), NULL);
    if (!p) {
        ddp_dataset_free(of);
        return NULL;
    }
    p->ops = ops_like(of->ops);
    p->d.ops = &p->ops;
    p->of = of;
    ddp__subset_copy_fields(&p->d, of);
    if ((p->index = calloc((size_t)room + 1, sizeof(*p->index))))
        return p;
    ddp__fail(DDP_ENOMEM, "out of memory for %lld samples", (long long)room);
    ddp_dataset_free(&p->d);
    return NULL;
}

int ddp__subset_copy_classes(ddp_dataset_t *d, const ddp_dataset_t *of)
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

ddp_dataset_t *ddp__subset_finish(struct ddp__subset *s, int rc)
{
    if (rc == 0)
        return &s->d;
    ddp_dataset_free(&s->d);
    return NULL;
}

/* ---- by their numbers --------------------------------------------------- */

static int make_shard(struct ddp__subset *p, int part, int parts)
{
    int64_t begin = p->of->count * part / parts;
    int rc;

    if ((rc = ddp__subset_copy_classes(&p->d, p->of)) < 0)
        return rc;
    p->d.count = p->of->count * (part + 1) / parts - begin;
    for (int64_t i = 0; i < p->d.count; i++)
        p->index[i] = begin + i;
    return ddp__dataset_describe(&p->d, "%s; of these %lld, part %d of %d",
                                 ddp_dataset_describe(p->of),
                                 (long long)p->d.count, part, parts);
}

ddp_dataset_t *ddp_dataset_shard(ddp_dataset_t *d, int part, int parts)
{
    struct ddp__subset *p;
    int rc = 0;

    if (!d) {
        ddp__fail_null("data set");
        return NULL;
    }
    if (parts < 1 || part < 0 || part >= parts)
        rc = ddp__fail(DDP_EINVAL, "part %d of %d, expected 0 to %d", part,
                       parts, parts - 1);
    p = ddp__subset_new(d, rc ? 0 : d->count / parts + 1, rc);
    return p ? ddp__subset_finish(p, make_shard(p, part, parts)) : NULL;
}

static int check_numbers(const ddp_dataset_t *d, const int64_t *index,
                         int64_t n)
{
    if (!index || n < 1)
        return ddp__fail(DDP_EINVAL, "a subset needs one sample at least");
    for (int64_t i = 0; i < n; i++)
        if (index[i] < 0 || index[i] >= d->count)
            return ddp__fail(DDP_EINVAL,
                             "there is no sample %lld: the data set has %lld",
                             (long long)index[i], (long long)d->count);
    return 0;
}

static int make_subset(struct ddp__subset *p, const int64_t *index, int64_t n)
{
    int rc = ddp__subset_copy_classes(&p->d, p->of);

    if (rc < 0)
        return rc;
    memcpy(p->index, index, (size_t)n * sizeof(*index));
    p->d.count = n;
    return ddp__dataset_describe(&p->d, "%s; %lld of these",
                                 ddp_dataset_describe(p->of), (long long)n);
}

ddp_dataset_t *ddp_dataset_subset(ddp_dataset_t *d, const int64_t *index,
                                  int64_t n)
{
    struct ddp__subset *p;

    if (!d) {
        ddp__fail_null("data set");
        return NULL;
    }
    p = ddp__subset_new(d, n, check_numbers(d, index, n));
    return p ? ddp__subset_finish(p, make_subset(p, index, n)) : NULL;
}
