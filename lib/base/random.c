/* random.c - keyed draws from distributions that are not uniform
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   Marsaglia and Tsang, "A simple method for generating gamma
 *          variables", ACM TOMS 2000; Box and Muller, 1958.
 */
#include "config.h"

#include <math.h>

#include "base/philox.h"
#include "base/random.h"

enum { TRIES = 64 }; /* more than 19 of 20 succeed */

/* In (0, 1), never at the ends. */
static double inside(uint32_t bits)
{
    return ((double)bits + 0.5) * 0x1p-32;
}

static double normal(uint32_t a, uint32_t b)
{
    const double turn = 6.283185307179586;

    return sqrt(-2 * log(inside(a))) * cos(turn * inside(b));
}

float ddp__draw_normal(uint64_t key)
{
    struct ddp__philox r = ddp__philox(key, 0, 0);

    return (float)normal(r.v[0], r.v[1]);
}

/* The logarithm of a draw from Gamma(a, 1), number `which` of the key: the draw
 * itself is 0 for a small a. */
static double log_gamma(uint64_t key, uint64_t which, double a)
{
    double more = a < 1 ? 1 : 0, d = a + more - 1.0 / 3, c = 1 / sqrt(9 * d);
    double log_v = 0, boost = 0;

    for (uint64_t i = 0; i < TRIES; i++) {
        struct ddp__philox r = ddp__philox(key, which, i);
        double x = normal(r.v[0], r.v[1]), v = 1 + c * x;

        boost = more > 0 ? log(inside(r.v[3])) / a : 0;
        log_v = v > 0 ? 3 * log(v) : 0;
        if (v > 0 &&
            log(inside(r.v[2])) < x * x / 2 + d - d * v * v * v + d * log_v)
            break;
    }
    return log(d) + log_v + boost;
}

float ddp__draw_beta(uint64_t key, double a)
{
    return (float)(1 / (1 + exp(log_gamma(key, 1, a) - log_gamma(key, 0, a))));
}

void ddp__draw_shares(uint64_t key, double a, int n, float *share)
{
    double most = -HUGE_VAL, sum = 0;

    for (int i = 0; i < n; i++)
        most = fmax(most, log_gamma(key, (uint64_t)i, a));
    for (int i = 0; i < n; i++)
        sum += exp(log_gamma(key, (uint64_t)i, a) - most);
    for (int i = 0; i < n; i++)
        share[i] = (float)(exp(log_gamma(key, (uint64_t)i, a) - most) / sum);
}
