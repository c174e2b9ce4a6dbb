/* i16_weight.h - filters as panels of 16-bit integers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Panels are those of gemm.h, of pairs of values of a filter; they are followed
 * by a unit for each filter.
 */
#ifndef DDP_CPU_I16_WEIGHT_H
#define DDP_CPU_I16_WEIGHT_H

#include <stdint.h>

#include "cpu/conv/shape.h"
#include "cpu/isa.h"
#include "patch_pieces.h"

/* Filters of a layer s.  by: factors of filters, or NULL.  turn: w is that of a
 * layer whose data gradient s is, and filter j of s has its values
 * [channel][tap[i]][j] as values [i][channel]; that layer has `taps` taps. */
struct ddp__i16_filters {
    const float *w, *by;
    bool turn;
    size_t taps;
    size_t tap[DDP__PATCH_MOST * DDP__PATCH_MOST];
};

/* Pairs of a filter, and filters with those that fill the last vector. */
size_t ddp__i16_pairs(const struct ddp__conv_shape *s);
size_t ddp__i16_columns(const struct ddp__conv_shape *s);

size_t ddp__i16_weight_size(const struct ddp__conv_shape *s);
int ddp__i16_weight_parts(const struct ddp__conv_shape *s);

/* DDP_ENOMEM: there is no room for a panel of floats. */
DDP__X86_ONLY int ddp__i16_weight_pack(const struct ddp__conv_shape *s,
                                       const struct ddp__i16_filters *f,
                                       int part, uint32_t *to);

static inline const float *
ddp__i16_weight_units(const struct ddp__conv_shape *s, const uint32_t *packed)
{
    return (const float *)(const void *)packed +
           ddp__i16_pairs(s) * ddp__i16_columns(s);
}

#endif
