/* dataset.c - the common part of all data sets: counts, names, bad samples
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "data/dataset.h"
#include "storage/settings.h"

/* ---- making and freeing ------------------------------------------------- */

ddp_dataset_t *ddp__dataset_new(size_t size, const struct ddp__dataset_ops *ops)
{
    ddp_dataset_t *d = calloc(1, size);

    if (!d) {
        ddp__fail(DDP_ENOMEM, "out of memory for a data set");
        return NULL;
    }
    d->ops = ops;
    d->max_bad = 0.001;
    for (int i = 0; i < 4; i++)
        d->std[i] = 1;
    pthread_mutex_init(&d->lock, NULL);
    return d;
}

void ddp__dataset_set_images(ddp_dataset_t *d,
                             const struct ddp_image_options *o)
{
    d->shape = (struct ddp_shape){o->size, o->size, 3};
    d->type = DDP_U8;
    d->resize = o->resize;
    d->max_bad = o->max_bad;
    memcpy(d->mean, o->mean, sizeof(o->mean));
    memcpy(d->std, o->std, sizeof(o->std));
}

/* A sentence for each field, with its value, because the reader wrote the
 * program that set it. */
static int check_samples(struct ddp_shape shape, enum ddp_dtype type,
                         int classes, int target_len)
{
    if (shape.h < 1 || shape.w < 1 || shape.c < 1)
        return ddp__fail(
            DDP_EINVAL,
            "samples of shape (%d, %d, %d), expected positive numbers", shape.h,
            shape.w, shape.c);
    if (type != DDP_F32 && type != DDP_U8)
        return ddp__fail(DDP_EINVAL,
                         "samples of type %d, expected DDP_F32 or DDP_U8",
                         (int)type);
    if (type == DDP_U8 && shape.c > 4)
        return ddp__fail(DDP_EINVAL,
                         "DDP_U8 samples have %d channels, expected at most 4",
                         shape.c);
    if (classes < 0 || target_len < 0 || (classes == 0) == (target_len == 0))
        return ddp__fail(
            DDP_EINVAL,
            "samples need either classes or a target_len, not both");
    return 0;
}

int ddp__dataset_set_samples(ddp_dataset_t *d, struct ddp_shape shape,
                             enum ddp_dtype type, int classes, int target_len)
{
    d->shape = shape;
    d->type = type;
    d->classes = classes;
    d->target_len = target_len;
    return check_samples(shape, type, classes, target_len);
}

int ddp__dataset_describe(ddp_dataset_t *d, const char *fmt, ...)
{
    va_list ap;
    char *text;
    int n;

    va_start(ap, fmt);
    n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0)
        return ddp__fail(DDP_ENOMEM, "out of memory for a description");
    ddp_printable(text);
    free(d->describe);
    d->describe = text;
    return 0;
}

void ddp_dataset_free(ddp_dataset_t *d)
{
    if (!d)
        return;
    if (d->ops->free)
        d->ops->free(d);
    for (int i = 0; d->class_name && i < d->classes; i++)
        free(d->class_name[i]);
    for (int i = 0; i < d->bad_kept; i++) {
        free(d->bad[i].path);
        free(d->bad[i].why);
    }
    free(d->class_name);
    free(d->label_of);
    free(d->describe);
    free(d->bad_index);
    free(d->bad);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

/* ---- what is in one ----------------------------------------------------- */

int64_t ddp_dataset_count(const ddp_dataset_t *d)
{
    return d ? d->count : ddp__fail_null("data set");
}

int ddp_dataset_classes(const ddp_dataset_t *d)
{
    return d ? d->classes : ddp__fail_null("data set");
}

int ddp_dataset_target_len(const ddp_dataset_t *d)
{
    return d ? d->target_len : ddp__fail_null("data set");
}

struct ddp_shape ddp_dataset_shape(const ddp_dataset_t *d)
{
    if (!d)
        ddp__fail_null("data set");
    return d ? d->shape : (struct ddp_shape){0, 0, 0};
}

int ddp_dataset_resize(const ddp_dataset_t *d)
{
    return d ? d->resize : ddp__fail_null("data set");
}

const char *ddp_dataset_class_name(const ddp_dataset_t *d, int label)
{
    if (!d)
        ddp__fail_null("data set");
    return d && d->class_name && label >= 0 && label < d->classes
               ? d->class_name[label]
               : NULL;
}

const char *ddp_dataset_describe(const ddp_dataset_t *d)
{
    if (!d)
        ddp__fail_null("data set");
    return d && d->describe ? d->describe : "";
}

const char *ddp_dataset_path(const ddp_dataset_t *d, int64_t index)
{
    if (!d)
        ddp__fail_null("data set");
    return d && d->ops->path && index >= 0 && index < d->count
               ? d->ops->path(d, index)
               : NULL;
}

size_t ddp__dataset_x_size(const ddp_dataset_t *d)
{
    return (size_t)d->shape.h * (size_t)d->shape.w * (size_t)d->shape.c *
           (d->type == DDP_F32 ? sizeof(float) : 1);
}

/* ---- bad samples -------------------------------------------------------- */

int64_t ddp_dataset_bad_limit(const ddp_dataset_t *d, double max_bad)
{
    return d ? (int64_t)ceil(max_bad * (double)d->count)
             : ddp__fail_null("data set");
}

static int64_t bad_budget(const ddp_dataset_t *d)
{
    return ddp_dataset_bad_limit(d, d->max_bad);
}

/* The slot of index in the table of bad samples, or the free slot for it. */
static int64_t *bad_slot(int64_t *table, int64_t room, int64_t index)
{
    uint64_t i = (uint64_t)index * 0x9E3779B97F4A7C15u >> 20;

    for (;; i++) {
        int64_t *slot = &table[i & (uint64_t)(room - 1)];

        if (*slot == index || *slot < 0)
            return slot;
    }
}

/* Make room for another bad index, so that the table is at most half full. */
static bool bad_grow(ddp_dataset_t *d)
{
    int64_t room = d->bad_room ? 2 * d->bad_room : 64, *table;

    if (2 * (d->bad_count + 1) <= d->bad_room)
        return true;
    if (!(table = malloc((size_t)room * sizeof(*table))))
        return false;
    for (int64_t i = 0; i < room; i++)
        table[i] = -1;
    for (int64_t i = 0; i < d->bad_room; i++)
        if (d->bad_index[i] >= 0)
            *bad_slot(table, room, d->bad_index[i]) = d->bad_index[i];
    free(d->bad_index);
    d->bad_index = table;
    d->bad_room = room;
    return true;
}

static char *name_of(const ddp_dataset_t *d, int64_t index)
{
    const char *path = ddp_dataset_path(d, index);
    char *name;

    if (path)
        return strdup(path);
    return asprintf(&name, "sample %lld", (long long)index) < 0 ? NULL : name;
}

/* Keep the path and reason of the first bad samples; without memory they are
 * only counted. */
static void bad_keep(ddp_dataset_t *d, int64_t index, const char *why)
{
    struct ddp__bad *bad, one;

    if (d->bad_kept == DDP_BAD_SAMPLES)
        return;
    if (!d->bad && !(d->bad = calloc(DDP_BAD_SAMPLES, sizeof(*bad))))
        return;
    one.path = name_of(d, index);
    one.why = strdup(why);
    if (!one.path || !one.why) {
        free(one.path);
        free(one.why);
        return;
    }
    ddp_printable(one.path);
    ddp_printable(one.why);
    d->bad[d->bad_kept++] = one;
}

/* Return DDP_EDATA with a message that names the first bad samples.  With the
 * lock held. */
static int fail_budget(ddp_dataset_t *d)
{
    char first[512] = "";
    size_t len = 0;

    for (int i = 0; i < d->bad_kept && i < 3 && len < sizeof(first); i++)
        len += (size_t)snprintf(first + len, sizeof(first) - len, "%s%s: %s",
                                i ? "; " : "", d->bad[i].path, d->bad[i].why);
    return ddp__fail(DDP_EDATA,
                     "%lld of %lld samples are bad, and max_bad allows %lld: "
                     "%s%s",
                     (long long)d->bad_count, (long long)d->count,
                     (long long)bad_budget(d), first,
                     d->bad_count > 3 ? "; ..." : "");
}

/* Record that sample index is bad, with the thread's last message as the
 * reason; fails if there are too many now. */
static int record_bad(ddp_dataset_t *d, int64_t index)
{
    char why[256];
    int64_t *slot;
    int rc = 0;

    snprintf(why, sizeof(why), "%s", ddp_errmsg());
    pthread_mutex_lock(&d->lock);
    if (!bad_grow(d)) {
        rc = ddp__fail(DDP_ENOMEM, "out of memory for a list of bad samples");
    } else if (*(slot = bad_slot(d->bad_index, d->bad_room, index)) < 0) {
        *slot = index;
        d->bad_count++;
        bad_keep(d, index, why);
    }
    if (rc == 0 && d->bad_count > bad_budget(d))
        rc = fail_budget(d);
    pthread_mutex_unlock(&d->lock);
    return rc;
}

bool ddp__dataset_is_bad(ddp_dataset_t *d, int64_t index)
{
    bool bad;

    pthread_mutex_lock(&d->lock);
    bad = d->bad_room && *bad_slot(d->bad_index, d->bad_room, index) == index;
    pthread_mutex_unlock(&d->lock);
    return bad;
}

static ddp_dataset_t *unconst(const ddp_dataset_t *d)
{
    return (ddp_dataset_t *)(uintptr_t)d;
}

/* A counter that workers may be changing. */
static int64_t read_counter(const ddp_dataset_t *d, const int64_t *counter)
{
    int64_t count;

    pthread_mutex_lock(&unconst(d)->lock);
    count = *counter;
    pthread_mutex_unlock(&unconst(d)->lock);
    return count;
}

int64_t ddp_dataset_bad_count(const ddp_dataset_t *d)
{
    return d ? read_counter(d, &d->bad_count) : ddp__fail_null("data set");
}

int64_t ddp_dataset_retries(const ddp_dataset_t *d)
{
    return d ? read_counter(d, &d->retries) : ddp__fail_null("data set");
}

int ddp_dataset_bad(const ddp_dataset_t *d, int64_t i,
                    struct ddp_bad_sample *bad)
{
    int kept;

    if (!d)
        return ddp__fail_null("data set");
    pthread_mutex_lock(&unconst(d)->lock);
    if ((kept = d->bad_kept) > i && i >= 0)
        *bad = (struct ddp_bad_sample){d->bad[i].path, d->bad[i].why};
    pthread_mutex_unlock(&unconst(d)->lock);
    if (i < 0 || i >= kept)
        return ddp__fail(DDP_EINVAL,
                         "there is no bad sample %lld: %d are known",
                         (long long)i, kept);
    return 0;
}

/* ---- reading ------------------------------------------------------------ */

/* A class of the kind, as the data set numbers it. */
static int32_t number_class(const ddp_dataset_t *d, int32_t label)
{
    return d->label_of && label >= 0 ? d->label_of[label] : label;
}

int32_t ddp__dataset_label(const ddp_dataset_t *d, int64_t index)
{
    return d->ops->label ? number_class(d, d->ops->label(d, index)) : -1;
}

/* The same for a sample with several: its target has room for all. */
static int number_classes(const ddp_dataset_t *d, float *target)
{
    float *own = calloc((size_t)d->classes, sizeof(*own));

    if (!own)
        return ddp__fail(DDP_ENOMEM, "out of memory for a target");
    for (int i = 0; i < d->kind_classes; i++)
        if (d->label_of[i] >= 0)
            own[d->label_of[i]] += target[i];
    memcpy(target, own, (size_t)d->classes * sizeof(*own));
    free(own);
    return 0;
}

int ddp__dataset_get(ddp_dataset_t *d, int64_t index, uint64_t key,
                     struct ddp_sample *s)
{
    int64_t before = ddp__file_retries();
    int rc = d->ops->get(d, index, key, s);

    if (ddp__file_retries() > before) {
        pthread_mutex_lock(&d->lock);
        d->retries += ddp__file_retries() - before;
        pthread_mutex_unlock(&d->lock);
    }
    if (rc == 0)
        s->label = number_class(d, s->label);
    return rc == 0 && d->label_of && ddp__dataset_has_several(d) && s->target
               ? number_classes(d, s->target)
               : rc;
}

/* Put the sample's name before the last message, without allocating: the
 * message may be that there is no memory. */
static int fail_named(const ddp_dataset_t *d, int64_t index, int rc)
{
    const char *path = ddp_dataset_path(d, index);
    char name[1024];

    if (path)
        snprintf(name, sizeof(name), "%s", path);
    else
        snprintf(name, sizeof(name), "sample %lld", (long long)index);
    ddp_printable(name);
    return ddp__fail(rc, "%s: %s", name, ddp_errmsg());
}

int64_t ddp__dataset_index(ddp_dataset_t *d, const struct ddp__order *o,
                           int64_t pos)
{
    if (o->repeats)
        pos /= o->repeats;
    return o->shuffle && d->ops->order ? d->ops->order(d, o, pos)
                                       : ddp__order_index(o, d->count, pos);
}

int64_t ddp__dataset_id(ddp_dataset_t *d, const struct ddp__order *o,
                        int64_t pos)
{
    return ddp__dataset_index(d, o, pos) +
           (o->repeats ? pos % o->repeats * d->count : 0);
}

int ddp__dataset_read(ddp_dataset_t *d, const struct ddp__order *o, int64_t pos,
                      bool replace, struct ddp_sample *s)
{
    const struct ddp_sample fresh = *s;

    for (int64_t tries = 0; tries < d->count; tries++) {
        int64_t at = (pos + tries) % d->count;
        int64_t id = ddp__dataset_id(d, o, at), index = id % d->count;
        int rc;

        *s = fresh;
        rc = ddp__dataset_get(d, index, ddp__order_key(o, id), s);
        if (rc != DDP_EDATA)
            return rc < 0 ? fail_named(d, index, rc) : rc;
        if ((rc = record_bad(d, index)) < 0)
            return rc;
        if (!replace)
            return DDP__BAD;
    }
    return ddp__fail(DDP_EDATA, "none of the %lld samples can be read",
                     (long long)d->count);
}

void ddp__dataset_ahead(ddp_dataset_t *d, const struct ddp__order *o,
                        int64_t pos)
{
    if (d->far)
        d->ops->ahead(d, ddp__dataset_index(d, o, pos));
}

int64_t ddp__dataset_block(int64_t i, int64_t begin, int64_t end,
                           int64_t *first)
{
    int64_t block = ddp__storage_settings()->requests;
    int64_t last = i + 2 * block < end ? i + 2 * block : end;

    *first = i == begin ? i : i + block;
    return (i - begin) % block ? *first : last;
}

/* Checks read samples in turn. */
static void begin_block(ddp_dataset_t *d, int64_t index)
{
    int64_t i, end = ddp__dataset_block(index, 0, d->count, &i);

    for (; d->far && i < end; i++)
        d->ops->ahead(d, i);
}

int ddp_dataset_get(ddp_dataset_t *d, int64_t index, uint64_t key, void *x,
                    int32_t *label)
{
    struct ddp_sample s = {.x = x, .weight = 1, .norm = 1};
    int rc;

    if (!d)
        return ddp__fail_null("data set");
    if (index < 0 || index >= d->count)
        return ddp__fail(DDP_EINVAL,
                         "there is no sample %lld: the data set has %lld",
                         (long long)index, (long long)d->count);
    if (d->target_len &&
        !(s.target = calloc((size_t)d->target_len, sizeof(float))))
        return ddp__fail(DDP_ENOMEM, "out of memory for a target");
    begin_block(d, index);
    rc = ddp__dataset_get(d, index, key, &s);
    free(s.target);
    if (rc < 0)
        return fail_named(d, index, rc);
    if (label)
        *label = s.label;
    return 0;
}
