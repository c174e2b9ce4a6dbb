/* options.c - how images are processed: defaults, ranges, names in files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "image/colour.h"
#include "image/erase.h"
#include "image/options.h"
#include "image/policy.h"

enum { MAX_SIZE = 16384 };

static const struct ddp_image_options defaults = {
    .struct_size = sizeof(defaults),
    .min_area = 0.08f,
    .max_area = 1,
    .horizontal_flip = 0.5f,
    .erase_count = 1,
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
    if (!(o->horizontal_flip >= 0 && o->horizontal_flip <= 1))
        return ddp__fail(DDP_EINVAL, "horizontal_flip %g, expected 0 <= p <= 1",
                         (double)o->horizontal_flip);
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
        (rc = ddp__policy_check(&o->policy)) < 0 ||
        (rc = ddp__erase_check(o)) < 0)
        return rc;
    if (o->augment == DDP_AUGMENT_SHIFT && (o->shift < 0 || o->shift > o->size))
        return ddp__fail(DDP_EINVAL, "shift by %d pixels, expected 0 to %d",
                         o->shift, o->size);
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

static const char *erase_name(enum ddp_erase kind)
{
    switch (kind) {
    case DDP_ERASE_MEAN:
        return "mean";
    case DDP_ERASE_COLOUR:
        return "colour";
    case DDP_ERASE_NOISE:
        return "noise";
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
    float flip = image->horizontal_flip;
    bool erases = any && image->erase > 0;
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
        {{"horizontal_flip", flip, NULL},
         any && flip > 0 && flip != defaults.horizontal_flip},
        {{.name = "erase_fill", .text = erase_name(image->erase_fill)},
         erases && image->erase_fill != DDP_ERASE_MEAN},
        {{"erase_count", image->erase_count, NULL},
         erases && image->erase_count > 1},
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
        {"flip", image->horizontal_flip > 0 && (crop || shift), NULL},
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

    _Static_assert(sizeof(all) / sizeof(*all) + 23 <= DDP__IMAGE_OPTIONS,
                   "room");
    memcpy(o, all, sizeof(all));
    return n + add_later(image, o + n);
}
