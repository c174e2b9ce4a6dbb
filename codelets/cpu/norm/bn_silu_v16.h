/* bn_silu_v16.h - what batch norms with SiLU write, of bf16, by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_BN_SILU_V16_H
#define DDP_BN_SILU_V16_H

#include "bn_line_v16.h"
#include "bn_silu_set.h"

/* to = silu((x - mean) a + shift) */
DDP__X86_ONLY void ddp__bn_silu_normalise(const struct ddp__bn_silu *p,
                                          const struct ddp__bn_line *l);

/* to = dx.  gate: NULL, or what dy is multiplied by; a line then is all of its
 * samples. */
DDP__X86_ONLY void ddp__bn_silu_spread(const struct ddp__bn_silu *p,
                                       const struct ddp__bn_line *l,
                                       const struct ddp__bn_gate *gate);

#endif
