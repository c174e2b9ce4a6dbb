/* concat.c - several data sets as one
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "data/stream.h"
#include "data/subset.h"

struct concat {
    struct ddp_dataset d;
    struct ddp__dataset_ops ops; /* without those that a part lacks */
    ddp_dataset_t **part;        /* owned, each of them too */
    int64_t *begin;              /* number of the first sample; owned */
    int parts;
};

/* ---- the data set ------------------------------------------------------- */

/* The part that has sample *index, which becomes its number there. */
static ddp_dataset_t *part_of(const ddp_dataset_t *d, int64_t *index)
{
    const struct concat *c = (const struct concat *)d;
    int lo = 0, hi = c->parts;

    while (hi - lo > 1) {
        int mid = lo + (hi - lo) / 2;

        if (c->begin[mid] <= *index)
            lo = mid;
        else
            hi = mid;
    }
    *index -= c->begin[lo];
    return c->part[lo];
}

static int get_sample(ddp_dataset_t *d, int64_t index, uint64_t key,
                      struct ddp_sample *s)
{
    ddp_dataset_t *part = part_of(d, &index);

    return ddp__dataset_get(part, index, key, s);
}

static void begin_sample(ddp_dataset_t *d, int64_t index)
{
    ddp_dataset_t *part = part_of(d, &index);

    if (part->far)
        part->ops->ahead(part, index);
}

static const char *path_of(const ddp_dataset_t *d, int64_t index)
{
    const ddp_dataset_t *part = part_of(d, &index);

    return ddp_dataset_path(part, index);
}

static uint32_t checksum(const ddp_dataset_t *d)
{
    const struct concat *c = (const struct concat *)d;
    uint32_t crc = 0;

    for (int i = 0; i < c->parts; i++) {
        uint32_t one = c->part[i]->ops->checksum(c->part[i]);

        crc = ddp__crc32c(crc, &one, sizeof(one));
    }
    return ddp__crc32c(crc, c->begin, (size_t)c->parts * sizeof(*c->begin));
}

static int content_of(const ddp_dataset_t *d, int64_t index,
                      struct ddp__content *content)
{
    const ddp_dataset_t *part = part_of(d, &index);

    return part->ops->content ? part->ops->content(part, index, content)
                              : DDP_EDATA; /* checksum() covers it */
}

static uint32_t labels(const ddp_dataset_t *d)
{
    const struct concat *c = (const struct concat *)d;
    uint32_t crc = 0;

    for (int i = 0; i < c->parts; i++) {
        uint32_t one = ddp__dataset_labels(c->part[i]);

        if (one)
            crc = ddp__crc32c(crc + (uint32_t)i, &one, sizeof(one));
    }
    return crc;
}

static int options(const ddp_dataset_t *d,
                   struct ddp_option o[DDP__IMAGE_OPTIONS])
{
    const ddp_dataset_t *first = ((const struct concat *)d)->part[0];

    return first->ops->options(first, o);
}

static int file_of(ddp_dataset_t *d, int64_t index, struct ddp__bytes *b)
{
    ddp_dataset_t *part = part_of(d, &index);

    return part->ops->file(part, index, b);
}

static const char *name_of(const ddp_dataset_t *d, int64_t index)
{
    const ddp_dataset_t *part = part_of(d, &index);

    return part->ops->name(part, index);
}

static int32_t label_of(const ddp_dataset_t *d, int64_t index)
{
    const ddp_dataset_t *part = part_of(d, &index);

    return ddp__dataset_label(part, index);
}

static void free_concat(ddp_dataset_t *d)
{
    struct concat *c = (struct concat *)d;

    for (int i = 0; i < c->parts; i++)
        ddp_dataset_free(c->part[i]);
    free(c->part);
    free(c->begin);
}

static const struct ddp__dataset_ops all_ops = {
    .get = get_sample,
    .ahead = begin_sample,
    .path = path_of,
    .checksum = checksum,
    .content = content_of,
    .labels = labels,
    .options = options,
    .file = file_of,
    .name = name_of,
    .label = label_of,
    .free = free_concat,
};

/* Paths, contents and what is on its way may be known of some parts only. */
static void limit_ops(struct ddp__dataset_ops *ops,
                      const struct ddp__dataset_ops *part)
{
    if (!part->checksum)
        ops->checksum = NULL;
    if (!part->options)
        ops->options = NULL;
    if (!part->file)
        ops->file = NULL;
    if (!part->name)
        ops->name = NULL;
    if (!part->label)
        ops->label = NULL;
}

/* ---- making ------------------------------------------------------------- */

static bool same_options(const ddp_dataset_t *a, const ddp_dataset_t *b)
{
    struct ddp_option oa[DDP__IMAGE_OPTIONS], ob[DDP__IMAGE_OPTIONS];
    int na = a->ops->options ? a->ops->options(a, oa) : 0;
    int nb = b->ops->options ? b->ops->options(b, ob) : 0;

    if (na != nb)
        return false;
    for (int i = 0; i < na; i++)
        if (strcmp(oa[i].name, ob[i].name) || oa[i].value != ob[i].value ||
            strcmp(oa[i].text ? oa[i].text : "", ob[i].text ? ob[i].text : ""))
            return false;
    return true;
}

static bool same_classes(const ddp_dataset_t *a, const ddp_dataset_t *b)
{
    if (a->classes != b->classes || a->target_len != b->target_len ||
        !a->class_name != !b->class_name)
        return false;
    for (int i = 0; a->class_name && i < a->classes; i++)
        if (strcmp(a->class_name[i], b->class_name[i]))
            return false;
    return true;
}

static int check_part(ddp_dataset_t *const *part, int i)
{
    const ddp_dataset_t *a = part[0], *b = part[i];
    const char *what = NULL;

    if (a->shape.h != b->shape.h || a->shape.w != b->shape.w ||
        a->shape.c != b->shape.c || a->type != b->type)
        what = "samples of another shape or type";
    else if (!same_classes(a, b))
        what = "other classes";
    else if (!same_options(a, b))
        what = "other image options";
    return what
               ? ddp__fail(DDP_EINVAL, "data set %d, %s, has %s than the first",
                           i + 1, ddp_dataset_describe(b), what)
               : 0;
}

static int check_parts(ddp_dataset_t *const *part, int n)
{
    int rc;

    if (!part || n < 1)
        return ddp__fail(DDP_EINVAL, "a concatenation needs data sets");
    for (int i = 0; i < n; i++)
        if (!part[i])
            return ddp__fail_null("data set");
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            if (part[k] == part[i])
                return ddp__fail(DDP_EINVAL,
                                 "a data set can be in a concatenation once, "
                                 "not twice: open it again");
    rc = ddp__stream_refuse(part[0]);
    for (int i = 1; rc == 0 && i < n; i++)
        if ((rc = ddp__stream_refuse(part[i])) == 0)
            rc = check_part(part, i);
    return rc;
}

static void free_parts(ddp_dataset_t *const *part, int n)
{
    for (int i = 0; part && i < n; i++) {
        bool before = false;

        for (int k = 0; k < i; k++)
            before = before || part[k] == part[i];
        if (!before)
            ddp_dataset_free(part[i]);
    }
}

/* Takes the data sets. */
static struct concat *concat_new(ddp_dataset_t *const *part, int n)
{
    struct concat *c = (void *)ddp__dataset_new(sizeof(*c), &all_ops);
    size_t size = (size_t)n * sizeof(ddp_dataset_t *);

    if (!c) {
        free_parts(part, n);
        return NULL;
    }
    c->part = malloc(size);
    c->begin = calloc((size_t)n, sizeof(*c->begin));
    if (!c->part || !c->begin) {
        ddp__fail(DDP_ENOMEM, "out of memory for %d data sets", n);
        free_parts(part, n);
        ddp_dataset_free(&c->d);
        return NULL;
    }
    memcpy(c->part, part, size);
    c->parts = n;
    return c;
}

static int join_parts(struct concat *c)
{
    int rc;

    c->ops = all_ops;
    c->d.ops = &c->ops;
    ddp__subset_copy_fields(&c->d, c->part[0]);
    if ((rc = ddp__subset_copy_classes(&c->d, c->part[0])) < 0)
        return rc;
    for (int i = 0; i < c->parts; i++) {
        c->begin[i] = c->d.count;
        c->d.count += c->part[i]->count;
        c->d.far = c->d.far || c->part[i]->far;
        limit_ops(&c->ops, c->part[i]->ops);
    }
    return ddp__dataset_describe(&c->d, "%lld samples of %d data sets: %s, ...",
                                 (long long)c->d.count, c->parts,
                                 ddp_dataset_describe(c->part[0]));
}

ddp_dataset_t *ddp_dataset_concat(ddp_dataset_t *const *d, int n)
{
    struct concat *c;

    if (check_parts(d, n) < 0) {
        free_parts(d, n);
        return NULL;
    }
    if (!(c = concat_new(d, n)))
        return NULL;
    if (join_parts(c) == 0)
        return &c->d;
    ddp_dataset_free(&c->d);
    return NULL;
}
