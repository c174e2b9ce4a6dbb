/* setup.c - networks, data sets and devices as the settings name them
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
#include "common/app_peer.h"
#include "common/opt_file.h"
#include "common/opt_value.h"
#include "class_subset.h"
#include "foreign.h"
#include "options.h"
#include "setup.h"

static const char *model_word(const void *arg, int i)
{
    (void)arg;
    return ddp_model_name(i);
}

/* timm's names of torchvision's networks. */
static int rename_model(struct settings *s)
{
    const char *name = foreign_model(s->model);
    char *copy;

    if (name == s->model)
        return OPTS_GO;
    if (!(copy = strdup(name)))
        return app_exit_code(DDP_ENOMEM);
    free(s->model);
    s->model = copy;
    return OPTS_GO;
}

int setup_check_model(const struct opts *o, struct settings *s)
{
    const char *name;
    int rc = rename_model(s);

    if (rc != OPTS_GO)
        return rc;
    for (int i = 0; (name = ddp_model_name(i)); i++)
        if (!strcmp(s->model, name))
            return opts_only(o, "hidden", !strcmp(name, "mlp"),
                             "only --model mlp has hidden layers");
    opt_complain_word(o, "model", s->model, model_word, NULL);
    return EXIT_USAGE;
}

/* The widths of mlp up to the classes: all pixels, the hidden layers. */
static void mlp_sizes(const struct settings *s, int sizes[OPT_WIDTHS_MAX + 2])
{
    int n = 0;

    sizes[n++] = (int)(s->img_size * s->img_size * 3);
    for (int i = 0; s->hidden[i]; i++)
        sizes[n++] = s->hidden[i];
    sizes[n] = 0;
}

/* Below 0 the option means the network's. */
static float library_rate(double asked)
{
    return asked < 0 ? DDP_MODEL_RATE : (float)asked;
}

ddp_chain_t *setup_model(const struct settings *s)
{
    int sizes[OPT_WIDTHS_MAX + 2];
    struct ddp_model_options m;

    ddp_model_options_init(&m);
    if (s->classes)
        m.classes = (int)s->classes;
    if (s->width)
        m.width = (int)s->width;
    m.small_stem = s->small_stem;
    m.no_aux = s->no_aux;
    m.dropout = library_rate(s->drop);
    m.stochastic_depth = library_rate(s->drop_path);
    m.zero_init_residual = s->zero_init_residual;
    if (!strcmp(s->model, "mlp")) {
        mlp_sizes(s, sizes);
        m.sizes = sizes;
    }
    return ddp_model_new(s->model, &m);
}

static int ignore_layer(const struct ddp_layer_info *info, void *arg)
{
    (void)info;
    (void)arg;
    return 0;
}

static bool fits(ddp_chain_t *c, int64_t size)
{
    struct ddp_shape in = {(int)size, (int)size, 3};

    return ddp_chain_inspect(c, in, DDP_F32, ignore_layer, NULL) == 0;
}

/* Images too small vanish somewhere in the network: say from which size on they
 * do not. */
static int check_size(const struct settings *s, ddp_chain_t *c)
{
    enum { LARGEST = 1024 };

    if (fits(c, s->img_size))
        return OPTS_GO;
    for (int64_t least = s->img_size + 1; least <= LARGEST; least++)
        if (fits(c, least)) {
            app_say("--img-size %lld is too small for %s, which needs images "
                    "of %lldx%lld or larger",
                    (long long)s->img_size, s->model, (long long)least,
                    (long long)least);
            return EXIT_USAGE;
        }
    fits(c, s->img_size);
    return app_fail(ddp_errcode());
}

int setup_network(const struct settings *s, ddp_chain_t **c)
{
    if (!(*c = setup_model(s)))
        return app_fail(ddp_errcode());
    return check_size(s, *c);
}

enum ddp_dtype setup_dtype(const struct settings *s)
{
    static const enum ddp_dtype type[] = {DDP_F32, DDP_BF16, DDP_F16};

    return type[s->dtype];
}

const char *setup_dtype_name(const struct settings *s)
{
    static const char *const name[] = {
        [DDP_F32] = "f32", [DDP_BF16] = "bf16", [DDP_F16] = "f16"};

    return name[setup_dtype(s)];
}

enum ddp_tta setup_tta(const struct settings *s)
{
    return s->tta ? DDP_TTA_FLIP : DDP_TTA_NONE;
}

void setup_evaluation(const struct settings *s, struct ddp_evaluate_config *c)
{
    ddp_evaluate_config_init(c);
    c->sub_batch = (int)s->sub_batch;
    c->dtype = setup_dtype(s);
    c->tta = setup_tta(s);
}

size_t setup_params(const ddp_chain_t *c)
{
    struct ddp_param_info p;
    size_t sum = 0;

    for (int i = 0; ddp_chain_param(c, i, &p) == 0; i++)
        if (p.role != DDP_RUNNING)
            sum += p.len;
    return sum;
}

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
        opt_complain(o, "--%s: %s is not a folder, nor a file", name, dir);
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

int64_t setup_report_bad(const ddp_dataset_t *d, int64_t from, const char *what)
{
    struct ddp_bad_sample b;
    int64_t n = d ? ddp_dataset_bad_count(d) : 0;

    for (int64_t i = from; i < n && ddp_dataset_bad(d, i, &b) == 0; i++)
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

int setup_storage(const struct settings *s)
{
    struct ddp_storage_config c;

    ddp_storage_config_init(&c);
    if (s->storage_timeout)
        c.timeout = (double)s->storage_timeout;
    if (s->storage_requests)
        c.requests = (int)s->storage_requests;
    c.cache_dir = s->cache_dir;
    if (s->cache_size > 0)
        c.cache_size = (int64_t)(s->cache_size * 1e9);
    return ddp_storage_configure(&c) < 0 ? app_fail(ddp_errcode()) : OPTS_GO;
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

int setup_config(struct opts *o, const struct settings *s)
{
    char *installed;
    int rc;

    if (!s->config)
        return OPTS_GO;
    if (strchr(s->config, '/') || access(s->config, F_OK) == 0)
        return opts_configure(o, s->config);
    if (asprintf(&installed, "%s/%s.conf", DDP_RECIPES, s->config) < 0)
        return app_exit_code(DDP_ENOMEM);
    rc =
        opts_configure(o, access(installed, F_OK) == 0 ? installed : s->config);
    free(installed);
    return rc;
}

int setup_devices(const struct settings *s, ddp_t **ddp)
{
    struct ddp_config cfg;

    ddp_config_init(&cfg);
    if (s->workers)
        cfg.cpus = (int)s->workers;
    if (s->device == DEVICE_CPU)
        cfg.gpus = 0;
    cfg.backend = s->backend ? "ref" : "cpu";
    cfg.peer_timeout = (double)s->peer_timeout;
    cfg.on_peer_lost = app_peer_lost;
    if (!(*ddp = ddp_init(&cfg)))
        return app_fail(ddp_errcode());
    return OPTS_GO;
}
