/* i16_rows.c - what outputs see of an image, as rows of 16-bit integers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>

#include "i16_rows.h"

#ifdef DDP__X86
#include "i16_unit.h"

enum {
    VALUES = 32,    /* of a vector */
    GROUP = 16,     /* patches */
    AHEAD = 4 << 10 /* bytes that are on their way */
};

DDP__V16_INLINE __mmask32 mask_of(size_t left)
{
    return left < VALUES ? (1U << left) - 1 : 0xffffffff;
}

DDP__V16_INLINE __m512i load_pairs(const uint16_t *x, size_t left)
{
    return left < VALUES ? _mm512_maskz_loadu_epi16(mask_of(left), x)
                         : _mm512_loadu_si512(x);
}

DDP__V16_INLINE float sum_of_squares(const struct ddp__patch_pieces *p,
                                     v16 factor)
{
    v16 even = ZERO, odd = ZERO;

    for (int j = 0; j < p->count; j++) {
        const struct ddp__patch_piece *v = &p->piece[j];

        for (size_t i = 0; i < v->len; i += VALUES) {
            __m512i pairs = load_pairs(v->x + i, v->len - i);
            v16 low = MUL(ddp__i16_low(pairs), factor);
            v16 high = MUL(ddp__i16_high(pairs), factor);

            _mm_prefetch((const char *)(v->x + i) + AHEAD, _MM_HINT_T0);
            even = FMA(low, low, even);
            odd = FMA(high, high, odd);
        }
    }
    return _mm512_reduce_add_ps(ADD(even, odd));
}

/* What `rows` patches, a group at most, are multiplied by.  Roots and quotients
 * take as long as all else of a short patch: one of 16 vectors at a time. */
DDP__V16_INLINE void find_factors(const struct ddp__patch_pieces *p,
                                  size_t rows, float *factor)
{
    float sum[GROUP] = {0}, by[GROUP];
    v16 small_by;
    __mmask16 again;

    for (size_t i = 0; i < rows; i++)
        sum[i] = sum_of_squares(&p[i], SET(1));
    again = ddp__i16_out_of_range(LOAD(sum), &small_by);
    STORE(by, small_by);
    for (size_t i = 0; again && i < rows; i++)
        if (again >> i & 1)
            sum[i] = sum_of_squares(&p[i], SET(by[i]));
    STORE(factor, ddp__i16_factor_of(LOAD(sum), LOAD(by)));
}

DDP__V16_INLINE void round_piece(const struct ddp__patch_piece *v, v16 factor,
                                 uint16_t *q)
{
    for (size_t i = 0; i < v->len; i += VALUES) {
        __m512i pairs = load_pairs(v->x + i, v->len - i);

        _mm512_mask_storeu_epi16(
            q + v->at + i, mask_of(v->len - i),
            ddp__i16_pair(ddp__i16_low(pairs), ddp__i16_high(pairs), factor));
    }
}

/* A patch in a row of integers. */
DDP__V16_INLINE void round_patch(const struct ddp__patch_pieces *p, v16 factor,
                                 uint32_t *q, size_t ldq)
{
    if (!p->all)
        memset(q, 0, ldq * sizeof(*q));
    for (int i = 0; i < p->count; i++)
        round_piece(&p->piece[i], factor, (uint16_t *)q);
}

DDP__V16 void ddp__i16_rows(const struct ddp__conv_shape *s, const uint16_t *x,
                            struct ddp__patch_place at, size_t rows,
                            uint32_t *q, size_t ldq, float *unit)
{
    size_t n;
    struct ddp__patch_pieces p[GROUP];
    float factor[GROUP];

    for (; rows > 0; rows -= n, unit += n) {
        n = rows < GROUP ? rows : GROUP;
        for (size_t i = 0; i < n; i++, ddp__patch_next(s, &at))
            ddp__patch_pieces(s, x, &at, &p[i]);
        find_factors(p, n, factor);
        _mm512_mask_storeu_ps(unit, ddp__mask16(n),
                              ddp__i16_unit(LOAD(factor)));
        for (size_t i = 0; i < n; i++, q += ldq)
            round_patch(&p[i], SET(factor[i]), q, ldq);
    }
}

#endif
