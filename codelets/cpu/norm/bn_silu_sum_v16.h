/* bn_silu_sum_v16.h - sums of batch norms with SiLU, of bf16, by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_BN_SILU_SUM_V16_H
#define DDP_BN_SILU_SUM_V16_H

#include "bn_line_v16.h"
#include "bn_silu_set.h"

/* sum = the sums of dz, and after a period those of dz (x - mean).  gate: NULL,
 * or what dy is multiplied by; a line then is all of its samples. */
DDP__X86_ONLY void ddp__bn_silu_sum(const struct ddp__bn_silu *p,
                                    const struct ddp__bn_line *l,
                                    const struct ddp__bn_gate *gate,
                                    double *sum);

#endif
