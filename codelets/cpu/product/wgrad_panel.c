/* wgrad_panel.c - pixels in panels of 16 channels, and products of panels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A block of the result is kept in registers: 8 rows by 32 columns, or 16 by
 * 16.
 *
 * One Zen 5 core: products of panels from the first-level cache reach 263
 * GFLOP/s, with bf16 530, as much as its units give; wgrad.c compares layers
 * with oneDNN's.
 */
#include "config.h"

#include "cpu/cpu.h"
#include "cpu/vector/v16.h"
#include "wgrad_panel.h"

#ifdef DDP__X86
#include "gemm_sum.h"
#include "i16_unit.h"

enum { PANEL = DDP__PANEL, ROWS = 8 };

/* ---- panels ------------------------------------------------------------- */

/* The first `left` of 32 values. */
static __mmask32 mask32(size_t left)
{
    return left < 32 ? (1U << left) - 1 : 0xffffffff;
}

DDP__V16 static void fill_f32(const float *row, size_t c, size_t pitch,
                              uint32_t *to)
{
    for (size_t i = 0; i < c; i += PANEL, to += PANEL * pitch)
        _mm512_store_ps(to, _mm512_maskz_loadu_ps(ddp__mask16(c - i), row + i));
}

/* Channel i of p below channel i of q, in 32 bits. */
DDP__V16 static void fill_bf16(const uint16_t *p, const uint16_t *q, size_t c,
                               size_t pitch, uint32_t *to)
{
    const __m512i i =
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i low =
        _mm512_add_epi32(_mm512_set1_epi32(32 << 16),
                         _mm512_or_si512(i, _mm512_slli_epi32(i, 16)));
    const __m512i high =
        _mm512_add_epi32(low, _mm512_set1_epi32(PANEL << 16 | PANEL));

    for (size_t at = 0; at < c; at += 2 * PANEL, to += 2 * PANEL * pitch) {
        __mmask32 m = mask32(c - at);
        __m512i u = _mm512_maskz_loadu_epi16(m, p + at);
        __m512i v = _mm512_maskz_loadu_epi16(m, q + at);

        _mm512_store_si512(to, _mm512_permutex2var_epi16(u, low, v));
        if (c - at > PANEL)
            _mm512_store_si512(to + PANEL * pitch,
                               _mm512_permutex2var_epi16(u, high, v));
    }
}

void ddp__wgrad_fill(const void *const *row, size_t steps, size_t c, bool b,
                     size_t pitch, uint32_t *panel)
{
    for (size_t i = 0; i < steps; i++, panel += PANEL)
        if (b)
            fill_bf16(row[2 * i], row[2 * i + 1], c, pitch, panel);
        else
            fill_f32(row[i], c, pitch, panel);
}

/* ---- integers ----------------------------------------------------------- */

/* Of 16 channels, times factor^2. */
DDP__V16_INLINE v16 sum_of_squares(const uint32_t *panel, size_t steps,
                                   v16 factor)
{
    v16 sum = ZERO, sum2 = ZERO;

    for (size_t i = 0; i < steps; i++, panel += PANEL) {
        __m512i pair = _mm512_load_si512(panel);
        v16 low = MUL(ddp__i16_low(pair), factor),
            high = MUL(ddp__i16_high(pair), factor);

        sum = FMA(low, low, sum);
        sum2 = FMA(high, high, sum2);
    }
    return ADD(sum, sum2);
}

DDP__V16_INLINE v16 norm_of_panel(const uint32_t *panel, size_t steps)
{
    v16 factor, sum = sum_of_squares(panel, steps, SET(1));

    if (!ddp__i16_out_of_range(sum, &factor))
        return _mm512_sqrt_ps(sum);
    sum = sum_of_squares(panel, steps, factor);
    return _mm512_div_ps(_mm512_sqrt_ps(sum), factor);
}

DDP__V16 void ddp__wgrad_round(size_t steps, size_t c, size_t pitch,
                               uint32_t *panel, float *unit)
{
    for (size_t i = 0; i < c; i += PANEL, panel += PANEL * pitch) {
        v16 factor = ddp__i16_factor(norm_of_panel(panel, steps));

        STORE(unit + i, ddp__i16_unit(factor));
        for (size_t k = 0; k < steps * PANEL; k += PANEL) {
            __m512i pair = _mm512_load_si512(panel + k);

            _mm512_store_si512(
                panel + k,
                ddp__i16_pair(ddp__i16_low(pair), ddp__i16_high(pair), factor));
        }
    }
}

/* ---- products ----------------------------------------------------------- */

/* sum + a b, or of pairs the sum of both products; as text for the assembler,
 * because floats have to do without AVX512_BF16. */
DDP__V16_INLINE v16 add_product(enum ddp__wgrad_kind kind, v16 u, v16 v,
                                v16 sum)
{
    if (kind != DDP__WGRAD_BF16)
        return multiply_add(kind == DDP__WGRAD_I16, u, v, sum);
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(u), "v"(v));
    return sum;
}

DDP__V16_INLINE void put_row(enum ddp__wgrad_kind kind,
                             const struct ddp__wgrad_tile *t, size_t i,
                             size_t first, v16 sum)
{
    float *to = t->dw + i * t->ld + first;
    __mmask16 m = ddp__mask16(t->cols - first);

    if (kind == DDP__WGRAD_I16)
        sum = sum_in_units(sum, t->row[i], LOAD(t->col + first));
    if (t->add)
        sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(m, to));
    _mm512_mask_storeu_ps(to, m, sum);
}

/* `rows` rows from `first` on, by 16 or 32 (wide) columns: constants, but for
 * first, so that every index of acc is known when this is compiled. */
DDP__V16_INLINE void block(enum ddp__wgrad_kind kind, size_t rows, bool wide,
                           size_t first, const struct ddp__wgrad_tile *t)
{
    v16 acc[2 * ROWS][2];
    const uint32_t *dy = t->dy + first, *x = t->x, *x2 = t->x2;
    const char *next = t->next + first / ROWS * t->steps * t->ahead;

#pragma GCC unroll 16
    for (size_t i = 0; i < rows; i++) {
        const float *to = t->dw + (first + i) * t->ld;

        _mm_prefetch((const void *)to, _MM_HINT_T0);
        if (wide)
            _mm_prefetch((const void *)(to + PANEL), _MM_HINT_T0);
        acc[i][0] = acc[i][1] = _mm512_setzero_ps();
    }
    for (size_t k = 0; k < t->steps; k++, dy += PANEL, x += PANEL) {
        v16 v = LOAD(x), v2 = v;

        _mm_prefetch((const void *)next, _MM_HINT_T1);
        next += t->ahead;

        if (wide) {
            v2 = LOAD(x2);
            x2 += PANEL;
        }
#pragma GCC unroll 16
        for (size_t i = 0; i < rows; i++) {
            v16 u = _mm512_castsi512_ps(_mm512_set1_epi32((int)dy[i]));

            acc[i][0] = add_product(kind, u, v, acc[i][0]);
            if (wide)
                acc[i][1] = add_product(kind, u, v2, acc[i][1]);
        }
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < rows; i++) {
        if (first + i >= t->rows)
            break;
        put_row(kind, t, first + i, 0, acc[i][0]);
        if (wide)
            put_row(kind, t, first + i, PANEL, acc[i][1]);
    }
}

/* An instance for each kind and width. */
#define X(name, kind)                                                          \
    DDP__V16 static void name(const struct ddp__wgrad_tile *t)                 \
    {                                                                          \
        for (size_t i = 0; i < t->rows && t->x2; i += ROWS)                    \
            block(kind, ROWS, true, i, t);                                     \
        if (!t->x2 && t->rows <= ROWS)                                         \
            block(kind, ROWS, false, 0, t);                                    \
        else if (!t->x2)                                                       \
            block(kind, PANEL, false, 0, t);                                   \
    }
X(tile_f32, DDP__WGRAD_F32)
X(tile_bf16, DDP__WGRAD_BF16)
X(tile_i16, DDP__WGRAD_I16)
#undef X

void ddp__wgrad_tile(const struct ddp__wgrad_tile *t)
{
    static void (*const tile[])(const struct ddp__wgrad_tile *) = {
        [DDP__WGRAD_F32] = tile_f32,
        [DDP__WGRAD_BF16] = tile_bf16,
        [DDP__WGRAD_I16] = tile_i16};

    tile[t->kind](t);
}

#endif
