/* peak.h - what the arithmetic of the cores can do at most
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef PEAK_H
#define PEAK_H

#include "ddp.h"

struct peak {
    double flops;     /* a second, of all cores together; 2 per multiply-add */
    const char *base; /* what was measured: "f32 avx512" */
    int cores;
};

/* Measure this many cores at once, for about `seconds`.  bf16 is measured with
 * the best instructions there are; where there are none, the f32 peak stands
 * and base is set.  -1 when threads cannot be started. */
int peak_measure(struct peak *p, enum ddp_dtype type, int cores,
                 double seconds);

#endif
