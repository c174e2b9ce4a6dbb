/* bn_bwd_v16.h - first pass of a norm's backward pass by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_BN_BWD_V16_H
#define DDP_BN_BWD_V16_H

#include "bn_bwd_loops.h"

/* dr = dz of a block of f32 with a mask, and sum += its sums of dz and then of
 * dz (x - mean); false: not on this processor, or not of this width. */
bool ddp__bn_bwd_sum_v16(const float *mean, const struct ddp__bn_part *k,
                         double *sum, bool stream);

#endif
