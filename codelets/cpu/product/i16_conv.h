/* i16_conv.h - convolutions in bf16 as products of 16-bit integers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_I16_CONV_H
#define DDP_CPU_I16_CONV_H

#include <stdint.h>

#include "cpu/conv/shape.h"
#include "cpu/isa.h"

/* Whether this is worthwhile, here: forward, or a data gradient as such. */
bool ddp__i16_conv_fits(const struct ddp__conv_shape *s);

/* Where outputs go: values from one to the next of a row, of a column, and of
 * an image. */
struct ddp__i16_target {
    uint16_t *y;
    size_t pixel, row, image;
};

/* One after the other. */
struct ddp__i16_target ddp__i16_target(const struct ddp__conv_shape *s,
                                       uint16_t *y);

/* y = act(w * x + bias); weights from i16_weight.h.  bias: NULL, there is
 * none. */
DDP__X86_ONLY int ddp__i16_conv_run(const struct ddp__conv_shape *s,
                                    const uint16_t *x, const uint32_t *packed,
                                    const float *bias,
                                    const struct ddp__i16_target *to);

#endif
