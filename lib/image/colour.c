/* colour.c - random changes of a sample's colours, and its blur
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   pytorch/vision torchvision/transforms: ColorJitter, RandomGrayscale,
 *          GaussianBlur, on images of Pillow: ImageEnhance.py, and Blend.c and
 *          Convert.c in its src/libImaging; with random numbers of our own.
 *
 * The blur sums integers, so that it has the same bits on any machine.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "image/clones.h"

#include "base/error.h"
#include "base/file.h"
#include "base/philox.h"
#include "image/augment.h"
#include "image/colour.h"

enum { BLUR_REACH = 11, BLUR_TAPS = 2 * BLUR_REACH + 1, BLUR_BITS = 15 };

/* ---- options ------------------------------------------------------------ */

static int check_share(const char *name, float p)
{
    if (p >= 0 && p <= 1)
        return 0;
    return ddp__fail(DDP_EINVAL, "probability of %s %g, expected 0 <= p <= 1",
                     name, (double)p);
}

static int check_strength(int i, float x)
{
    static const char *const name[] = {"brightness", "contrast", "saturation",
                                       "hue"};
    float most = i == DDP__HUE ? 0.5f : 1e6f;

    if (x >= 0 && x <= most)
        return 0;
    return ddp__fail(DDP_EINVAL, "jitter of %s by %g, expected 0 to %g",
                     name[i], (double)x, (double)most);
}

int ddp__colour_check(const struct ddp_image_options *o)
{
    int rc;

    for (int i = 0; i < DDP__JITTERS; i++)
        if ((rc = check_strength(i, o->jitter[i])) < 0)
            return rc;
    if ((rc = check_share("jitter", o->jitter_share)) < 0 ||
        (rc = check_share("grayscale", o->grayscale)) < 0)
        return rc;
    return check_share("blur", o->blur);
}

/* ---- what the key decides ----------------------------------------------- */

/* One of the 24 orders, each as likely as the others. */
static void draw_order(uint32_t bits, uint8_t order[DDP__JITTERS])
{
    uint32_t pick = (uint32_t)((uint64_t)bits * 24 >> 32);

    for (uint8_t i = 0; i < DDP__JITTERS; i++)
        order[i] = i;
    for (uint32_t left = DDP__JITTERS; left > 1; pick /= left, left--) {
        uint8_t *a = &order[left - 1], *b = &order[pick % left], t = *a;

        *a = *b;
        *b = t;
    }
}

static float draw_between(uint32_t bits, float low, float high)
{
    return low + (high - low) * ddp__uniform(bits);
}

struct ddp__colour ddp__colour_plan(const struct ddp_image_options *o,
                                    uint64_t key)
{
    struct ddp__philox some = ddp__philox(key, 3, 0);
    struct ddp__philox more = ddp__philox(key, 3, 1);
    struct ddp__philox r = ddp__philox(key, 3, 2);
    struct ddp__colour c = {0};
    float most = 0;

    for (int i = 0; i < DDP__JITTERS; i++) {
        float x = o->jitter[i], middle = i == DDP__HUE ? 0 : 1;
        float low = middle - x;

        if (i != DDP__HUE && low < 0)
            low = 0;
        c.factor[i] = draw_between(r.v[i], low, middle + x);
        most = fmaxf(most, x);
    }
    draw_order(some.v[3], c.order);
    c.jitter = most > 0 && ddp__uniform(some.v[0]) < o->jitter_share;
    c.gray = ddp__uniform(some.v[1]) < o->grayscale;
    if (ddp__uniform(some.v[2]) < o->blur)
        c.blur = draw_between(more.v[0], 0.1f, 2);
    return c;
}

/* ---- colours ------------------------------------------------------------ */

/* Pillow's "L": ITU-R 601-2 luma. */
static uint8_t luma(const uint8_t *x)
{
    return (uint8_t)((x[0] * 19595 + x[1] * 38470 + x[2] * 7471 + 0x8000) >>
                     16);
}

DDP__PIXEL_CLONES static void blend_with(uint8_t level, float factor, size_t n,
                                         uint8_t *x)
{
    for (size_t i = 0; i < n * 3; i++)
        x[i] = ddp__blend(level, x[i], factor);
}

/* The sum of up to 2^24 pixels fits. */
DDP__PIXEL_CLONES static uint32_t sum_luma(const uint8_t *x, size_t n)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += luma(x + 3 * i);
    return sum;
}

static uint8_t mean_luma(const uint8_t *x, size_t n)
{
    const size_t most = (size_t)1 << 24;
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i += most)
        sum += sum_luma(x + 3 * i, n - i < most ? n - i : most);
    return (uint8_t)((double)sum / (double)n + 0.5);
}

DDP__PIXEL_CLONES static void saturate(float factor, size_t n, uint8_t *x)
{
    for (size_t i = 0; i < n; i++, x += 3) {
        uint8_t grey = luma(x);

        for (int c = 0; c < 3; c++)
            x[c] = ddp__blend(grey, x[c], factor);
    }
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

struct hsv {
    uint8_t h, s, v;
};

static struct hsv to_hsv(const uint8_t *x)
{
    int most = larger(x[0], larger(x[1], x[2]));
    int range = most - smaller(x[0], smaller(x[1], x[2]));
    float from[3], h;

    if (range == 0)
        return (struct hsv){0, 0, (uint8_t)most};
    for (int c = 0; c < 3; c++)
        from[c] = (float)(most - x[c]) / (float)range;
    if (x[0] == most)
        h = from[2] - from[1];
    else if (x[1] == most)
        h = (float)(2.0 + (double)from[0] - (double)from[2]);
    else
        h = (float)(4.0 + (double)from[1] - (double)from[0]);
    h = (float)fmod((double)h / 6.0 + 1.0, 1.0);
    return (struct hsv){(uint8_t)((double)h * 255.0),
                        (uint8_t)((double)((float)range / (float)most) * 255.0),
                        (uint8_t)most};
}

static void to_rgb(struct hsv k, uint8_t *x)
{
    /* For each sixth of the circle: which of v, q, p, t are red, green, blue */
    static const uint8_t place[6][3] = {{0, 3, 2}, {1, 0, 2}, {2, 0, 3},
                                        {2, 1, 0}, {3, 2, 0}, {0, 2, 1}};
    double sixth = k.h * 6.0 / 255.0;
    int i = (int)sixth;
    double part = (double)(float)(sixth - i), s = (double)(float)(k.s / 255.0);
    uint8_t level[4] = {k.v, (uint8_t)round(k.v * (1.0 - s * part)),
                        (uint8_t)round(k.v * (1.0 - s)),
                        (uint8_t)round(k.v * (1.0 - s * (1.0 - part)))};

    for (int c = 0; c < 3; c++)
        x[c] = k.s == 0 ? k.v : level[place[i % 6][c]];
}

static void turn_hue(float turns, size_t n, uint8_t *x)
{
    uint8_t add = (uint8_t)(int)((double)turns * 255.0);

    for (size_t i = 0; i < n; i++, x += 3) {
        struct hsv k = to_hsv(x);

        k.h = (uint8_t)(k.h + add);
        to_rgb(k, x);
    }
}

void ddp__colour_adjust(int kind, float factor, size_t n, uint8_t *x)
{
    if (kind == DDP__HUE && factor != 0)
        turn_hue(factor, n, x);
    else if (kind == DDP__SATURATION && factor != 1)
        saturate(factor, n, x);
    else if (kind == DDP__BRIGHTNESS && factor != 1)
        blend_with(0, factor, n, x);
    else if (kind == DDP__CONTRAST && factor != 1)
        blend_with(mean_luma(x, n), factor, n, x);
}

static void jitter(const struct ddp__colour *c, size_t n, uint8_t *x)
{
    for (int i = 0; i < DDP__JITTERS; i++)
        ddp__colour_adjust(c->order[i], c->factor[c->order[i]], n, x);
}

static void make_gray(size_t n, uint8_t *x)
{
    for (size_t i = 0; i < n; i++, x += 3)
        memset(x, luma(x), 3);
}

/* ---- blur --------------------------------------------------------------- */

/* Weights of 15 bits whose sum is 1; returns how far they reach. */
static int blur_weights(double deviation, int32_t w[BLUR_TAPS])
{
    double pdf[BLUR_TAPS], sum = 0;
    int32_t total = 0;
    int reach = BLUR_REACH;

    for (int i = 0; i < BLUR_TAPS; i++) {
        double x = (i - BLUR_REACH) / deviation;

        sum += pdf[i] = exp(-0.5 * x * x);
    }
    for (int i = 0; i < BLUR_TAPS; i++)
        total += w[i] = (int32_t)lrint(pdf[i] / sum * (1 << BLUR_BITS));
    w[BLUR_REACH] += (1 << BLUR_BITS) - total;
    while (reach > 0 && w[BLUR_REACH - reach] == 0)
        reach--;
    return reach;
}

/* The place of 0 .. n - 1 that i is mirrored to, edges not repeated. */
static int mirrored(int i, int n)
{
    int period = n > 1 ? 2 * (n - 1) : 1;

    i = (i % period + period) % period;
    return i < n ? i : period - i;
}

/* A row, with its mirrored ends in wide, to 15 bits. */
static void blur_row(const int32_t *w, int reach, const uint8_t *x, int size,
                     uint8_t *wide, uint16_t *y)
{
    for (int i = -reach; i < size + reach; i++)
        memcpy(wide + 3 * (i + reach), x + (size_t)mirrored(i, size) * 3, 3);
    for (int i = 0; i < 3 * size; i++) {
        int32_t sum = 1 << 7;

        for (int t = -reach; t <= reach; t++)
            sum += w[BLUR_REACH + t] * wide[i + 3 * (t + reach)];
        y[i] = (uint16_t)(sum >> 8);
    }
}

static void blur_column(const int32_t *w, int reach, const uint16_t *wide,
                        int size, int row, int32_t *sum, uint8_t *y)
{
    int n = 3 * size;

    for (int i = 0; i < n; i++)
        sum[i] = 1 << 21;
    for (int t = -reach; t <= reach; t++) {
        const uint16_t *x = wide + (size_t)mirrored(row + t, size) * (size_t)n;
        int32_t weight = w[BLUR_REACH + t];

        for (int i = 0; i < n; i++)
            sum[i] += weight * x[i];
    }
    for (int i = 0; i < n; i++)
        y[i] = (uint8_t)(sum[i] >> 22);
}

static int blur(double deviation, int size, struct ddp__bytes *room, uint8_t *x)
{
    size_t n = (size_t)size * 3;
    int32_t w[BLUR_TAPS];
    int reach = blur_weights(deviation, w), rc;
    int32_t *sum;
    uint16_t *wide;
    uint8_t *row;

    if ((rc = ddp__bytes_reserve(room, n * sizeof(*sum) +
                                           n * (size_t)size * sizeof(*wide) +
                                           n + (size_t)(6 * BLUR_REACH))) < 0)
        return rc;
    sum = (int32_t *)(void *)room->data;
    wide = (uint16_t *)(void *)(sum + n);
    row = (uint8_t *)(wide + n * (size_t)size);
    for (int i = 0; i < size; i++)
        blur_row(w, reach, x + (size_t)i * n, size, row, wide + (size_t)i * n);
    for (int i = 0; i < size; i++)
        blur_column(w, reach, wide, size, i, sum, x + (size_t)i * n);
    return 0;
}

int ddp__colour_apply(const struct ddp__colour *c, int size,
                      struct ddp__bytes *room, uint8_t *x)
{
    size_t n = (size_t)size * (size_t)size;

    if (c->jitter)
        jitter(c, n, x);
    if (c->gray)
        make_gray(n, x);
    return c->blur > 0 ? blur((double)c->blur, size, room, x) : 0;
}
