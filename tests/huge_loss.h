/* huge_loss.h - gradients whose sum f32 can hold and bf16 cannot
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef HUGE_LOSS_H
#define HUGE_LOSS_H

#include <stdint.h>

/* Samples whose gradients of the first output are 255 x 2^120 and 3 x 2^118.
 * Both are bf16; their sum is 255.75 x 2^120, which bf16 rounds up to 2^128. */
enum { HUGE_FIRST = 1, HUGE_SECOND }; /* labels */

/* A ddp_loss_f: other gradients are small. */
static inline double huge_loss(const float *x, const void *target,
                               const float *weight, int n, int len, float *dx,
                               void *arg)
{
    const int32_t *label = target;

    (void)weight;
    (void)arg;
    for (int i = 0; i < n * len && dx; i++)
        dx[i] = 0.01f * x[i];
    for (int i = 0; i < n && dx; i++)
        if (label[i])
            dx[i * len] = label[i] == HUGE_FIRST ? 0x1.fep127f : 0x1.8p119f;
    return n;
}

#endif
