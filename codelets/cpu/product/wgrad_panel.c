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

/* ---- products ----------------------------------------------------------- */

/* sum + a b, or with bf16 (a constant) the sum of both products; as text for
 * the assembler, because floats have to do without AVX512_BF16. */
DDP__V16_INLINE __m512 multiply_add(bool b, __m512i u, __m512i v, __m512 sum)
{
    if (!b)
        return _mm512_fmadd_ps(_mm512_castsi512_ps(u), _mm512_castsi512_ps(v),
                               sum);
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(u), "v"(v));
    return sum;
}

DDP__V16_INLINE void put_row(const struct ddp__wgrad_tile *t, size_t i,
                             size_t first, __m512 sum)
{
    float *to = t->dw + i * t->ld + first;
    __mmask16 m = ddp__mask16(t->cols - first);

    if (t->add)
        sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(m, to));
    _mm512_mask_storeu_ps(to, m, sum);
}

/* `rows` rows from `first` on, by 16 or 32 (wide) columns: constants, but for
 * first, so that every index of acc is known when this is compiled. */
DDP__V16_INLINE void block(bool b, size_t rows, bool wide, size_t first,
                           const struct ddp__wgrad_tile *t)
{
    __m512 acc[2 * ROWS][2];
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
        __m512i v = _mm512_load_si512(x), v2 = v;

        _mm_prefetch((const void *)next, _MM_HINT_T1);
        next += t->ahead;

        if (wide) {
            v2 = _mm512_load_si512(x2);
            x2 += PANEL;
        }
#pragma GCC unroll 16
        for (size_t i = 0; i < rows; i++) {
            __m512i u = _mm512_set1_epi32((int)dy[i]);

            acc[i][0] = multiply_add(b, u, v, acc[i][0]);
            if (wide)
                acc[i][1] = multiply_add(b, u, v2, acc[i][1]);
        }
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < rows; i++) {
        if (first + i >= t->rows)
            break;
        put_row(t, first + i, 0, acc[i][0]);
        if (wide)
            put_row(t, first + i, PANEL, acc[i][1]);
    }
}

/* An instance for each type and width. */
#define X(name, b)                                                             \
    DDP__V16 static void name(const struct ddp__wgrad_tile *t)                 \
    {                                                                          \
        for (size_t i = 0; i < t->rows && t->x2; i += ROWS)                    \
            block(b, ROWS, true, i, t);                                        \
        if (!t->x2 && t->rows <= ROWS)                                         \
            block(b, ROWS, false, 0, t);                                       \
        else if (!t->x2)                                                       \
            block(b, PANEL, false, 0, t);                                      \
    }
X(tile_f32, false)
X(tile_bf16, true)
#undef X

void ddp__wgrad_tile(const struct ddp__wgrad_tile *t)
{
    (t->b ? tile_bf16 : tile_f32)(t);
}

#endif
