/* normal.c - many normal numbers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * By Box and Muller's transform of two uniform numbers, sqrt(-2 log u) cos(2 pi
 * v), in f64, rounded to f32.  What it gives must be what libm's functions do,
 * one number at a time; polynomials, which the compiler turns into loops over
 * vectors, are within FUZZ of that, and where rounding depends on so little,
 * about once in ten million numbers, libm is asked.
 *
 * One Zen 5 core, under load, 25.6 million numbers: 0.67 s of processor time by
 * libm alone, 0.10 s so.
 */
#include "config.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/clones.h"
#include "base/normal.h"
#include "base/philox.h"

enum { BLOCK = 256 };

/* Errors of the polynomials, of libm and of the operations between are less
 * than 10 units of 2^-53 together. */
#define FUZZ 0x1p-48

static float normal_by_libm(uint32_t a, uint32_t b)
{
    double u = ((double)a + 1) * 0x1p-32, v = (double)b * 0x1p-32;

    return (float)(sqrt(-2 * log(u)) * cos(2 * M_PI * v));
}

/* ---- polynomials -------------------------------------------------------- */

/* For u in (0, 1].  With u = 2^k m, m in [sqrt(1/2), sqrt(2)), and s = (m - 1)
 * / (m + 1), log m = 2 (s + s^3 / 3 + s^5 / 5 + ...); s^21 / 21 is 4e-17 s. */
static inline double log_of(double u)
{
    const uint64_t sqrt_half = 0x3fe6a09e667f3bcd, bias = (uint64_t)1024 << 52;
    double s, w, p = 1.0 / 19;
    uint64_t bits, above;
    int32_t k;

    memcpy(&bits, &u, sizeof(bits));
    above = bits - sqrt_half + bias;
    k = (int32_t)(above >> 52) - 1024;
    bits -= (above & 0xfff0000000000000) - bias;
    memcpy(&u, &bits, sizeof(u));
    s = (u - 1) / (u + 1);
    w = s * s;
    p = p * w + 1.0 / 17;
    p = p * w + 1.0 / 15;
    p = p * w + 1.0 / 13;
    p = p * w + 1.0 / 11;
    p = p * w + 1.0 / 9;
    p = p * w + 1.0 / 7;
    p = p * w + 1.0 / 5;
    p = p * w + 1.0 / 3;
    return (double)k * M_LN2 + 2 * (s + s * w * p);
}

/* Taylor's series for |y| <= pi / 4; w = y^2.  What is left out is less than
 * 1e-17 of the result. */
static inline double cos_of(double w)
{
    double p = 1.0 / 20922789888000;

    p = p * w - 1.0 / 87178291200;
    p = p * w + 1.0 / 479001600;
    p = p * w - 1.0 / 3628800;
    p = p * w + 1.0 / 40320;
    p = p * w - 1.0 / 720;
    p = p * w + 1.0 / 24;
    p = p * w - 1.0 / 2;
    return 1 + p * w;
}

static inline double sin_of(double y, double w)
{
    double p = 1.0 / 355687428096000;

    p = p * w - 1.0 / 1307674368000;
    p = p * w + 1.0 / 6227020800;
    p = p * w - 1.0 / 39916800;
    p = p * w + 1.0 / 362880;
    p = p * w - 1.0 / 5040;
    p = p * w + 1.0 / 120;
    p = p * w - 1.0 / 6;
    return y + y * w * p;
}

/* cos(2 pi v), v in [0, 1): of the rounded product, as libm gets it. */
static inline double cos_of_turns(double v)
{
    /* The rest of pi / 2, which ends with three zeros, so that n times it is
     * not rounded. */
    const double rest = 0x1.1a62633145c07p-54;
    double n = (double)(int32_t)(4 * v + 0.5), t = 2 * M_PI * v;
    double y = (t - n * M_PI_2) - n * rest, w = y * y;
    bool odd = n == 1 || n == 3;
    double c = odd ? sin_of(y, w) : cos_of(w);

    return n == 1 || n == 2 ? -c : c;
}

/* ---- blocks ------------------------------------------------------------- */

struct block {
    uint32_t a[BLOCK], b[BLOCK];
    float low[BLOCK], high[BLOCK]; /* results with the fuzz taken and added */
};

DDP__CLONES static void draw(uint64_t key, uint64_t first, struct block *k)
{
    for (size_t i = 0; i < BLOCK; i++) {
        struct ddp__philox r = ddp__philox(key, 0, first + i);

        k->a[i] = r.v[0];
        k->b[i] = r.v[1];
    }
}

DDP__CLONES static void transform(struct block *k)
{
    for (size_t i = 0; i < BLOCK; i++) {
        double u = ((double)k->a[i] + 1) * 0x1p-32;
        double z = sqrt(-2 * log_of(u)) * cos_of_turns(k->b[i] * 0x1p-32);

        k->low[i] = (float)(z - z * FUZZ);
        k->high[i] = (float)(z + z * FUZZ);
    }
}

void ddp__normals(uint64_t key, uint64_t first, float *out, size_t n)
{
    struct block k;

    for (size_t at = 0; at < n; at += BLOCK) {
        draw(key, first + at, &k);
        transform(&k);
        for (size_t i = 0; i < BLOCK && at + i < n; i++)
            out[at + i] = k.low[i] == k.high[i]
                              ? k.low[i]
                              : normal_by_libm(k.a[i], k.b[i]);
    }
}
