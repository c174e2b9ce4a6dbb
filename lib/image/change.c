/* change.c - the operations of augmentation policies on a sample
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   Pillow's ImageOps.py, ImageEnhance.py and ImageFilter.SMOOTH, as
 *          torchvision's and timm's auto-augment modules call them.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "image/change.h"
#include "image/clones.h"
#include "image/colour.h"
#include "image/warp.h"

/* ---- levels ------------------------------------------------------------- */

static uint8_t limited(double level)
{
    return level <= 0 ? 0 : level >= 255 ? 255 : (uint8_t)level;
}

/* The level that v becomes, of operations that are the same for any image. */
static uint8_t level_of(const struct ddp__change *c, int v)
{
    int bits = (int)c->by;

    if (c->kind == DDP__INVERT)
        return (uint8_t)(255 - v);
    if (c->kind == DDP__SOLARIZE)
        return (uint8_t)(v < c->by ? v : 255 - v);
    if (c->kind == DDP__SOLARIZE_ADD)
        return v < 128 ? limited(v + floor(c->by)) : (uint8_t)v;
    return bits >= 8 ? (uint8_t)v : (uint8_t)(v & ~((1 << (8 - bits)) - 1));
}

static void map_levels(const struct ddp__change *c, size_t n, uint8_t *x)
{
    uint8_t table[256];

    for (int v = 0; v < 256; v++)
        table[v] = level_of(c, v);
    for (size_t i = 0; i < 3 * n; i++)
        x[i] = table[x[i]];
}

/* The levels of a channel between the lowest and the highest that it has. */
static void stretch(int low, int high, uint8_t table[256])
{
    double scale = high > low ? 255.0 / (high - low) : 1;

    for (int v = 0; v < 256; v++)
        table[v] = high > low ? limited(v * scale - low * scale) : (uint8_t)v;
}

/* The levels of a channel, from the number of pixels that have each. */
static void equalize(const uint32_t count[256], uint8_t table[256])
{
    uint32_t sum = 0, last = 0, step, n;
    int levels = 0;

    for (int v = 0; v < 256; v++)
        if (count[v]) {
            sum += last = count[v];
            levels++;
        }
    step = (sum - last) / 255;
    n = step / 2;
    for (int v = 0; v < 256; v++) {
        table[v] = levels < 2 || !step ? (uint8_t)v : limited(n / step);
        n += count[v];
    }
}

static void map_channels(uint8_t table[3][256], size_t n, uint8_t *x)
{
    for (size_t i = 0; i < n; i++, x += 3)
        for (int c = 0; c < 3; c++)
            x[c] = table[c][x[c]];
}

static uint8_t smaller(uint8_t a, uint8_t b)
{
    return a < b ? a : b;
}

static uint8_t larger(uint8_t a, uint8_t b)
{
    return a > b ? a : b;
}

/* The lowest and the highest level of each channel: of 64 pixels at a time, of
 * what is left, and of all of these. */
DDP__PIXEL_CLONES static void find_range(const uint8_t *x, size_t n,
                                         uint8_t low[3], uint8_t high[3])
{
    enum { LANES = 3 * 64 };
    uint8_t lo[LANES], hi[LANES];
    size_t len = 3 * n, i;

    memset(lo, 255, sizeof(lo));
    memset(hi, 0, sizeof(hi));
    for (i = 0; i + LANES <= len; i += LANES)
        for (int k = 0; k < LANES; k++) {
            lo[k] = smaller(lo[k], x[i + (size_t)k]);
            hi[k] = larger(hi[k], x[i + (size_t)k]);
        }
    for (size_t k = 0; i + k < len; k++) {
        lo[k] = smaller(lo[k], x[i + k]);
        hi[k] = larger(hi[k], x[i + k]);
    }
    for (int c = 0; c < 3; c++) {
        low[c] = 255;
        high[c] = 0;
        for (int k = c; k < LANES; k += 3) {
            low[c] = smaller(low[c], lo[k]);
            high[c] = larger(high[c], hi[k]);
        }
    }
}

static void auto_contrast(size_t n, uint8_t *x)
{
    uint8_t table[3][256], low[3], high[3];

    find_range(x, n, low, high);
    for (int c = 0; c < 3; c++)
        stretch(low[c], high[c], table[c]);
    map_channels(table, n, x);
}

/* Neighbours are counted apart: they often have the same level, and a count
 * that was just written takes a while to be read. */
static void equalize_channels(size_t n, uint8_t *x)
{
    uint32_t count[2][3][256] = {{{0}}};
    uint8_t table[3][256];

    for (size_t i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            count[i & 1][c][x[3 * i + (size_t)c]]++;
    for (int c = 0; c < 3; c++) {
        for (int v = 0; v < 256; v++)
            count[0][c][v] += count[1][c][v];
        equalize(count[0][c], table[c]);
    }
    map_channels(table, n, x);
}

/* ---- sharpness ---------------------------------------------------------- */

/* Between a smoothed copy, rounded, and x; the edges of the copy are those of
 * x. */
DDP__PIXEL_CLONES static void
sharpen(float factor, size_t size, uint8_t *restrict room, uint8_t *restrict x)
{
    size_t row = size * 3;

    memcpy(room, x, row * size);
    for (size_t i = 1; i + 1 < size; i++) {
        const uint8_t *a = room + (i - 1) * row, *b = a + row, *c = b + row;
        uint8_t *y = x + i * row;

        for (size_t j = 3; j + 3 < row; j++) {
            unsigned sum = 5u * b[j] + b[j - 3] + b[j + 3] + a[j - 3] + a[j] +
                           a[j + 3] + c[j - 3] + c[j] + c[j + 3];

            y[j] = ddp__blend((int)((sum + 6) / 13), b[j], factor);
        }
    }
}

/* ---- maps --------------------------------------------------------------- */

static struct ddp__affine map_of(const struct ddp__change *c, int size)
{
    struct ddp__affine m = {1, 0, 0, 0, 1, 0};

    if (c->kind == DDP__SHEAR_X)
        m.b = c->by;
    else if (c->kind == DDP__SHEAR_Y)
        m.d = c->by;
    else if (c->kind == DDP__TRANSLATE_X)
        m.c = -c->by;
    else if (c->kind == DDP__TRANSLATE_Y)
        m.f = -c->by;
    else
        m = ddp__rotation(c->by, size);
    return m;
}

static void warp(const struct ddp__change *c, const struct ddp__canvas *canvas,
                 uint32_t *room, uint8_t *x)
{
    struct ddp__affine m = map_of(c, canvas->size);

    ddp__warp(&m, canvas->filter, canvas->fill, canvas->size, room, x);
}

/* ---- all ---------------------------------------------------------------- */

void ddp__change_apply(const struct ddp__change *c,
                       const struct ddp__canvas *canvas, uint32_t *room,
                       uint8_t *x)
{
    size_t n = (size_t)canvas->size * (size_t)canvas->size;
    float factor = (float)c->by;

    switch (c->kind) {
    case DDP__SHEAR_X:
    case DDP__SHEAR_Y:
    case DDP__TRANSLATE_X:
    case DDP__TRANSLATE_Y:
    case DDP__ROTATE:
        if (c->by != 0)
            warp(c, canvas, room, x);
        break;
    case DDP__LIGHTEN:
        ddp__colour_adjust(DDP__BRIGHTNESS, factor, n, x);
        break;
    case DDP__COLOR:
        ddp__colour_adjust(DDP__SATURATION, factor, n, x);
        break;
    case DDP__CONTRAST_BY:
        ddp__colour_adjust(DDP__CONTRAST, factor, n, x);
        break;
    case DDP__SHARPEN:
        sharpen(factor, (size_t)canvas->size, (uint8_t *)room, x);
        break;
    case DDP__POSTERIZE:
    case DDP__SOLARIZE:
    case DDP__SOLARIZE_ADD:
    case DDP__INVERT:
        map_levels(c, n, x);
        break;
    case DDP__AUTO_CONTRAST:
        auto_contrast(n, x);
        break;
    case DDP__EQUALIZE:
        equalize_channels(n, x);
        break;
    case DDP__NO_CHANGE:
    case DDP__CHANGES:
        break;
    }
}
