/* tars.c - images in tar files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * An epoch goes through shards in an order of its own, and mixes samples only
 * within windows of that sequence: so that what is read at a time is in a few
 * files, and yet every position of the order can be computed by itself.
 */
#include "config.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/csv.h"
#include "base/error.h"
#include "base/philox.h"
#include "data/dataset.h"
#include "data/tar_index.h"
#include "data/tars.h"
#include "image/cache.h"
#include "image/load.h"
#include "storage/storage.h"

/* Epochs whose order is kept: the loader reads ahead into the next one. */
enum { EPOCHS = 4 };

struct tars {
    struct ddp_dataset d;
    struct ddp__dataset_ops ops; /* content() only where needed */
    struct ddp_image_options o;
    struct ddp__tars_source s;
    struct ddp__kept kept;
    pthread_mutex_t order_lock; /* of what follows */
    struct epoch {
        bool known;
        uint64_t seed;
        int64_t epoch;
        int *shard;     /* in the epoch's order; owned */
        int64_t *begin; /* position of the first sample of each; owned */
    } epoch[EPOCHS];
    int oldest;
};

/* ---- the order ---------------------------------------------------------- */

static void fill_epoch(const struct ddp__tar_index *x, struct epoch *e,
                       const struct ddp__order *o)
{
    int64_t at = 0;

    for (int i = 0; i < x->shards; i++) {
        e->shard[i] = (int)ddp__permute(o->seed, o->epoch, x->shards, i);
        e->begin[i] = at;
        at += x->shard[e->shard[i]].samples;
    }
    e->seed = o->seed;
    e->epoch = o->epoch;
    e->known = true;
}

/* With the lock. */
static const struct epoch *find_epoch(struct tars *t,
                                      const struct ddp__order *o)
{
    struct epoch *e;

    for (int i = 0; i < EPOCHS; i++)
        if (t->epoch[i].known && t->epoch[i].seed == o->seed &&
            t->epoch[i].epoch == o->epoch)
            return &t->epoch[i];
    e = &t->epoch[t->oldest];
    t->oldest = (t->oldest + 1) % EPOCHS;
    fill_epoch(&t->s.x, e, o);
    return e;
}

/* The sample at a position of the sequence of an epoch's shards. */
static int64_t sample_at(struct tars *t, const struct ddp__order *o,
                         int64_t pos)
{
    int lo = 0, hi = t->s.x.shards;
    const struct epoch *e;
    int64_t index;

    pthread_mutex_lock(&t->order_lock);
    e = find_epoch(t, o);
    while (hi - lo > 1) {
        int mid = lo + (hi - lo) / 2;

        if (e->begin[mid] <= pos)
            lo = mid;
        else
            hi = mid;
    }
    index = t->s.x.shard[e->shard[lo]].first + pos - e->begin[lo];
    pthread_mutex_unlock(&t->order_lock);
    return index;
}

static int64_t order(ddp_dataset_t *d, const struct ddp__order *o, int64_t pos)
{
    int64_t window = pos / DDP__TAR_WINDOW, begin = window * DDP__TAR_WINDOW;
    int64_t n = d->count - begin;
    uint64_t seed = ddp__key(o->seed, (uint64_t)window, 1);

    if (n > DDP__TAR_WINDOW)
        n = DDP__TAR_WINDOW;
    return sample_at((struct tars *)d, o,
                     begin + ddp__permute(seed, o->epoch, n, pos - begin));
}

static int make_epochs(struct tars *t)
{
    size_t n = (size_t)t->s.x.shards;

    for (int i = 0; i < EPOCHS; i++) {
        struct epoch *e = &t->epoch[i];

        e->shard = calloc(n, sizeof(*e->shard));
        e->begin = calloc(n, sizeof(*e->begin));
        if (!e->shard || !e->begin)
            return ddp__fail(DDP_ENOMEM,
                             "out of memory for the order of %zu "
                             "shards",
                             n);
    }
    return 0;
}

/* ---- the data set ------------------------------------------------------- */

static const char *shard_of(const struct tars *t, const struct ddp__member *m)
{
    return t->s.x.shard[m->shard].file;
}

static struct ddp__part part_of(const struct tars *t,
                                const struct ddp__member *m)
{
    return (struct ddp__part){.path = shard_of(t, m),
                              .at = m->at,
                              .len = m->len,
                              .unchecked = t->s.unchecked,
                              .crc = m->crc};
}

static int get_sample(ddp_dataset_t *d, int64_t index, uint64_t key,
                      struct ddp_sample *s)
{
    struct tars *t = (struct tars *)d;
    const struct ddp__member *m = &t->s.x.member[index];
    const struct ddp__part part = part_of(t, m);
    const struct ddp__wanted wanted = {.o = &t->o,
                                       .key = key,
                                       .kept = &t->kept,
                                       .index = index,
                                       .count = d->count};

    s->label = m->label;
    return ddp__image_load_part(t->s.in, &part, &wanted, s->x);
}

static void begin_sample(ddp_dataset_t *d, int64_t index)
{
    struct tars *t = (struct tars *)d;
    const struct ddp__member *m = &t->s.x.member[index];
    const struct ddp__part part = part_of(t, m);

    if (!ddp__image_kept(t->s.in, NULL, &part, &t->kept, index))
        t->s.in->ops->ahead(t->s.in, shard_of(t, m), m->at, m->len);
}

static int32_t label_of(const ddp_dataset_t *d, int64_t index)
{
    return ((const struct tars *)d)->s.x.member[index].label;
}

/* "folder/000012.tar: n01440764/n01440764_18.JPEG" */
static const char *path_of(const ddp_dataset_t *d, int64_t index)
{
    static _Thread_local char path[PATH_MAX];
    const struct tars *t = (const struct tars *)d;
    const struct ddp__member *m = &t->s.x.member[index];
    size_t n;

    ddp__storage_name(t->s.in, shard_of(t, m), path, sizeof(path));
    n = strlen(path);
    snprintf(path + n, sizeof(path) - n, ": %s", t->s.x.text + m->name);
    return path;
}

static int file_of(ddp_dataset_t *d, int64_t index, struct ddp__bytes *b)
{
    const struct tars *t = (const struct tars *)d;
    const struct ddp__member *m = &t->s.x.member[index];
    const struct ddp__part part = part_of(t, m);

    return ddp__part_read(t->s.in, &part, b);
}

static const char *name_of(const ddp_dataset_t *d, int64_t index)
{
    const struct ddp__tar_index *x = &((const struct tars *)d)->s.x;

    return x->text + x->member[index].name;
}

/* Names, classes, and the contents by their checksums; not where they are. */
static uint32_t checksum(const ddp_dataset_t *d)
{
    const struct ddp__tar_index *x = &((const struct tars *)d)->s.x;
    uint32_t crc = ddp__crc32c(0, x->text, x->len);

    for (int64_t i = 0; i < x->count; i++) {
        const struct ddp__member *m = &x->member[i];
        const uint32_t all[] = {(uint32_t)m->label, m->len, m->crc,
                                (uint32_t)m->shard};

        crc = ddp__crc32c(crc, all, sizeof(all));
    }
    return crc;
}

/* Of samples without a checksum, of which only names and sizes are known. */
static int content_of(const ddp_dataset_t *d, int64_t index,
                      struct ddp__content *c)
{
    const struct tars *t = (const struct tars *)d;
    const struct ddp__part part = part_of(t, &t->s.x.member[index]);
    struct ddp__bytes b = {0};
    int rc;

    c->name = t->s.x.text + t->s.x.member[index].name;
    if ((rc = ddp__part_read(t->s.in, &part, &b)) == 0)
        rc = ddp__identity_image(c, &b, t->o.max_pixels);
    free(b.data);
    return rc;
}

static int options(const ddp_dataset_t *d,
                   struct ddp_option o[DDP__IMAGE_OPTIONS])
{
    return ddp__image_list(&((const struct tars *)d)->o, o);
}

static void free_tars(ddp_dataset_t *d)
{
    struct tars *t = (struct tars *)d;

    ddp__cache_drop(&t->kept);
    ddp__tars_source_free(&t->s);
    for (int i = 0; i < EPOCHS; i++) {
        free(t->epoch[i].shard);
        free(t->epoch[i].begin);
    }
    pthread_mutex_destroy(&t->order_lock);
}

static const struct ddp__dataset_ops ops = {
    .get = get_sample,
    .order = order,
    .ahead = begin_sample,
    .label = label_of,
    .path = path_of,
    .file = file_of,
    .name = name_of,
    .checksum = checksum,
    .options = options,
    .free = free_tars,
};

/* ---- making ------------------------------------------------------------- */

void ddp__tars_source_free(struct ddp__tars_source *s)
{
    ddp__storage_close(s->in);
    ddp__tar_index_free(&s->x);
    ddp__names_free(&s->classes);
    *s = (struct ddp__tars_source){0};
}

static int make_tars(struct tars *t, const char *what, const char *more,
                     const struct ddp_image_options *o)
{
    int rc;

    if ((rc = ddp__image_options(o, 224, &t->o)) < 0 ||
        (rc = make_epochs(t)) < 0)
        return rc;
    t->d.class_name = t->s.classes.name;
    t->d.classes = t->s.classes.count;
    t->s.classes = (struct ddp__names){0};
    t->d.count = t->s.x.count;
    ddp__dataset_set_images(&t->d, &t->o);
    t->d.far = t->s.in->ops->ahead;
    return ddp__dataset_describe(&t->d,
                                 "%s, %lld images of %d classes (%d "
                                 "shards%s)",
                                 what, (long long)t->d.count, t->d.classes,
                                 t->s.x.shards, more);
}

ddp_dataset_t *ddp__tars_new(struct ddp__tars_source *s, const char *what,
                             const char *more,
                             const struct ddp_image_options *o)
{
    struct tars *t = (void *)ddp__dataset_new(sizeof(*t), &ops);

    if (!t) {
        ddp__tars_source_free(s);
        return NULL;
    }
    pthread_mutex_init(&t->order_lock, NULL);
    t->ops = ops;
    t->ops.content = s->unchecked ? content_of : NULL;
    t->d.ops = &t->ops;
    t->s = *s;
    *s = (struct ddp__tars_source){0};
    if (make_tars(t, what, more, o) == 0)
        return &t->d;
    ddp_dataset_free(&t->d);
    return NULL;
}

/* ---- opening ------------------------------------------------------------ */

static int load(const char *dir, const char *name, char **path,
                struct ddp__bytes *b)
{
    if (!(*path = ddp__path_join(dir, name)))
        return DDP_ENOMEM;
    return ddp__storage_load(*path, DDP__CSV_MAX, b);
}

int ddp__tars_load_classes(struct ddp__tars_source *s, const char *dir)
{
    struct ddp__bytes text = {0};
    char *path;
    int rc = load(dir, DDP__TAR_CLASSES, &path, &text);

    if (rc == 0)
        rc = ddp__tar_classes_read(&s->classes, path, &text);
    free(text.data);
    free(path);
    return rc;
}

static int load_index(struct ddp__tars_source *s, const char *dir)
{
    struct ddp__bytes text = {0};
    char *path;
    int rc = load(dir, DDP__TAR_INDEX, &path, &text);

    if (rc == 0)
        rc = ddp__tar_index_read(&s->x, path, &text, s->classes.count);
    free(path);
    return rc;
}

ddp_dataset_t *ddp_dataset_tars(const char *dir,
                                const struct ddp_image_options *o)
{
    struct ddp__tars_source s = {0};

    if (!dir) {
        ddp__fail(DDP_EINVAL, "a data set needs a folder");
        return NULL;
    }
    if ((s.in = ddp__storage_open(dir)) &&
        ddp__tars_load_classes(&s, dir) == 0 && load_index(&s, dir) == 0)
        return ddp__tars_new(&s, dir, "", o);
    ddp__tars_source_free(&s);
    return NULL;
}
