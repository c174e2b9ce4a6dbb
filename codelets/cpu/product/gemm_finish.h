/* gemm_finish.h - what follows sums of products of floats
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_GEMM_FINISH_H
#define DDP_CPU_GEMM_FINISH_H

#include "cpu/vector/vec16.h"
#include "gemm_block.h"

/* How a vector of columns ends. */
struct ending {
    v16 bias, low, high;
    __mmask16 mask; /* of columns that p has */
    bool add, past;
    ptrdiff_t later;
};

DDP__V16_INLINE struct ending ending_of(const struct ddp__gemm_block *t,
                                        size_t j)
{
    const struct ddp__gemm_finish *f = t->finish;
    size_t at = t->column + j, left = f->columns - at;
    struct ending e = {.low = SET(f->low),
                       .high = SET(f->high),
                       .mask = ddp__mask16(left),
                       .add = f->add,
                       .past = f->past,
                       .later = f->later};

    e.bias = _mm512_maskz_loadu_ps(e.mask, f->bias + at);
    return e;
}

/* A NaN remains one. */
DDP__V16_INLINE void finish_sum(const struct ending *e, float *p, v16 sum)
{
    v16 v = ADD(sum, e->bias);

    if (e->add) {
        _mm_prefetch((const void *)(p + e->later), _MM_HINT_T1);
        v = ADD(v, _mm512_maskz_loadu_ps(e->mask, p));
    }
    v = _mm512_min_ps(e->high, _mm512_max_ps(e->low, v));
    if (e->past)
        _mm512_stream_ps(p, v);
    else
        _mm512_mask_storeu_ps(p, e->mask, v);
}

#endif
