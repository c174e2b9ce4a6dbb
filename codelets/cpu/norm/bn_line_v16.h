/* bn_line_v16.h - what batch normalisation writes, by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_BN_LINE_V16_H
#define DDP_BN_LINE_V16_H

#include "bn_bwd_loops.h"
#include "cpu/isa.h"

/* An array of len values, which is normalised from the end to the beginning:
 * what a pass before it read last may still be in a cache. */
struct ddp__bn_line {
    const void *x, *dy, *y; /* y: the residual of a forward pass, or NULL */
    void *to;
    uint8_t *mask;      /* to be written, or NULL */
    size_t len, period; /* values until parameters repeat, at least DDP__UNIT */
    bool b, stream;
};

/* f(i, at, m): the units of a line from the last one to the first; `at` is
 * where in a period it begins, m: which of its values there are. */
#define DDP__BN_FROM_END(l, f)                                                 \
    do {                                                                       \
        size_t i = (l)->len - (l)->len % DDP__UNIT, at = i % (l)->period;      \
                                                                               \
        if (i < (l)->len)                                                      \
            f(i, at, ((__mmask32)1 << ((l)->len - i)) - 1);                    \
        while (i > 0) {                                                        \
            i -= DDP__UNIT;                                                    \
            at = at < DDP__UNIT ? at + (l)->period - DDP__UNIT                 \
                                : at - DDP__UNIT;                              \
            f(i, at, 0xffffffff);                                              \
        }                                                                      \
    } while (0)

/* to = act((x - mean) a + shift + y).  Parameters have DDP__UNIT more values
 * than a period. */
DDP__X86_ONLY void ddp__bn_normalise_v16(const struct ddp__bn_params *p,
                                         const struct ddp__bn_line *l,
                                         enum ddp_act act);

/* to = dx, from dz and its sums. */
DDP__X86_ONLY void ddp__bn_spread_v16(const struct ddp__bn_params *p,
                                      const struct ddp__bn_line *l,
                                      enum ddp__bn_source from);

#endif
