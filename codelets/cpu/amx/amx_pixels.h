/* amx_pixels.h - 1x1 convolutions of training in bf16 on AMX tiles
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_AMX_PIXELS_H
#define DDP_CPU_AMX_PIXELS_H

#include "cpu/conv/shape.h"
#include "cpu/isa.h"

/* Whether this processor can compute s so, and was faster.  s is a forward
 * pass, or a data gradient that is described as one (ddp__plan_transpose()). */
bool ddp__amx_pixels_fits(const struct ddp__conv_shape *s);

/* y = w * x + bias, with weights by ddp__amx_weight_pack(). */
DDP__AMX_ONLY int ddp__amx_pixels_run(const struct ddp__conv_shape *s,
                                      const uint16_t *x, const void *packed,
                                      uint16_t *y);

#endif
