/* setup_data.c - the data sets that the settings name
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "common/app_log.h"
#include "class_subset.h"
#include "setup_data.h"

/* Sizes, filter and scale: those of the model where no option sets them. */
static void choose_view(const struct opts *o, const struct settings *s,
                        struct ddp_image_options *i)
{
    int native = s->data ? ddp_dataset_native_size(s->data) : 0;

    if (s->model)
        ddp_model_image_options(s->model, i);
    if (s->img_size || native) {
        i->size = (int)s->img_size;
        i->resize = 0;
    }
    if (s->resize)
        i->resize = (int)s->resize;
    if (s->crop_pct > 0 && (!s->resize || opts_given(o, "crop-pct")))
        i->resize = (int)fmin((i->size ? i->size : native) / s->crop_pct, 1e9);
    if (s->interpolation != FILTER_MODEL)
        i->interpolation =
            s->interpolation == FILTER_BICUBIC ? DDP_BICUBIC : DDP_BILINEAR;
    for (int c = 0; c < 3; c++) {
        if (opts_have(o, "mean"))
            i->mean[c] = (float)s->mean[c];
        if (opts_have(o, "std"))
            i->std[c] = (float)s->std[c];
    }
}

/* The number that the library's float was written as: 0.485, not 0.485000014.
 */
static double decimal(float x)
{
    char text[32];

    snprintf(text, sizeof(text), "%.6g", (double)x);
    return strtod(text, NULL);
}

/* What that has come to, to be recorded. */
static void take_view(const struct opts *o, struct settings *s,
                      enum ddp_split split, const struct ddp_image_options *i,
                      const ddp_dataset_t *d)
{
    if (split == DDP_TRAIN || !s->val_size)
        s->img_size = ddp_dataset_shape(d).h;
    if (i->augment == DDP_AUGMENT_NONE || s->train_filter == TRAIN_FILTER_SAME)
        s->interpolation =
            i->interpolation == DDP_BICUBIC ? FILTER_BICUBIC : FILTER_BILINEAR;
    for (int c = 0; c < 3; c++) {
        if (!opts_have(o, "mean"))
            s->mean[c] = decimal(i->mean[c]);
        if (!opts_have(o, "std"))
            s->std[c] = decimal(i->std[c]);
    }
}

static void choose_colours(const struct settings *s,
                           struct ddp_image_options *i)
{
    for (int c = 0; c < 4; c++)
        i->jitter[c] = (float)s->jitter[c];
    i->jitter_share = (float)s->jitter_share;
    i->grayscale = (float)s->grayscale;
    i->blur = (float)s->blur;
}

int setup_policy(const struct settings *s, struct ddp_policy *p)
{
    int rc = 0;

    *p = (struct ddp_policy){0};
    if (!s->policy || (rc = ddp_policy_parse(s->policy, p)) < 0)
        return rc;
    if (!strcmp(s->policy, "ra"))
        p->magnitude = (double)s->ra_magnitude;
    if (!strcmp(s->policy, "augmix"))
        p->magnitude = (double)s->augmix_severity;
    return 0;
}

static void image_options(const struct opts *o, const struct settings *s,
                          enum ddp_split split, struct ddp_image_options *i)
{
    static const enum ddp_augment augment[] = {
        DDP_AUGMENT_NONE, DDP_AUGMENT_RANDOM, DDP_AUGMENT_SHIFT};

    ddp_image_options_init(i);
    choose_view(o, s, i);
    if (split != DDP_TRAIN && s->val_size)
        i->size = (int)s->val_size;
    i->upright = s->upright;
    i->max_pixels = s->max_pixels;
    i->max_bad = s->max_bad;
    if (split != DDP_TRAIN || augment[s->augment] == DDP_AUGMENT_NONE)
        return;
    i->augment = augment[s->augment];
    i->min_area = (float)s->area[0];
    i->max_area = (float)s->area[1];
    i->ratio[0] = s->ratio[0];
    i->ratio[1] = s->ratio[1];
    if (s->train_filter != TRAIN_FILTER_SAME)
        i->interpolation = (enum ddp_interpolation)(s->train_filter - 1);
    i->vertical_flip = (float)s->vflip;
    setup_policy(s, &i->policy); /* recipe_check() has read it */
    choose_colours(s, i);
    i->shift = (int)s->shift;
    i->horizontal_flip = (float)s->hflip;
    i->erase = (float)s->erase;
    i->erase_fill = (enum ddp_erase)s->erase_fill;
    i->erase_count = (int)s->erase_count;
}

static int check_folder(const struct opts *o, const char *name, const char *dir)
{
    if (dir &&
        (strstr(dir, "://") || strchr(dir, '{') || access(dir, F_OK) == 0))
        return OPTS_GO; /* the library knows which files are data */
    if (dir)
        opt_complain(o, "--%s: there is no folder or file %s", name, dir);
    else
        opt_complain(o, "--%s DIR is missing", name);
    return EXIT_USAGE;
}

/* Numbers of a list are for programs that have a loss for them. */
static int check_classes(const ddp_dataset_t *d)
{
    if (ddp_dataset_classes(d) > 0)
        return OPTS_GO;
    app_say("%s, expected classes", ddp_dataset_describe(d));
    return EXIT_DATA;
}

unsigned setup_splits(const char *data)
{
    unsigned splits = ddp_dataset_splits(data);

    if (!splits)
        return 1U << DDP_TRAIN;
    if (!(splits & 1U << DDP_TRAIN))
        app_say("%s has no training images", data);
    if (!(splits & 1U << DDP_VAL))
        app_say("%s has no validation images", data);
    return splits;
}

int setup_data(const struct opts *o, struct settings *s, enum ddp_split split,
               ddp_dataset_t **d)
{
    struct ddp_image_options images;
    int rc = check_folder(o, "data", s->data);

    if (rc != OPTS_GO)
        return rc;
    image_options(o, s, split, &images);
    if (!(*d = ddp_dataset_open(s->data, split, &images)))
        return app_fail(ddp_errcode());
    take_view(o, s, split, &images, *d);
    return check_classes(*d);
}

/* Training images are in both parts, prepared for each as it needs. */
int setup_part(const struct opts *o, struct settings *s, enum ddp_split part,
               ddp_dataset_t **d)
{
    struct ddp_image_options images;
    int rc = check_folder(o, "data", s->data);

    if (rc != OPTS_GO)
        return rc;
    image_options(o, s, part, &images);
    *d = ddp_dataset_part(ddp_dataset_open(s->data, DDP_TRAIN, &images), part,
                          s->val_split, (uint64_t)s->seed);
    if (!*d)
        return app_fail(ddp_errcode());
    take_view(o, s, part, &images, *d);
    return check_classes(*d);
}

/* Classes have the numbers of the training images, by name; with --classes the
 * others are left out. */
static int same_classes(const struct settings *s, ddp_dataset_t **d,
                        const ddp_dataset_t *train)
{
    int n = ddp_dataset_classes(train), rc;
    const char **name = calloc((size_t)n + 1, sizeof(*name));

    if (!name)
        return app_exit_code(DDP_ENOMEM);
    for (int i = 0; i < n; i++)
        name[i] = ddp_dataset_class_name(train, i);
    rc = class_subset_match(s, n, name, d);
    if (rc == OPTS_GO && s->val_data &&
        ddp_dataset_set_classes(*d, n, name) < 0)
        rc = app_fail(ddp_errcode());
    free(name);
    return rc;
}

static int open_val_folder(const struct opts *o, struct settings *s,
                           ddp_dataset_t **d)
{
    struct ddp_image_options images;
    int rc = check_folder(o, "val", s->val_data);

    if (rc != OPTS_GO)
        return rc;
    image_options(o, s, DDP_VAL, &images);
    *d = ddp_dataset_open(s->val_data,
                          ddp_dataset_splits(s->val_data) ? DDP_VAL : DDP_TRAIN,
                          &images);
    return *d ? OPTS_GO : app_fail(ddp_errcode());
}

int setup_val(const struct opts *o, struct settings *s,
              const ddp_dataset_t *train, ddp_dataset_t **d)
{
    int rc = s->val_data        ? open_val_folder(o, s, d)
             : s->val_split > 0 ? setup_part(o, s, DDP_VAL, d)
                                : setup_data(o, s, DDP_VAL, d);

    if (rc == OPTS_GO)
        rc = same_classes(s, d, train);
    if (rc != OPTS_GO)
        app_say("name a folder of validation images with --val DIR, hold back "
                "training images with --val-split 10%%, or train without "
                "validation: --no-val");
    return rc;
}

int setup_images(const struct opts *o, struct settings *s,
                 const char *const *path, int64_t n, ddp_dataset_t **d)
{
    struct ddp_image_options images;

    image_options(o, s, DDP_VAL, &images);
    images.max_bad = 1; /* each is reported, and the caller counts them */
    if (!(*d = ddp_dataset_images(path, n, &images)))
        return app_fail(ddp_errcode());
    take_view(o, s, DDP_VAL, &images, *d);
    return OPTS_GO;
}

/* With a search path, --data may be a name. */
static bool is_name(const char *data)
{
    return (getenv("DDP_DATASETS_PATH") || getenv("JULIA_DATASETS_PATH")) &&
           !strstr(data, "://") && !strchr(data, '{') &&
           access(data, F_OK) != 0;
}

int setup_named(struct settings *s)
{
    char where[4096], *data;
    int rc;

    if (!s->data || (!s->data_config && !is_name(s->data)))
        return OPTS_GO;
    if ((rc = ddp_dataset_find(s->data_config, s->data, where, sizeof(where))) <
        0)
        return app_fail(rc);
    if (!(data = strdup(where)))
        return app_exit_code(DDP_ENOMEM);
    free(s->data);
    free(s->data_config);
    s->data = data;
    s->data_config = NULL;
    return OPTS_GO;
}

int64_t setup_report_bad(const ddp_dataset_t *d, int64_t from, const char *what)
{
    struct ddp_bad_sample b;
    int64_t n = d ? ddp_dataset_bad_count(d) : 0;
    int64_t known = n < DDP_BAD_SAMPLES ? n : DDP_BAD_SAMPLES;

    /* To ask for more would replace the last message. */
    for (int64_t i = from; i < known && ddp_dataset_bad(d, i, &b) == 0; i++)
        app_say("%s: %s: %s", what, b.path, b.why);
    return n;
}

void setup_report_retries(const ddp_dataset_t *d)
{
    int64_t n = d ? ddp_dataset_retries(d) : 0;

    if (n)
        app_say(
            "%lld reads of images failed by a fault of the storage and were "
            "tried again",
            (long long)n);
}

void setup_report_storage(void)
{
    struct ddp_storage_stats s;
    int64_t reads;

    ddp_storage_stats(&s);
    reads = s.cache_hits + s.cache_misses;
    if (!s.requests && !reads)
        return;
    app_print("storage requests=%lld retries=%lld MB=%.1f",
              (long long)s.requests, (long long)s.retries,
              1e-6 * (double)s.bytes);
    if (reads)
        app_print(" cache-hits=%.1f%%",
                  100 * (double)s.cache_hits / (double)reads);
    app_print("\n");
}
