/* number.h - numbers that look random, and are the same in each run
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef NUMBER_H
#define NUMBER_H

#include <stdint.h>
#include <stdlib.h>

/* In -1..1. */
static inline float number(uint32_t i)
{
    i = i * 2654435761u ^ 0x9e3779b9u;
    i = (i ^ i >> 15) * 0x85ebca6bu;
    i = (i ^ i >> 13) * 0xc2b2ae35u;
    return (float)(i >> 8) * 0x1p-23f - 1;
}

/* The caller frees them. */
static inline float *numbers(uint32_t from, size_t len)
{
    float *x = malloc(len * sizeof(*x));

    for (size_t i = 0; i < len; i++)
        x[i] = number(from + (uint32_t)i);
    return x;
}

#endif
