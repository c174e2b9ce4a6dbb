/* amx_weight.h - weights of 1x1 convolutions as AMX tiles read them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * They are bf16 in panels of 16 outputs, zeros where there are fewer:
 * [panel][pair of inputs][16 outputs][2].  The bias, if there is one, follows
 * in f32, of as many outputs as panels have.
 */
#ifndef DDP_CPU_AMX_WEIGHT_H
#define DDP_CPU_AMX_WEIGHT_H

#include "cpu/conv/shape.h"
#include "cpu/isa.h"

enum { DDP__AMX_PANEL = 16 };

static inline size_t ddp__amx_panels(const struct ddp__conv_shape *s)
{
    return ((size_t)s->o + DDP__AMX_PANEL - 1) / DDP__AMX_PANEL;
}

size_t ddp__amx_weight_size(const struct ddp__conv_shape *s);

/* The bias of packed weights. */
static inline const float *ddp__amx_weight_bias(const struct ddp__conv_shape *s,
                                                const void *packed)
{
    size_t weights = ddp__amx_panels(s) * DDP__AMX_PANEL * (size_t)s->c;

    return (const float *)((const char *)packed + weights * sizeof(uint16_t));
}

/* turn: w is that of the layer whose data gradient s is.  s->c is even. */
DDP__X86_ONLY void ddp__amx_weight_pack(const struct ddp__conv_shape *s,
                                        const float *w, bool turn, void *to);

#endif
