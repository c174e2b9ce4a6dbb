/* test_normal.c - normal numbers are those of libm's functions, to the bit
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Initial weights, and so the bits of a run, must not depend on how many
 * numbers are made together.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/normal.h"
#include "base/philox.h"
#include "tap.h"

enum { COUNT = 1 << 21, ODD = 1000003 };

/* Box and Muller's transform of the first two words, as it is in textbooks. */
static float one_number(uint64_t key, uint64_t i)
{
    struct ddp__philox r = ddp__philox(key, 0, i);
    double u = ((double)r.v[0] + 1) / 4294967296.0, v = r.v[1] / 4294967296.0;

    return (float)(sqrt(-2 * log(u)) * cos(2 * M_PI * v));
}

static void test_bits(uint64_t key, uint64_t first)
{
    float *x = malloc(COUNT * sizeof(*x));
    int others = 0;

    if (!x)
        bail_out("no memory");
    ddp__normals(key, first, x, COUNT);
    for (uint64_t i = 0; i < COUNT; i++) {
        float want = one_number(key, first + i);

        others += memcmp(&x[i], &want, sizeof(want)) != 0;
    }
    ok(others == 0, "%d numbers from %llu on: %d differ", COUNT,
       (unsigned long long)first, others);
    free(x);
}

/* Of n numbers the mean is off by 1 / sqrt(n), the variance by sqrt(2 / n);
 * five times that is a chance of one in a million. */
static void test_moments(void)
{
    static float x[ODD + 1];
    double sum = 0, squares = 0;

    x[ODD] = 7;
    ddp__normals(3, 5, x, ODD);
    for (int i = 0; i < ODD; i++) {
        sum += x[i];
        squares += (double)x[i] * x[i];
    }
    sum /= ODD;
    squares /= ODD;
    ok(fabs(sum) < 5e-3 && fabs(squares - 1) < 7.1e-3,
       "mean %.4f, variance %.4f", sum, squares);
    ok(x[ODD] == 7, "and no number more is written");
}

int main(void)
{
    test_bits(1, 0);
    test_bits(0x123456789abcdef, ((uint64_t)1 << 32) - 1000);
    test_moments();
    return done_testing();
}
