/* sums.h - operands of products in f32, and how far their sums may be off
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A sum of k products in f32, one after the other, each with a rounding of at
 * most 2^-24 of the sum so far, is off by some 2^-24 sqrt(k / 6) of its norm
 * if roundings are independent; twice that are allowed, and one rounding more.
 */
#ifndef TEST_SUMS_H
#define TEST_SUMS_H

#include <math.h>

#include "random.h"

static inline double most_error(size_t k)
{
    return 0x1p-23 * sqrt((double)k / 6 + 1);
}

/* Values after a result that nobody may write, and what they are. */
enum { GUARD = 64 };
static const float SEAL = 1234.5f;

/* With a guard. */
static inline float *new_values(size_t count)
{
    float *p = random_floats(count + GUARD);

    for (size_t i = count; i < count + GUARD; i++)
        p[i] = SEAL;
    return p;
}

static inline bool is_sealed(const float *p, size_t count)
{
    for (size_t i = count; i < count + GUARD; i++)
        if (p[i] != SEAL)
            return false;
    return true;
}

#endif
