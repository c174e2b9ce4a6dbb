/* wino_round.c - matrices rounded to 16-bit integers, for their products
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "wino.h"
#include "wino_round.h"

#ifdef DDP__WINO
#include "wino_v16.h"

/* The norm of the integers.  Squares of what is this small or large are summed
 * with a factor, lest the sum is 0 or infinite. */
static const float NORM = 32766;
static const float TINY = 1e-30f, HUGE_SUM = 1e30f;
static const float UP = 0x1p70f, DOWN = 0x1p-70f;

/* Vectors of a smaller norm count as 0. */
static const float LEAST = 1e-33f;

/* What values of vectors with that norm are multiplied by; where all are 0, by
 * anything finite. */
DDP__WINO_INLINE v16 factor_of(v16 norm)
{
    __mmask16 none = _mm512_cmp_ps_mask(norm, SET(LEAST), _CMP_LT_OQ);

    return _mm512_mask_mov_ps(_mm512_div_ps(SET(NORM), norm), none, SET(1));
}

DDP__WINO_INLINE v16 unit_of(v16 factor)
{
    return _mm512_div_ps(SET(1), factor);
}

/* Those of the sums that are out of range, with what to multiply by. */
DDP__WINO_INLINE __mmask16 out_of_range(v16 sum, v16 *factor)
{
    __mmask16 small = _mm512_cmp_ps_mask(sum, SET(TINY), _CMP_LT_OQ);
    __mmask16 large = _mm512_cmp_ps_mask(sum, SET(HUGE_SUM), _CMP_GT_OQ);

    *factor = _mm512_mask_mov_ps(SET(1), small, SET(UP));
    *factor = _mm512_mask_mov_ps(*factor, large, SET(DOWN));
    return small | large;
}

/* ---- rows --------------------------------------------------------------- */

DDP__WINO_INLINE float sum_of_row(const float *v, size_t len, v16 factor)
{
    v16 sum = _mm512_setzero_ps();

    for (size_t i = 0; i < len; i += 16) {
        v16 x = MUL(LOAD(v + i), factor);

        sum = FMA(x, x, sum);
    }
    return _mm512_reduce_add_ps(sum);
}

DDP__WINO_INLINE v16 norm_of_row(const float *v, size_t len)
{
    v16 factor, sum = SET(sum_of_row(v, len, SET(1)));

    if (!out_of_range(sum, &factor))
        return _mm512_sqrt_ps(sum);
    sum = SET(sum_of_row(v, len, factor));
    return _mm512_div_ps(_mm512_sqrt_ps(sum), factor);
}

DDP__WINO void ddp__wino_round_rows(size_t rows, size_t len, const float *v,
                                    size_t ldv, void *q, size_t ldq,
                                    float *unit)
{
    char *to = q;

    for (size_t i = 0; i < rows; i++, v += ldv, to += 4 * ldq) {
        v16 factor = factor_of(norm_of_row(v, len));

        unit[i] = _mm512_cvtss_f32(unit_of(factor));
        for (size_t j = 0; j < len; j += 16) {
            __m512i x = _mm512_cvtps_epi32(MUL(LOAD(v + j), factor));

            _mm256_storeu_si256((void *)(to + 2 * j),
                                _mm512_cvtsepi32_epi16(x));
        }
    }
}

/* ---- columns ------------------------------------------------------------ */

/* Along the rows, as they lie in memory. */
DDP__WINO_INLINE void sum_columns(size_t rows, size_t len, const float *v,
                                  size_t ldv, float *sum)
{
    for (size_t j = 0; j < len; j += 16)
        STORE(sum + j, _mm512_setzero_ps());
    for (size_t i = 0; i < rows; i++, v += ldv)
        for (size_t j = 0; j < len; j += 16) {
            v16 x = LOAD(v + j);

            STORE(sum + j, FMA(x, x, LOAD(sum + j)));
        }
}

/* Of 16 columns with that sum. */
DDP__WINO_INLINE v16 norm_of_columns(size_t rows, const float *v, size_t ldv,
                                     v16 sum)
{
    v16 factor;

    if (!out_of_range(sum, &factor))
        return _mm512_sqrt_ps(sum);
    sum = _mm512_setzero_ps();
    for (size_t i = 0; i < rows; i++, v += ldv) {
        v16 x = MUL(LOAD(v), factor);

        sum = FMA(x, x, sum);
    }
    return _mm512_div_ps(_mm512_sqrt_ps(sum), factor);
}

DDP__WINO_INLINE __m512i pair(v16 low, v16 high, v16 factor)
{
    __m512i l = _mm512_cvtps_epi32(MUL(low, factor));
    __m512i h = _mm512_cvtps_epi32(MUL(high, factor));

    /* the low half of l below that of h */
    return _mm512_ternarylogic_epi32(_mm512_set1_epi32(0xffff), l,
                                     _mm512_slli_epi32(h, 16), 0xca);
}

DDP__WINO void ddp__wino_round_columns(size_t rows, size_t len, const float *v,
                                       size_t ldv, void *q, size_t ldq,
                                       float *unit)
{
    char *to = q;

    sum_columns(rows, len, v, ldv, unit);
    for (size_t j = 0; j < len; j += 16) {
        v16 norm = norm_of_columns(rows, v + j, ldv, LOAD(unit + j));

        STORE(unit + j, factor_of(norm));
    }
    for (size_t i = 0; i < rows; i += 2, v += 2 * ldv, to += 4 * ldq)
        for (size_t j = 0; j < len; j += 16) {
            v16 high = i + 1 < rows ? LOAD(v + ldv + j) : _mm512_setzero_ps();

            _mm512_storeu_si512(to + 4 * j,
                                pair(LOAD(v + j), high, LOAD(unit + j)));
        }
    for (size_t j = 0; j < len; j += 16)
        STORE(unit + j, unit_of(LOAD(unit + j)));
}

#endif
