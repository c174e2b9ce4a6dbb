/* warp.c - affine maps of a sample
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   Pillow's Image.rotate(), and Geometry.c in its src/libImaging.
 */
#include "config.h"

#include <math.h>
#include <string.h>

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
    const uint8_t *x;
    int size;
};

static int clip(int i, int size)
{
    return i < 0 ? 0 : i < size ? i : size - 1;
}

/* Row y of the source; outside of it, the last one of `before`. */
static const uint8_t *row_of(const struct source *s, int y,
                             const uint8_t *before)
{
    return y >= 0 && y < s->size ? s->x + (size_t)y * (size_t)s->size * 3
                                 : before;
}

static double between(double a, double b, double part)
{
    return a + (b - a) * part;
}

/* The pixel at (x, y), which is inside, truncated. */
static void bilinear(const struct source *s, double x, double y, uint8_t *out)
{
    int i = (int)floor(x - 0.5), j = (int)floor(y - 0.5);
    double right = x - 0.5 - i, down = y - 0.5 - j;
    const uint8_t *top = row_of(s, clip(j, s->size), NULL);
    const uint8_t *bottom = row_of(s, j + 1, top);
    int at[2] = {clip(i, s->size) * 3, clip(i + 1, s->size) * 3};

    for (int c = 0; c < 3; c++)
        out[c] = (uint8_t)between(
            between(top[at[0] + c], top[at[1] + c], right),
            between(bottom[at[0] + c], bottom[at[1] + c], right), down);
}

static double cubic(const double v[4], double d)
{
    double p2 = v[2] - v[0], p3 = 2 * (v[0] - v[1]) + v[2] - v[3];
    double p4 = v[1] - v[0] - v[2] + v[3];

    return v[1] + d * (p2 + d * (p3 + d * p4));
}

static void bicubic(const struct source *s, double x, double y, uint8_t *out)
{
    int i = (int)floor(x - 0.5), j = (int)floor(y - 0.5);
    double right = x - 0.5 - i, down = y - 0.5 - j;
    const uint8_t *row[4];

    row[0] = row_of(s, clip(j - 1, s->size), NULL);
    for (int k = 1; k < 4; k++)
        row[k] = row_of(s, j - 1 + k, row[k - 1]);
    for (int c = 0; c < 3; c++) {
        double across[4], v[4], all;

        for (int k = 0; k < 4; k++) {
            for (int n = 0; n < 4; n++)
                v[n] = row[k][clip(i - 1 + n, s->size) * 3 + c];
            across[k] = cubic(v, right);
        }
        all = cubic(across, down);
        out[c] = all <= 0 ? 0 : all >= 255 ? 255 : (uint8_t)all;
    }
}

void ddp__warp(const struct ddp__affine *m, enum ddp_interpolation filter,
               const uint8_t fill[3], int size, const uint8_t *x, uint8_t *y)
{
    struct source s = {x, size};

    for (int j = 0; j < size; j++)
        for (int i = 0; i < size; i++, y += 3) {
            double px = m->a * (i + 0.5) + m->b * (j + 0.5) + m->c;
            double py = m->d * (i + 0.5) + m->e * (j + 0.5) + m->f;

            if (!(px >= 0 && px < size && py >= 0 && py < size))
                memcpy(y, fill, 3);
            else if (filter == DDP_BICUBIC)
                bicubic(&s, px, py, y);
            else
                bilinear(&s, px, py, y);
        }
}
