/* warp.c - affine maps of a sample
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   Pillow's Image.rotate(), and Geometry.c in its src/libImaging.
 *
 * Pixels get four bytes first, which one instruction can gather.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "image/clones.h"
#include "image/warp.h"

/* As Python's round(x, 15): a quarter of a turn gives zeros. */
static double round15(double x)
{
    return rint(x * 1e15) / 1e15;
}

struct ddp__affine ddp__rotation(double degrees, int size)
{
    double turn = -degrees * 3.141592653589793 / 180, middle = size / 2.0;
    double c = round15(cos(turn)), s = round15(sin(turn));

    return (struct ddp__affine){c,  s, middle - (c + s) * middle,
                                -s, c, middle - (c - s) * middle};
}

struct source {
    const uint32_t *x;
    int size;
};

static int clip(int i, int size)
{
    return i < 0 ? 0 : i < size ? i : size - 1;
}

static inline double between(double a, double b, double part)
{
    return a + (b - a) * part;
}

static inline double level(uint32_t pixel, int channel)
{
    return (double)(int)(pixel >> 8 * channel & 255);
}

/* ---- bilinear ----------------------------------------------------------- */

enum { STRETCH = 64 };

/* Some pixels of a row: whether they come from inside of the source, from
 * which two by two pixels, and how far right and down in these. */
struct stretch {
    int32_t inside[STRETCH], at[4][STRETCH];
    double right[STRETCH], down[STRETCH];
};

/* Those of row j from column i on. */
DDP__PIXEL_CLONES static void find_places(const struct ddp__affine *m, int size,
                                          int i, int j, struct stretch *s)
{
    for (int k = 0; k < STRETCH; k++) {
        double px = m->a * (i + k + 0.5) + m->b * (j + 0.5) + m->c;
        double py = m->d * (i + k + 0.5) + m->e * (j + 0.5) + m->f;
        int inside = (px >= 0) & (px < size) & (py >= 0) & (py < size);
        double x = (inside ? px : 0) - 0.5, y = (inside ? py : 0) - 0.5;
        int left = (int)floor(x), top = (int)floor(y);
        int first = clip(left, size), second = clip(left + 1, size);
        int upper = clip(top, size) * size, lower = clip(top + 1, size) * size;

        s->inside[k] = inside;
        s->at[0][k] = upper + first;
        s->at[1][k] = upper + second;
        s->at[2][k] = lower + first;
        s->at[3][k] = lower + second;
        s->right[k] = x - left;
        s->down[k] = y - top;
    }
}

/* A channel of four pixels, truncated. */
static inline __attribute__((always_inline)) uint32_t
mix_level(const uint32_t p[4], int channel, double right, double down)
{
    double top = between(level(p[0], channel), level(p[1], channel), right);
    double bottom = between(level(p[2], channel), level(p[3], channel), right);

    return (uint32_t)(int)between(top, bottom, down) << 8 * channel;
}

/* The pixels at these places. */
DDP__PIXEL_CLONES static void bilinear(const uint32_t *x,
                                       const struct stretch *s, uint32_t fill,
                                       uint32_t *restrict y)
{
    for (int k = 0; k < STRETCH; k++) {
        uint32_t p[] = {x[s->at[0][k]], x[s->at[1][k]], x[s->at[2][k]],
                        x[s->at[3][k]]};
        double right = s->right[k], down = s->down[k];
        uint32_t all = mix_level(p, 0, right, down) |
                       mix_level(p, 1, right, down) |
                       mix_level(p, 2, right, down);

        y[k] = s->inside[k] ? all : fill;
    }
}

/* ---- bicubic ------------------------------------------------------------ */

/* Row y of the source; outside of it, the last one of `before`. */
static const uint32_t *row_of(const struct source *s, int y,
                              const uint32_t *before)
{
    return y >= 0 && y < s->size ? s->x + (size_t)y * (size_t)s->size : before;
}

static double cubic(const double v[4], double d)
{
    double p2 = v[2] - v[0], p3 = 2 * (v[0] - v[1]) + v[2] - v[3];
    double p4 = v[1] - v[0] - v[2] + v[3];

    return v[1] + d * (p2 + d * (p3 + d * p4));
}

/* The pixel at (x, y), which is inside, truncated. */
static uint32_t bicubic(const struct source *s, double x, double y)
{
    int i = (int)floor(x - 0.5), j = (int)floor(y - 0.5);
    double right = x - 0.5 - i, down = y - 0.5 - j;
    const uint32_t *row[4];
    uint32_t pixel = 0;

    row[0] = row_of(s, clip(j - 1, s->size), NULL);
    for (int k = 1; k < 4; k++)
        row[k] = row_of(s, j - 1 + k, row[k - 1]);
    for (int c = 0; c < 3; c++) {
        double across[4], v[4], all;

        for (int k = 0; k < 4; k++) {
            for (int n = 0; n < 4; n++)
                v[n] = level(row[k][clip(i - 1 + n, s->size)], c);
            across[k] = cubic(v, right);
        }
        all = cubic(across, down);
        pixel |= (uint32_t)(all <= 0     ? 0
                            : all >= 255 ? 255
                                         : (int)all)
                 << 8 * c;
    }
    return pixel;
}

static void bicubic_stretch(const struct ddp__affine *m, const struct source *s,
                            int i, int j, uint32_t fill, uint32_t *y)
{
    for (int k = 0; k < STRETCH; k++) {
        double px = m->a * (i + k + 0.5) + m->b * (j + 0.5) + m->c;
        double py = m->d * (i + k + 0.5) + m->e * (j + 0.5) + m->f;
        bool inside = px >= 0 && px < s->size && py >= 0 && py < s->size;

        y[k] = inside ? bicubic(s, px, py) : fill;
    }
}

/* ---- all ---------------------------------------------------------------- */

static uint32_t widen(const uint8_t *x)
{
    return x[0] | (uint32_t)x[1] << 8 | (uint32_t)x[2] << 16;
}

static void narrow(uint32_t v, uint8_t *x)
{
    x[0] = (uint8_t)v;
    x[1] = (uint8_t)(v >> 8);
    x[2] = (uint8_t)(v >> 16);
}

void ddp__warp(const struct ddp__affine *m, enum ddp_interpolation filter,
               const uint8_t fill[3], int size, uint32_t *room, uint8_t *x)
{
    size_t pixels = (size_t)size * (size_t)size;
    struct source s = {room, size};
    struct stretch at;
    uint32_t y[STRETCH];

    for (size_t i = 0; i < pixels; i++)
        room[i] = widen(x + 3 * i);
    for (int j = 0; j < size; j++)
        for (int i = 0; i < size; i += STRETCH) {
            if (filter == DDP_BICUBIC) {
                bicubic_stretch(m, &s, i, j, widen(fill), y);
            } else {
                find_places(m, size, i, j, &at);
                bilinear(room, &at, widen(fill), y);
            }
            for (int k = 0; k < STRETCH && i + k < size; k++, x += 3)
                narrow(y[k], x);
        }
}
