/* i16_round.c - matrices rounded to 16-bit integers, for their products
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One Zen 5 core: 1000 vectors of 256 values in 35 us, columns in 22 us; their
 * product with 256 columns takes 260 us, with floats 500 (wino.h has steps).
 */
#include "config.h"

#include "i16_round.h"

#ifdef DDP__X86
#include "i16_unit.h"

enum { GROUP = 16 }; /* rows */

/* ---- rows --------------------------------------------------------------- */

DDP__V16_INLINE float sum_of_row(const float *v, size_t len, v16 factor)
{
    v16 sum = _mm512_setzero_ps();

    for (size_t i = 0; i < len; i += 16) {
        v16 x = MUL(LOAD(v + i), factor);

        sum = FMA(x, x, sum);
    }
    return _mm512_reduce_add_ps(sum);
}

/* What `rows` rows, a group at most, are multiplied by.  Roots and quotients
 * take as long as all else of a short row: one of 16 vectors at a time. */
DDP__V16_INLINE void find_factors(size_t rows, size_t len, const float *v,
                                  size_t ldv, float *factor)
{
    float sum[GROUP] = {0}, by[GROUP];
    v16 small_by;
    __mmask16 again;

    for (size_t i = 0; i < rows; i++)
        sum[i] = sum_of_row(v + i * ldv, len, SET(1));
    again = ddp__i16_out_of_range(LOAD(sum), &small_by);
    STORE(by, small_by);
    for (size_t i = 0; again && i < rows; i++)
        if (again >> i & 1)
            sum[i] = sum_of_row(v + i * ldv, len, SET(by[i]));
    STORE(factor, ddp__i16_factor_of(LOAD(sum), LOAD(by)));
}

DDP__V16 void ddp__i16_round_rows(size_t rows, size_t len, const float *v,
                                  size_t ldv, void *q, size_t ldq, float *unit)
{
    char *to = q;
    float factor[GROUP];
    size_t n;

    for (; rows > 0; rows -= n, unit += n) {
        n = rows < GROUP ? rows : GROUP;
        find_factors(n, len, v, ldv, factor);
        _mm512_mask_storeu_ps(unit, ddp__mask16(n),
                              ddp__i16_unit(LOAD(factor)));
        for (size_t i = 0; i < n; i++, v += ldv, to += 4 * ldq)
            for (size_t j = 0; j < len; j += 16) {
                __m512i x =
                    _mm512_cvtps_epi32(MUL(LOAD(v + j), SET(factor[i])));

                _mm256_storeu_si256((void *)(to + 2 * j),
                                    _mm512_cvtsepi32_epi16(x));
            }
    }
}

/* ---- columns ------------------------------------------------------------ */

/* Along the rows, as they lie in memory. */
DDP__V16_INLINE void sum_columns(size_t rows, size_t len, const float *v,
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
DDP__V16_INLINE v16 norm_of_columns(size_t rows, const float *v, size_t ldv,
                                    v16 sum)
{
    v16 factor;

    if (!ddp__i16_out_of_range(sum, &factor))
        return _mm512_sqrt_ps(sum);
    sum = _mm512_setzero_ps();
    for (size_t i = 0; i < rows; i++, v += ldv) {
        v16 x = MUL(LOAD(v), factor);

        sum = FMA(x, x, sum);
    }
    return _mm512_div_ps(_mm512_sqrt_ps(sum), factor);
}

DDP__V16 void ddp__i16_round_columns(size_t rows, size_t len, const float *v,
                                     size_t ldv, void *q, size_t ldq,
                                     float *unit)
{
    char *to = q;

    sum_columns(rows, len, v, ldv, unit);
    for (size_t j = 0; j < len; j += 16) {
        v16 norm = norm_of_columns(rows, v + j, ldv, LOAD(unit + j));

        STORE(unit + j, ddp__i16_factor(norm));
    }
    for (size_t i = 0; i < rows; i += 2, v += 2 * ldv, to += 4 * ldq)
        for (size_t j = 0; j < len; j += 16) {
            v16 high = i + 1 < rows ? LOAD(v + ldv + j) : _mm512_setzero_ps();

            _mm512_storeu_si512(
                to + 4 * j, ddp__i16_pair(LOAD(v + j), high, LOAD(unit + j)));
        }
    for (size_t j = 0; j < len; j += 16)
        STORE(unit + j, ddp__i16_unit(LOAD(unit + j)));
}

#endif
