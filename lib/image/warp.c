/* warp.c - affine maps of a sample
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   Pillow's Image.rotate(), and Geometry.c in its src/libImaging.
 *
 * Pixels get four bytes first, so that two neighbours are one load, and a copy
 * of the edge around them, so that all have neighbours.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
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
    const uint32_t *x; /* its first pixel; there are some around it */
    int size, pitch;
};

static inline double between(double a, double b, double part)
{
    return a + (b - a) * part;
}

static inline double level(uint32_t pixel, int channel)
{
    return (double)(int)(pixel >> 8 * channel & 255);
}

/* ---- bilinear ----------------------------------------------------------- */

enum { STRETCH = 32 };

/* Some pixels of a row: whether they come from inside of the source, from which
 * two by two pixels, by the first, and how far right and down in these. */
struct stretch {
    int32_t inside[STRETCH], at[STRETCH];
    double right[STRETCH], down[STRETCH];
    uint32_t upper[STRETCH][2], lower[STRETCH][2];
};

/* Those of row j from column i on. */
DDP__PIXEL_CLONES static void find_places(const struct ddp__affine *m,
                                          const struct source *from, int i,
                                          int j, struct stretch *s)
{
    int size = from->size, pitch = from->pitch;

    for (int k = 0; k < STRETCH; k++) {
        double px = m->a * (i + k + 0.5) + m->b * (j + 0.5) + m->c;
        double py = m->d * (i + k + 0.5) + m->e * (j + 0.5) + m->f;
        int inside = (px >= 0) & (px < size) & (py >= 0) & (py < size);
        double x = (inside ? px : 0) - 0.5, y = (inside ? py : 0) - 0.5;
        int left = (int)floor(x), top = (int)floor(y);

        s->inside[k] = inside;
        s->at[k] = top * pitch + left;
        s->right[k] = x - left;
        s->down[k] = y - top;
    }
}

/* The pixels there: loads and stores, which are faster than instructions that
 * gather. */
static void fetch(const struct source *from, struct stretch *s)
{
    for (int k = 0; k < STRETCH; k++) {
        const uint32_t *x = from->x + s->at[k];

        memcpy(s->upper[k], x, sizeof(s->upper[k]));
        memcpy(s->lower[k], x + from->pitch, sizeof(s->lower[k]));
    }
}

/* A channel between four pixels, truncated. */
static inline __attribute__((always_inline)) uint32_t
mix_level(const struct stretch *s, int k, int channel)
{
    double a = level(s->upper[k][0], channel);
    double b = level(s->upper[k][1], channel);
    double c = level(s->lower[k][0], channel);
    double d = level(s->lower[k][1], channel);
    double top = between(a, b, s->right[k]);
    double bottom = between(c, d, s->right[k]);

    return (uint32_t)(int)between(top, bottom, s->down[k]) << 8 * channel;
}

DDP__PIXEL_CLONES static void bilinear(const struct stretch *s, uint32_t fill,
                                       uint32_t *restrict y)
{
    for (int k = 0; k < STRETCH; k++) {
        uint32_t all =
            mix_level(s, k, 0) | mix_level(s, k, 1) | mix_level(s, k, 2);

        y[k] = s->inside[k] ? all : fill;
    }
}

/* ---- bicubic ------------------------------------------------------------ */

static int clip(int i, int size)
{
    return i < 0 ? 0 : i < size ? i : size - 1;
}

/* Row y of the source; outside of it, the last one of `before`. */
static const uint32_t *row_of(const struct source *s, int y,
                              const uint32_t *before)
{
    return y >= 0 && y < s->size ? s->x + (ptrdiff_t)y * s->pitch : before;
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

/* ---- pixels of three and of four bytes ---------------------------------- */

/* Three bytes; the fourth one does not matter. */
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

/* All but the last pixel take a byte of the next one along, which makes them
 * single loads. */
static void widen_row(const uint8_t *x, int n, uint32_t *y)
{
    for (int i = 0; i + 1 < n; i++, x += 3)
        y[i] = widen(x) | (uint32_t)x[3] << 24;
    y[n - 1] = widen(x);
}

/* Likewise. */
static void narrow_row(const uint32_t *x, int n, uint8_t *y)
{
    for (int i = 0; i + 1 < n; i++, y += 3) {
        narrow(x[i], y);
        y[3] = (uint8_t)(x[i] >> 24);
    }
    narrow(x[n - 1], y);
}

size_t ddp__warp_room(int size)
{
    return ((size_t)size + 2) * ((size_t)size + 2);
}

static struct source surround(const uint8_t *x, int size, uint32_t *room)
{
    size_t pitch = (size_t)size + 2, len = pitch * sizeof(*room);
    uint32_t *row = room + pitch;

    for (int j = 0; j < size; j++, row += pitch) {
        widen_row(x + (size_t)j * (size_t)size * 3, size, row + 1);
        row[0] = row[1];
        row[pitch - 1] = row[pitch - 2];
    }
    memcpy(room, room + pitch, len);
    memcpy(row, row - pitch, len);
    return (struct source){room + pitch + 1, size, (int)pitch};
}

/* ---- all ---------------------------------------------------------------- */

static void paint(const uint8_t fill[3], int n, uint8_t *x)
{
    for (int i = 0; i < n; i++)
        memcpy(x + 3 * i, fill, 3);
}

void ddp__shift(int dx, int dy, const uint8_t fill[3], int size, uint8_t *x)
{
    size_t row = (size_t)size * 3, n = (size_t)(size - abs(dx)) * 3;
    size_t to = dx > 0 ? (size_t)dx * 3 : 0,
           from = dx < 0 ? (size_t)-dx * 3 : 0;

    for (int i = 0; i < size; i++) {
        int y = dy > 0 ? size - 1 - i : i; /* not over rows still needed */
        uint8_t *out = x + (size_t)y * row;

        if (y - dy < 0 || y - dy >= size) {
            paint(fill, size, out);
            continue;
        }
        memmove(out + to, x + (size_t)(y - dy) * row + from, n);
        paint(fill, abs(dx), dx > 0 ? out : out + n);
    }
}

/* By whole pixels, where all filters give the pixels themselves. */
static bool is_shift(const struct ddp__affine *m)
{
    return m->a == 1 && m->b == 0 && m->d == 0 && m->e == 1 &&
           m->c == rint(m->c) && m->f == rint(m->f);
}

static int limited(double pixels, int size)
{
    return (int)fmax(-size, fmin(size, pixels));
}

void ddp__warp(const struct ddp__affine *m, enum ddp_interpolation filter,
               const uint8_t fill[3], int size, uint32_t *room, uint8_t *x)
{
    struct source s;
    struct stretch at;
    uint32_t y[STRETCH];

    if (is_shift(m)) {
        ddp__shift(limited(-m->c, size), limited(-m->f, size), fill, size, x);
        return;
    }
    s = surround(x, size, room);
    for (int j = 0; j < size; j++)
        for (int i = 0, n; i < size; i += n, x += 3 * n) {
            n = size - i < STRETCH ? size - i : STRETCH;
            if (filter == DDP_BICUBIC) {
                bicubic_stretch(m, &s, i, j, widen(fill), y);
            } else {
                find_places(m, &s, i, j, &at);
                fetch(&s, &at);
                bilinear(&at, widen(fill), y);
            }
            narrow_row(y, n, x);
        }
}
