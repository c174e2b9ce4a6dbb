/* erase.c - random erasing: boxes of a sample that are painted over
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   pytorch/vision torchvision/transforms: RandomErasing.get_params;
 *          huggingface/pytorch-image-models timm/data/random_erasing.py; with
 *          random numbers of our own, and noise that is clipped to bytes.
 */
#include "config.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/error.h"
#include "base/philox.h"
#include "image/erase.h"

enum { TRIES = 10 };

/* The upper counter words of the keys; augment.c and policy.c have others. */
enum { BOX_KEY = 2, COUNT_KEY = 20, NOISE_KEY };

int ddp__erase_check(const struct ddp_image_options *o)
{
    if (!(o->erase >= 0 && o->erase <= 1))
        return ddp__fail(DDP_EINVAL,
                         "erase probability %g, expected 0 <= p <= 1",
                         (double)o->erase);
    if ((int)o->erase_fill < DDP_ERASE_MEAN || o->erase_fill > DDP_ERASE_NOISE)
        return ddp__fail(DDP_EINVAL, "unknown filling %d of erased boxes",
                         (int)o->erase_fill);
    if (o->erase_count < 1 || o->erase_count > DDP__ERASED)
        return ddp__fail(DDP_EINVAL, "%d erased boxes, expected 1 to %d",
                         o->erase_count, DDP__ERASED);
    return 0;
}

/* ---- boxes -------------------------------------------------------------- */

/* A number in 0..n-1 from 32 random bits. */
static int pick_number(uint32_t bits, int n)
{
    return (int)((uint64_t)bits * (uint64_t)n >> 32);
}

/* Box j of `count`; an empty one if none of some tries fits.  Shares of the
 * area and ratios are torchvision's for the mean, else timm's. */
static struct ddp__box place_box(const struct ddp_image_options *o,
                                 uint64_t key, int size, int j, int count)
{
    bool mean = o->erase_fill == DDP_ERASE_MEAN;
    const double high = log(mean ? 3.3 : 1 / 0.3), low = log(0.3);
    const double least = 0.02, most = mean ? 0.33 : 1.0 / 3;

    for (int i = 0; i < TRIES; i++) {
        struct ddp__philox r =
            ddp__philox(key, BOX_KEY, (uint64_t)(j * TRIES + i));
        double u = (double)ddp__uniform(r.v[0]);
        double v = (double)ddp__uniform(r.v[1]);
        double area = (double)size * size * (least + (most - least) * u);
        /* Round to float, because libraries differ in the last bits of
         * exp(). */
        double ratio = (double)(float)exp(low + (high - low) * v);
        double w = rint(sqrt(area / count / ratio));
        double h = rint(sqrt(area / count * ratio));

        if (w < size && h < size)
            return (struct ddp__box){pick_number(r.v[2], size - (int)w + 1),
                                     pick_number(r.v[3], size - (int)h + 1),
                                     (int)w, (int)h};
    }
    return (struct ddp__box){0};
}

struct ddp__erasure ddp__erase_plan(const struct ddp_image_options *o,
                                    uint64_t key, int size)
{
    struct ddp__erasure e = {.fill = o->erase_fill, .key = key};
    uint32_t bits = ddp__philox(key, COUNT_KEY, 0).v[0];
    int count = 1 + pick_number(bits, o->erase_count), n = 0;

    memcpy(e.mean, o->mean, sizeof(e.mean));
    memcpy(e.std, o->std, sizeof(e.std));
    for (int j = 0; j < count; j++) {
        e.box[n] = place_box(o, key, size, j, count);
        n += e.box[n].w > 0 && e.box[n].h > 0;
    }
    if (n < DDP__ERASED)
        e.box[n] = (struct ddp__box){0};
    return e;
}

/* ---- noise -------------------------------------------------------------- */

/* Numbers that stand for equal shares of a normal distribution. */
enum { QUANTILES = 4096 };
static float quantile[QUANTILES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* By Newton's method from the one before, outwards from the middle. */
static void find_quantiles(void)
{
    const double root = sqrt(2), top = sqrt(2 * acos(-1));
    double z = 0;

    for (int i = QUANTILES / 2; i < QUANTILES; i++) {
        double beyond = (QUANTILES - i - 0.5) / QUANTILES;

        for (int k = 0; k < 8; k++)
            z += (erfc(z / root) / 2 - beyond) * top * exp(z * z / 2);
        quantile[i] = (float)z;
        quantile[QUANTILES - 1 - i] = (float)-z;
    }
}

/* A value of a channel: noise of deviation 1 once it is normalised. */
static uint8_t noisy(const struct ddp__erasure *e, int channel, uint32_t bits)
{
    float z = quantile[bits % QUANTILES];
    float v = e->mean[channel] + e->std[channel] * z;

    return (uint8_t)lrintf(255 * fminf(fmaxf(v, 0.0f), 1.0f));
}

/* n values of the pixels of box j, from number `first` on. */
static void fill_noise(const struct ddp__erasure *e, int j, int64_t first,
                       int64_t n, uint8_t *to)
{
    enum { EACH = 8 }; /* of a draw: two of each word */
    struct ddp__philox r = {{0}};

    for (int64_t i = first; i < first + n; i++) {
        if (i == first || i % EACH == 0)
            r = ddp__philox(e->key, NOISE_KEY,
                            (uint64_t)j << 40 | (uint64_t)(i / EACH));
        *to++ = noisy(e, (int)(i % 3), r.v[i % EACH / 2] >> (i % 2 * 16));
    }
}

/* ---- a sample ----------------------------------------------------------- */

static uint8_t mean_value(float mean)
{
    return (uint8_t)lrintf(255 * fminf(fmaxf(mean, 0.0f), 1.0f));
}

/* The colour of box j, where all of it has one. */
static void one_colour(const struct ddp__erasure *e, int j, uint8_t colour[3])
{
    if (e->fill == DDP_ERASE_COLOUR)
        fill_noise(e, j, 0, 3, colour);
    for (int i = 0; i < 3 && e->fill == DDP_ERASE_MEAN; i++)
        colour[i] = mean_value(e->mean[i]);
}

static void erase_box(const struct ddp__erasure *e, int j, int size, uint8_t *x)
{
    const struct ddp__box *b = &e->box[j];
    uint8_t colour[3] = {0};

    one_colour(e, j, colour);
    for (int y = 0; y < b->h; y++) {
        uint8_t *row =
            x + ((size_t)(b->y + y) * (size_t)size + (size_t)b->x) * 3;

        if (e->fill == DDP_ERASE_NOISE)
            fill_noise(e, j, (int64_t)y * b->w * 3, (int64_t)b->w * 3, row);
        for (int i = 0; i < b->w && e->fill != DDP_ERASE_NOISE; i++)
            memcpy(row + (size_t)i * 3, colour, 3);
    }
}

void ddp__erase(const struct ddp__erasure *e, int size, uint8_t *x)
{
    if (e->fill != DDP_ERASE_MEAN)
        pthread_once(&once, find_quantiles);
    for (int j = 0; j < DDP__ERASED && e->box[j].w > 0; j++)
        erase_box(e, j, size, x);
}
