/* act.h - the activations, and sums for other kernels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_ACT_H
#define DDP_CPU_ACT_H

#include <stdbool.h>
#include <stddef.h>

/* X(act): what has an instance of its own of each loop. */
#define DDP__CPU_ACTS(X)                                                       \
    X(DDP_IDENTITY)                                                            \
    X(DDP_RELU)                                                                \
    X(DDP_RELU6)                                                               \
    X(DDP_SILU)                                                                \
    X(DDP_SIGMOID)                                                             \
    X(DDP_TANH)                                                                \
    X(DDP_GELU)                                                                \
    X(DDP_HARDSWISH)                                                           \
    X(DDP_HARDSIGMOID)

/* dst += src */
void ddp__cpu_add_f32(float *dst, const float *src, size_t len);
void ddp__cpu_add_values(void *dst, const void *src, size_t len, bool b);

#endif
