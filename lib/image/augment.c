/* augment.c - crop, size and flip of an image
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   pytorch/vision torchvision/transforms: Resize, CenterCrop,
 *          RandomResizedCrop.get_params, RandomCrop with padding,
 *          RandomHorizontalFlip, RandomErasing.get_params; with random numbers
 *          of our own.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "base/philox.h"
#include "image/augment.h"

enum { MAX_SIZE = 16384, TRIES = 10 };

/* ---- options ------------------------------------------------------------ */

static const struct ddp_image_options defaults = {
    .struct_size = sizeof(defaults),
    .min_area = 0.08f,
    .max_area = 1,
    .ratio = {3.0 / 4.0, 4.0 / 3.0},
    .jitter_share = 1,
    .shift = 4,
    .mean = {0.485f, 0.456f, 0.406f},
    .std = {0.229f, 0.224f, 0.225f},
    .max_pixels = 178956970, /* what Pillow refuses to go beyond */
    .max_bad = 0.001,
};

void ddp_image_options_init_sized(struct ddp_image_options *o, size_t size)
{
    ddp__options_init(o, size, &defaults, sizeof(defaults));
}

/* A sentence for each field, because no two ranges are equal.  Conditions
 * with ! also refuse NaN. */
static int check_crop(const struct ddp_image_options *o)
{
    if ((int)o->interpolation < DDP_BILINEAR ||
        o->interpolation > DDP_EITHER_FILTER ||
        (o->interpolation == DDP_EITHER_FILTER &&
         o->augment == DDP_AUGMENT_NONE))
        return ddp__fail(DDP_EINVAL,
                         "unknown interpolation %d, or one for training only",
                         (int)o->interpolation);
    if (!(o->min_area > 0 && o->min_area <= 1))
        return ddp__fail(DDP_EINVAL,
                         "min_area %g of a crop, expected 0 < area <= 1",
                         (double)o->min_area);
    if (!(o->max_area >= o->min_area && o->max_area <= 1))
        return ddp__fail(DDP_EINVAL,
                         "max_area %g of a crop, expected %g <= area <= 1",
                         (double)o->max_area, (double)o->min_area);
    if (!(o->ratio[0] >= 1e-3 && o->ratio[0] <= o->ratio[1] &&
          o->ratio[1] <= 1e3))
        return ddp__fail(DDP_EINVAL,
                         "ratio %g to %g of a crop, expected 0.001 <= least <= "
                         "most <= 1000",
                         o->ratio[0], o->ratio[1]);
    if (!(o->vertical_flip >= 0 && o->vertical_flip <= 1))
        return ddp__fail(DDP_EINVAL, "vertical_flip %g, expected 0 <= p <= 1",
                         (double)o->vertical_flip);
    return 0;
}

static int check_options(const struct ddp_image_options *o)
{
    int rc;

    if (o->size < 1 || o->size > MAX_SIZE)
        return ddp__fail(DDP_EINVAL, "image size %d, expected 1 to %d", o->size,
                         MAX_SIZE);
    if (o->resize < o->size || o->resize > 2 * MAX_SIZE)
        return ddp__fail(DDP_EINVAL,
                         "short side %d before a crop of %d, expected %d to %d",
                         o->resize, o->size, o->size, 2 * MAX_SIZE);
    if (o->augment < DDP_AUGMENT_NONE || o->augment > DDP_AUGMENT_SHIFT)
        return ddp__fail(DDP_EINVAL, "unknown augmentation %d", o->augment);
    if ((rc = check_crop(o)) < 0 || (rc = ddp__colour_check(o)) < 0 ||
        (rc = ddp__policy_check(&o->policy)) < 0)
        return rc;
    if (o->augment == DDP_AUGMENT_SHIFT && (o->shift < 0 || o->shift > o->size))
        return ddp__fail(DDP_EINVAL, "shift by %d pixels, expected 0 to %d",
                         o->shift, o->size);
    if (!(o->erase >= 0 && o->erase <= 1))
        return ddp__fail(DDP_EINVAL,
                         "erase probability %g, expected 0 <= p <= 1",
                         (double)o->erase);
    for (int i = 0; i < 3; i++)
        if (!(o->std[i] > 0) || !isfinite(o->std[i]) || !isfinite(o->mean[i]))
            return ddp__fail(DDP_EINVAL,
                             "mean %g and deviation %g of channel "
                             "%d, expected numbers, the second above 0",
                             (double)o->mean[i], (double)o->std[i], i);
    if (o->max_pixels < 1)
        return ddp__fail(DDP_EINVAL,
                         "a limit of %lld pixels, expected at least 1",
                         (long long)o->max_pixels);
    if (!(o->max_bad >= 0 && o->max_bad <= 1))
        return ddp__fail(DDP_EINVAL,
                         "max_bad %g, expected a fraction from 0 to 1",
                         o->max_bad);
    return 0;
}

int ddp__image_options(const struct ddp_image_options *in, int size,
                       struct ddp_image_options *out)
{
    int rc;

    *out = defaults;
    if ((rc = ddp__options_copy(out, sizeof(*out), in, "ddp_image_options")) <
        0)
        return rc;
    if (!out->size)
        out->size = size;
    if (!out->resize)
        out->resize = (int)((int64_t)out->size * 8 / 7);
    return check_options(out);
}

/* Names in files, so they must not change; an enumerator without a name does
 * not compile. */
#pragma GCC diagnostic error "-Wswitch"
static const char *augment_name(enum ddp_augment a)
{
    switch (a) {
    case DDP_AUGMENT_NONE:
        return "none";
    case DDP_AUGMENT_RANDOM:
        return "random_crop";
    case DDP_AUGMENT_SHIFT:
        return "shift";
    }
    return "unknown";
}

static const char *filter_name(enum ddp_interpolation kind)
{
    switch (kind) {
    case DDP_BILINEAR:
        return "bilinear";
    case DDP_BICUBIC:
        return "bicubic";
    case DDP_BOX:
        return "box";
    case DDP_HAMMING:
        return "hamming";
    case DDP_LANCZOS:
        return "lanczos";
    case DDP_EITHER_FILTER:
        return "random";
    }
    return "unknown";
}

/* An option that earlier versions did not have is in files where it is used. */
struct later {
    struct ddp_option option;
    bool used;
};

static int add_later(const struct ddp_image_options *image,
                     struct ddp_option *o)
{
    bool crop = image->augment == DDP_AUGMENT_RANDOM;
    bool any = image->augment != DDP_AUGMENT_NONE;
    const float *j = image->jitter;
    const struct ddp_policy *p = &image->policy;
    bool policy = any && p->kind != DDP_POLICY_NONE;
    bool jitters = any && (j[0] > 0 || j[1] > 0 || j[2] > 0 || j[3] > 0);
    const struct later all[] = {
        {{.name = "interpolation", .text = filter_name(image->interpolation)},
         image->interpolation != DDP_BILINEAR},
        {{"max_area", image->max_area, NULL}, crop && image->max_area < 1},
        {{"ratio_least", image->ratio[0], NULL},
         crop && image->ratio[0] != defaults.ratio[0]},
        {{"ratio_most", image->ratio[1], NULL},
         crop && image->ratio[1] != defaults.ratio[1]},
        {{"vertical_flip", image->vertical_flip, NULL},
         any && image->vertical_flip > 0},
        {{"jitter_brightness", j[0], NULL}, jitters},
        {{"jitter_contrast", j[1], NULL}, jitters},
        {{"jitter_saturation", j[2], NULL}, jitters},
        {{"jitter_hue", j[3], NULL}, jitters},
        {{"jitter_share", image->jitter_share, NULL}, jitters},
        {{"grayscale", image->grayscale, NULL}, any && image->grayscale > 0},
        {{"blur", image->blur, NULL}, any && image->blur > 0},
        {{.name = "policy", .text = ddp__policy_name(p->kind)}, policy},
        {{"policy_ops", p->ops, NULL}, policy && p->ops > 0},
        {{"policy_chains", p->chains, NULL}, policy && p->chains > 0},
        {{"policy_magnitude", p->magnitude, NULL}, policy && p->magnitude > 0},
        {{"policy_deviation", p->deviation, NULL}, policy && p->deviation > 0},
        {{"policy_probability", p->probability, NULL},
         policy && p->probability > 0},
        {{"policy_alpha", p->alpha, NULL}, policy && p->alpha > 0},
        {{"policy_increasing", p->increasing, NULL}, policy && p->increasing},
    };
    int n = 0;

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (all[i].used)
            o[n++] = all[i].option;
    return n;
}

int ddp__image_list(const struct ddp_image_options *image,
                    struct ddp_option o[DDP__IMAGE_OPTIONS])
{
    bool crop = image->augment == DDP_AUGMENT_RANDOM;
    bool shift = image->augment == DDP_AUGMENT_SHIFT;
    const float *mean = image->mean, *std = image->std;
    const struct ddp_option all[] = {
        {.name = "augment", .text = augment_name(image->augment)},
        {"resize", crop ? 0 : image->resize, NULL},
        {"min_area", crop ? image->min_area : 0, NULL},
        {"shift", shift ? image->shift : 0, NULL},
        {"flip", !image->no_flip && (crop || shift), NULL},
        {"erase", image->erase, NULL},
        {"upright", image->upright, NULL},
        {"mean_red", mean[0], NULL},
        {"mean_green", mean[1], NULL},
        {"mean_blue", mean[2], NULL},
        {"std_red", std[0], NULL},
        {"std_green", std[1], NULL},
        {"std_blue", std[2], NULL},
    };
    int n = sizeof(all) / sizeof(*all);

    _Static_assert(sizeof(all) / sizeof(*all) + 20 <= DDP__IMAGE_OPTIONS,
                   "room");
    memcpy(o, all, sizeof(all));
    return n + add_later(image, o + n);
}

/* ---- crops -------------------------------------------------------------- */

struct ddp__crop ddp__crop_whole(int w, int h, int side)
{
    struct ddp__crop c = {.box = {0, 0, w, h}, .w = side, .h = side};

    if (w <= h)
        c.h = (int64_t)((double)((int64_t)side * h) / w);
    else
        c.w = (int64_t)((double)((int64_t)side * w) / h);
    return c;
}

/* The square in the centre of the image, whose short side is resized to `side`.
 * Halves round to even, as in Python's round(). */
static struct ddp__crop centre_crop(int w, int h, int side, int size)
{
    struct ddp__crop c = ddp__crop_whole(w, h, side);

    c.x = (int64_t)rint((double)(c.w - size) / 2);
    c.y = (int64_t)rint((double)(c.h - size) / 2);
    return c;
}

/* A number in 0..n-1 from 32 random bits. */
static int pick_number(uint32_t bits, int n)
{
    return (int)((uint64_t)bits * (uint64_t)n >> 32);
}

/* The centre of the image, cut to the ratios that are allowed; at least a
 * pixel, which torchvision leaves none of where they are extreme. */
static struct ddp__box central_box(const double allowed[2], int w, int h)
{
    double ratio = (double)w / h;
    struct ddp__box b = {0, 0, w, h};

    if (ratio < allowed[0])
        b.h = (int)fmax(rint(w / allowed[0]), 1);
    else if (ratio > allowed[1])
        b.w = (int)fmax(rint(h * allowed[1]), 1);
    b.x = (w - b.w) / 2;
    b.y = (h - b.h) / 2;
    return b;
}

/* A box of random area and ratio that fits, or after some tries the centre. */
static struct ddp__box random_box(const struct ddp_image_options *o,
                                  uint64_t key, int w, int h)
{
    const double low = log(o->ratio[0]), high = log(o->ratio[1]);
    double least = (double)o->min_area, most = (double)o->max_area;

    for (int i = 0; i < TRIES; i++) {
        struct ddp__philox r = ddp__philox(key, 1, (uint64_t)i);
        double u = (double)ddp__uniform(r.v[0]);
        double v = (double)ddp__uniform(r.v[1]);
        double area = (double)w * h * (least + (most - least) * u);
        /* Round to float, because libraries differ in the last bits of
         * exp(). */
        double ratio = (double)(float)exp(low + (high - low) * v);
        double bw = rint(sqrt(area * ratio)), bh = rint(sqrt(area / ratio));

        if (bw > 0 && bw <= w && bh > 0 && bh <= h)
            return (struct ddp__box){pick_number(r.v[2], w - (int)bw + 1),
                                     pick_number(r.v[3], h - (int)bh + 1),
                                     (int)bw, (int)bh};
    }
    return central_box(o->ratio, w, h);
}

/* A box of 2 to 33 % of the sample's area to be erased, or an empty one. */
static struct ddp__box erased_box(uint64_t key, int size)
{
    const double high = log(3.3), low = log(0.3);

    for (int i = 0; i < TRIES; i++) {
        struct ddp__philox r = ddp__philox(key, 2, (uint64_t)i);
        double u = (double)ddp__uniform(r.v[0]);
        double v = (double)ddp__uniform(r.v[1]);
        double area = (double)size * size * (0.02 + (0.33 - 0.02) * u);
        double ratio = (double)(float)exp(low + (high - low) * v);
        double w = rint(sqrt(area / ratio)), h = rint(sqrt(area * ratio));

        if (w < size && h < size)
            return (struct ddp__box){pick_number(r.v[2], size - (int)w + 1),
                                     pick_number(r.v[3], size - (int)h + 1),
                                     (int)w, (int)h};
    }
    return (struct ddp__box){0};
}

static void set_fill(const struct ddp_image_options *o, struct ddp__crop *c)
{
    for (int i = 0; i < 3; i++)
        c->fill[i] =
            (uint8_t)lrintf(255 * fminf(fmaxf(o->mean[i], 0.0f), 1.0f));
}

struct ddp__crop ddp__augment(const struct ddp_image_options *o, uint64_t key,
                              int w, int h)
{
    struct ddp__philox r = ddp__philox(key, 0, 0);
    struct ddp__crop c;

    switch (o->augment) {
    case DDP_AUGMENT_RANDOM:
        c = (struct ddp__crop){
            .box = random_box(o, key, w, h), .w = o->size, .h = o->size};
        break;
    case DDP_AUGMENT_SHIFT:
        c = centre_crop(w, h, o->size, o->size);
        c.dx = pick_number(r.v[1], 2 * o->shift + 1) - o->shift;
        c.dy = pick_number(r.v[2], 2 * o->shift + 1) - o->shift;
        break;
    default:
        c = centre_crop(w, h, o->resize, o->size);
    }
    c.filter = o->interpolation;
    if (c.filter == DDP_EITHER_FILTER)
        c.filter =
            ddp__philox(key, 4, 0).v[1] >> 31 ? DDP_BICUBIC : DDP_BILINEAR;
    if (o->augment == DDP_AUGMENT_NONE)
        return c;
    c.flip = !o->no_flip && r.v[0] >> 31;
    c.vertical_flip =
        ddp__uniform(ddp__philox(key, 4, 0).v[0]) < o->vertical_flip;
    c.policy = o->policy;
    c.key = key;
    c.colour = ddp__colour_plan(o, key);
    set_fill(o, &c);
    if (ddp__uniform(r.v[3]) < o->erase)
        c.erased = erased_box(key, o->size);
    return c;
}

static void shift(uint8_t *x, int size, int dx, int dy)
{
    size_t row = (size_t)size * 3, n = (size_t)(size - abs(dx)) * 3;
    size_t to = dx > 0 ? (size_t)dx * 3 : 0,
           from = dx < 0 ? (size_t)-dx * 3 : 0;

    if (!dx && !dy)
        return;
    for (int i = 0; i < size; i++) {
        int y = dy > 0 ? size - 1 - i : i; /* not over rows still needed */
        uint8_t *out = x + (size_t)y * row;

        if (y - dy < 0 || y - dy >= size) {
            memset(out, 0, row);
            continue;
        }
        memmove(out + to, x + (size_t)(y - dy) * row + from, n);
        memset(dx > 0 ? out : out + n, 0, row - n);
    }
}

static void erase_box(uint8_t *x, int size, const struct ddp__box *b,
                      const uint8_t *fill)
{
    for (int i = b->y; i < b->y + b->h; i++)
        for (int j = b->x; j < b->x + b->w; j++)
            memcpy(x + ((size_t)i * (size_t)size + (size_t)j) * 3, fill, 3);
}

int ddp__augment_finish(const struct ddp__crop *c, int size,
                        struct ddp__bytes *room, uint8_t *x)
{
    struct ddp__canvas canvas = {.size = size, .filter = c->filter};
    int rc;

    if (c->policy.kind == DDP_TIMM_AUGMENT)
        memcpy(canvas.fill, c->fill, sizeof(canvas.fill));
    shift(x, size, c->dx, c->dy);
    if ((rc = ddp__policy_apply(&c->policy, c->key, &canvas, room, x)) < 0 ||
        (rc = ddp__colour_apply(&c->colour, size, room, x)) < 0)
        return rc;
    erase_box(x, size, &c->erased, c->fill);
    return 0;
}
