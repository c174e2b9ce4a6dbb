/* bn_sum_v16.h - sums of batch normalisation, by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_BN_SUM_V16_H
#define DDP_BN_SUM_V16_H

#include "bn_bwd_loops.h"
#include "cpu/isa.h"

/* Add to sum those of dz, and after k->width values those of dz (x - mean), of
 * a block's columns, using k->s1 and k->s2 as scratch.  Where k->dr is not
 * NULL, store dz, in f32, there. */
DDP__X86_ONLY void ddp__bn_sum_v16(const struct ddp__bn_params *p,
                                   const struct ddp__bn_part *k, double *sum,
                                   enum ddp__bn_source from, bool b,
                                   bool stream);

#endif
