/* limits.h - how fast the cores could train a network at best
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The least time of a step is that of its operations one after another, each as
 * long as its arithmetic takes at the peak of the cores, or its bytes at the
 * speed of a copy, or what it reads at the speed of reading, whichever is most.
 */
#ifndef BENCH_LIMITS_H
#define BENCH_LIMITS_H

#include "memory_speed.h"
#include "peak.h"
#include "settings.h"

struct limits {
    int workers;
    struct peak peak[2]; /* of f32, bf16 */
    struct memory memory;
};

/* Measure this many cores, for about a second; a code of the program. */
int limits_measure(struct limits *l, int workers);

const struct peak *limits_peak(const struct limits *l, enum ddp_dtype type);

/* Images a second at most, in training by the settings: *img.  0, or one of the
 * library's codes after a message. */
int limits_speed(const struct limits *l, const struct bench_settings *s,
                 double *img);

#endif
