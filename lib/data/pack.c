/* pack.c - write the files of a data set into shards
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Samples are mixed before they are divided, for training reads some shards at
 * a time: each of them must have samples of all classes.  Everything is written
 * into a folder of another name, which gets its own at the end.
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file_write.h"
#include "base/options.h"
#include "data/dataset.h"
#include "data/tar_index.h"
#include "image/shrink.h"
#include "storage/tar.h"

enum {
    MAX_THREADS = 256,
    MAX_SAMPLES = 1000000000,
    MAX_SIDE = 32768,
    HEADER = 512
};

static const struct ddp_pack_options defaults = {
    .struct_size = sizeof(struct ddp_pack_options),
    .shard_samples = 1000,
    .threads = 1,
    .quality = 90,
};

/* A line of the index. */
struct packed {
    int64_t index, at;
    size_t len;
    uint32_t crc;
    bool shrunk; /* it is a JPEG file now */
};

struct pack {
    ddp_dataset_t *d;
    struct ddp_pack_options o;
    struct ddp__shrink how; /* without a side: not at all */
    char *dir;              /* that is written; owned */
    int shards;
    struct packed *sample; /* in the order of the shards; owned */
    pthread_mutex_t lock;  /* of what follows */
    int next, rc;
    int64_t done; /* samples */
    char message[1024];
};

void ddp_pack_options_init_sized(struct ddp_pack_options *o, size_t size)
{
    ddp__options_init(o, size, &defaults, sizeof(defaults));
}

/* ---- shards ------------------------------------------------------------- */

static char *shard_path(const struct pack *p, int shard)
{
    char *path;

    if (asprintf(&path, "%s/%06d.tar", p->dir, shard) >= 0)
        return path;
    ddp__fail(DDP_ENOMEM, "out of memory for a path");
    return NULL;
}

/* The suffix of a file's name as tools know it: short, in lower case. */
static void suffix_of(const char *name, char suffix[8])
{
    const char *dot = strrchr(name, '.');
    size_t n = dot ? strlen(dot + 1) : 0;

    strcpy(suffix, "img");
    if (n && n < 8)
        strcpy(suffix, dot + 1);
    for (char *c = suffix; *c; c++)
        *c = (char)tolower((unsigned char)*c);
}

/* Add a file, and move *end behind it: a header, and blocks of its size. */
static int add_file(struct ddp__tar *t, const char *name, const void *data,
                    size_t len, int64_t *end)
{
    *end += HEADER + (int64_t)((len + HEADER - 1) / HEADER * HEADER);
    return ddp__tar_add(t, name, data, len);
}

/* The bytes of a sample's file, as they are to be packed. */
static int load_sample(struct pack *p, struct packed *s, struct ddp__bytes *b)
{
    int rc = p->d->ops->file(p->d, s->index, b);

    if (rc == 0 && p->how.side && (rc = ddp__image_shrink(b, &p->how)) >= 0)
        s->shrunk = rc != DDP__AS_IT_WAS;
    return rc < 0 ? ddp__fail(rc, "%s: %s", ddp_dataset_path(p->d, s->index),
                              ddp_errmsg())
                  : 0;
}

/* "00000012.jpg" and its class, "00000012.cls", as WebDataset has them. */
static int add_sample(struct pack *p, struct ddp__tar *t, int64_t number,
                      struct ddp__bytes *b, int64_t *end)
{
    struct packed *s = &p->sample[number];
    char name[64], suffix[8], text[16];
    int rc;

    if ((rc = load_sample(p, s, b)) < 0)
        return rc;
    s->at = *end + HEADER;
    s->len = b->len;
    s->crc = ddp__crc32c(0, b->data, b->len);
    suffix_of(s->shrunk ? ".jpg" : p->d->ops->name(p->d, s->index), suffix);
    snprintf(name, sizeof(name), "%08lld.%s", (long long)number, suffix);
    if ((rc = add_file(t, name, b->data, b->len, end)) < 0)
        return rc;
    snprintf(name, sizeof(name), "%08lld.cls", (long long)number);
    snprintf(text, sizeof(text), "%d", ddp__dataset_label(p->d, s->index));
    return add_file(t, name, text, strlen(text), end);
}

static void count_one(struct pack *p)
{
    if (!p->o.on_count)
        return;
    pthread_mutex_lock(&p->lock);
    p->o.on_count(++p->done, p->d->count, p->o.arg);
    pthread_mutex_unlock(&p->lock);
}

/* Sample i of those from begin to before end is the next. */
static void begin_block(struct pack *p, int64_t i, int64_t begin, int64_t end)
{
    int64_t k, last = ddp__dataset_block(i, begin, end, &k);

    for (; p->d->far && k < last; k++)
        p->d->ops->ahead(p->d, p->sample[k].index);
}

static int write_shard(struct pack *p, int shard, struct ddp__bytes *b)
{
    int64_t begin = shard * p->o.shard_samples, end = 0;
    int64_t last = begin + p->o.shard_samples;
    char *path = shard_path(p, shard);
    struct ddp__tar *t = path ? ddp__tar_create(path) : NULL;
    int rc = t ? 0 : ddp_errcode();

    if (last > p->d->count)
        last = p->d->count;
    for (int64_t i = begin; rc == 0 && i < last; i++) {
        begin_block(p, i, begin, last);
        if ((rc = add_sample(p, t, i, b, &end)) == 0)
            count_one(p);
    }
    if (rc == 0)
        rc = ddp__tar_finish(t);
    else
        ddp__tar_drop(t);
    free(path);
    return rc;
}

static void *write_some(void *arg)
{
    struct ddp__bytes b = {0};
    struct pack *p = arg;

    pthread_mutex_lock(&p->lock);
    while (p->rc == 0 && p->next < p->shards) {
        int shard = p->next++, rc;

        pthread_mutex_unlock(&p->lock);
        rc = write_shard(p, shard, &b);
        pthread_mutex_lock(&p->lock);
        if (rc < 0 && p->rc == 0) {
            p->rc = rc;
            snprintf(p->message, sizeof(p->message), "%s", ddp_errmsg());
        }
    }
    pthread_mutex_unlock(&p->lock);
    free(b.data);
    return NULL;
}

/* The caller writes too, so that it is done even if no thread starts. */
static int write_shards(struct pack *p)
{
    pthread_t thread[MAX_THREADS];
    int n = 0;

    while (n < p->o.threads - 1 &&
           pthread_create(&thread[n], NULL, write_some, p) == 0)
        n++;
    write_some(p);
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    return p->rc < 0 ? ddp__fail(p->rc, "%s", p->message) : 0;
}

/* ---- index and classes -------------------------------------------------- */

/* Whether a name ends as those of JPEG files do. */
static bool names_jpeg(const char *name)
{
    char suffix[8];

    suffix_of(name, suffix);
    return !strcmp(suffix, "jpg") || !strcmp(suffix, "jpeg");
}

/* A name as a field of a table, in quotes if it needs them. */
static void write_name(FILE *f, const char *text, const char *end)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fprintf(f, "%s%s", text, end);
        return;
    }
    fputc('"', f);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', f);
        fputc(*text, f);
    }
    fprintf(f, "%s\"", end);
}

static void write_index(const struct pack *p, FILE *f)
{
    fputs("shard,offset,size,label,crc32c,name\n", f);
    for (int64_t i = 0; i < p->d->count; i++) {
        const struct packed *s = &p->sample[i];
        const char *name = p->d->ops->name(p->d, s->index);

        fprintf(f, "%06d.tar,%lld,%zu,%d,%08x,", (int)(i / p->o.shard_samples),
                (long long)s->at, s->len, ddp__dataset_label(p->d, s->index),
                s->crc);
        write_name(f, name, s->shrunk && !names_jpeg(name) ? ".jpg" : "");
        fputc('\n', f);
    }
}

static void write_classes(const struct pack *p, FILE *f)
{
    for (int i = 0; i < p->d->classes; i++)
        fprintf(f, "%s\n", p->d->class_name[i]);
}

struct text {
    char *data;
    size_t len;
};

static int put_text(struct ddp__sink *s, void *arg)
{
    const struct text *t = arg;

    return ddp__write_all(s, t->data, t->len);
}

static int write_text(const struct pack *p, const char *name,
                      void (*fill)(const struct pack *p, FILE *f))
{
    struct text t = {0};
    FILE *f = open_memstream(&t.data, &t.len);
    char *path = ddp__path_join(p->dir, name);
    bool bad = true;
    int rc;

    if (f && path) {
        fill(p, f);
        bad = ferror(f);
    }
    if (f)
        bad |= fclose(f) != 0;
    rc = bad ? ddp__fail(DDP_ENOMEM, "out of memory for %s", name)
             : ddp__file_replace(path, put_text, &t, NULL);
    free(t.data);
    free(path);
    return rc;
}

/* ---- the folder --------------------------------------------------------- */

/* What is there of it, after a failure. */
static void remove_all(const struct pack *p)
{
    static const char *const name[] = {DDP__TAR_INDEX, DDP__TAR_CLASSES};
    char *path;

    for (int i = 0; i < p->shards; i++)
        if ((path = shard_path(p, i))) {
            unlink(path);
            free(path);
        }
    for (int i = 0; i < 2; i++)
        if ((path = ddp__path_join(p->dir, name[i]))) {
            unlink(path);
            free(path);
        }
    rmdir(p->dir);
}

static int fail_folder(const char *dir, const char *what)
{
    return ddp__fail(DDP_EIO, "%s: %s: %s", dir, what, strerror(errno));
}

static int write_folder(struct pack *p, const char *dir)
{
    int rc;

    if (mkdir(p->dir, 0777) < 0)
        return fail_folder(p->dir, "cannot be created");
    if ((rc = write_shards(p)) == 0 &&
        (rc = write_text(p, DDP__TAR_CLASSES, write_classes)) == 0)
        rc = write_text(p, DDP__TAR_INDEX, write_index);
    if (rc == 0 && (rename(p->dir, dir) < 0 || ddp__parent_sync(dir) < 0))
        rc = fail_folder(dir, "cannot get its name");
    if (rc < 0) {
        struct ddp__error why = ddp__error_save();

        remove_all(p);
        ddp__error_restore(&why);
    }
    return rc;
}

/* ---- what is packed ----------------------------------------------------- */

static int check_data(const ddp_dataset_t *d)
{
    if (!d->ops->file || !d->class_name || !d->count)
        return ddp__fail(DDP_EINVAL,
                         "%s: only image files of classes can be packed",
                         ddp_dataset_describe(d));
    for (int i = 0; i < d->classes; i++)
        if (strchr(d->class_name[i], '\n'))
            return ddp__fail(DDP_EINVAL, "the name of class %d has two lines",
                             i);
    return 0;
}

static int check_options(const struct ddp_pack_options *o)
{
    if (o->shard_samples < 1 || o->shard_samples > MAX_SAMPLES)
        return ddp__fail(DDP_EINVAL, "shard_samples %lld, expected 1 to %d",
                         (long long)o->shard_samples, MAX_SAMPLES);
    if (o->threads < 1 || o->threads > MAX_THREADS)
        return ddp__fail(DDP_EINVAL, "%d threads, expected 1 to %d", o->threads,
                         MAX_THREADS);
    if (o->resize < 0 || o->resize > MAX_SIDE)
        return ddp__fail(DDP_EINVAL,
                         "resize to %d pixels, expected 1 to %d, or 0: not",
                         o->resize, MAX_SIDE);
    if (o->quality < 1 || o->quality > 100)
        return ddp__fail(DDP_EINVAL, "quality %d of JPEG, expected 1 to 100",
                         o->quality);
    if ((int)o->interpolation < DDP_BILINEAR ||
        o->interpolation >= DDP_EITHER_FILTER)
        return ddp__fail(DDP_EINVAL,
                         "unknown interpolation %d, or one for training only",
                         (int)o->interpolation);
    return 0;
}

static int prepare(struct pack *p, const char *dir)
{
    int64_t n = p->d->count, shards;

    if (access(dir, F_OK) == 0)
        return ddp__fail(DDP_EINVAL,
                         "%s: exists: remove it or choose another folder", dir);
    shards = (n + p->o.shard_samples - 1) / p->o.shard_samples;
    if (shards > 1000000)
        return ddp__fail(DDP_EINVAL,
                         "%lld shards, expected a million at most: choose "
                         "more samples for each",
                         (long long)shards);
    p->shards = (int)shards;
    if (!(p->sample = calloc((size_t)n, sizeof(*p->sample))) ||
        asprintf(&p->dir, "%s.new-%ld", dir, (long)getpid()) < 0) {
        p->dir = NULL;
        return ddp__fail(DDP_ENOMEM, "out of memory for %lld samples",
                         (long long)n);
    }
    for (int64_t i = 0; i < n; i++)
        p->sample[i].index = ddp__permute(p->o.seed, 0, n, i);
    return 0;
}

static void choose_how(struct pack *p)
{
    struct ddp_image_options image;

    ddp_image_options_init(&image);
    p->how = (struct ddp__shrink){.side = p->o.resize,
                                  .quality = p->o.quality,
                                  .filter = p->o.interpolation,
                                  .max_pixels = image.max_pixels};
}

int ddp_dataset_pack(ddp_dataset_t *d, const char *dir,
                     const struct ddp_pack_options *o)
{
    struct pack p = {.d = d, .o = defaults, .lock = PTHREAD_MUTEX_INITIALIZER};
    int rc;

    if (!d)
        return ddp__fail_null("data set");
    if (!dir)
        return ddp__fail(DDP_EINVAL, "shards need a folder");
    if ((rc = ddp__options_copy(&p.o, sizeof(p.o), o, "ddp_pack_options")) <
            0 ||
        (rc = check_options(&p.o)) < 0 || (rc = check_data(d)) < 0)
        return rc;
    choose_how(&p);
    if ((rc = prepare(&p, dir)) == 0)
        rc = write_folder(&p, dir);
    free(p.sample);
    free(p.dir);
    return rc;
}
