/* dense_panel.c - matrices in panels for products of dense layers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "cpu/vector/v16.h"
#include "dense_panel.h"
#include "gemm.h"

#ifdef DDP__X86
#include "cpu/vector/turn16.h"

enum { VECTOR = DDP__GEMM_VECTOR, PANEL = DDP__GEMM_PANEL };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Up to 16 rows and 16 columns. */
DDP__V16_INLINE void turn_square(const float *from, size_t ld, size_t rows,
                                 size_t columns, float *to, size_t ldt)
{
    __mmask16 mask = ddp__mask16(columns);
    __m512i in[VECTOR], out[VECTOR];

#pragma GCC unroll 16
    for (size_t i = 0; i < VECTOR; i++)
        in[i] = i < rows ? _mm512_maskz_loadu_epi32(mask, from + i * ld)
                         : _mm512_setzero_si512();
    ddp__turn16(in, out);
#pragma GCC unroll 16
    for (size_t i = 0; i < VECTOR; i++)
        if (i < columns)
            _mm512_storeu_si512(to + i * ldt, out[i]);
}

DDP__V16 static void turn_whole(const float *from, size_t ld, float *to,
                                size_t ldt)
{
    turn_square(from, ld, VECTOR, VECTOR, to, ldt);
}

DDP__V16 static void turn_part(const float *from, size_t ld, size_t rows,
                               size_t columns, float *to, size_t ldt)
{
    turn_square(from, ld, rows, columns, to, ldt);
}

/* 16 lines of each row follow each other, as a processor fetches them. */
void ddp__dense_transpose(const float *from, size_t ld, size_t rows,
                          size_t columns, float *to, size_t ldt)
{
    for (size_t i = 0; i < rows; i += VECTOR)
        for (size_t j = 0; j < columns; j += VECTOR) {
            const float *square = from + i * ld + j;
            float *place = to + j * ldt + i;

            if (rows - i >= VECTOR && columns - j >= VECTOR)
                turn_whole(square, ld, place, ldt);
            else
                turn_part(square, ld, least(rows - i, VECTOR),
                          least(columns - j, VECTOR), place, ldt);
        }
}

static size_t width_of(size_t left)
{
    return left > VECTOR ? PANEL : VECTOR;
}

void ddp__dense_turn(const float *from, size_t ld, size_t rows, size_t columns,
                     float *to)
{
    for (size_t j = 0; j < columns; j += PANEL, to += PANEL * rows)
        ddp__dense_transpose(from + j * ld, ld, least(columns - j, PANEL), rows,
                             to, width_of(columns - j));
}

DDP__V16 static void copy_panel(const float *from, size_t ld, size_t rows,
                                size_t columns, float *to)
{
    size_t width = width_of(columns);
    __mmask16 first = ddp__mask16(columns);
    __mmask16 second = ddp__mask16(columns > VECTOR ? columns - VECTOR : 0);

    for (size_t i = 0; i < rows; i++, from += ld, to += width) {
        _mm512_storeu_ps(to, _mm512_maskz_loadu_ps(first, from));
        if (width == PANEL)
            _mm512_storeu_ps(to + VECTOR,
                             _mm512_maskz_loadu_ps(second, from + VECTOR));
    }
}

void ddp__dense_copy(const float *from, size_t ld, size_t rows, size_t columns,
                     float *to)
{
    for (size_t j = 0; j < columns; j += PANEL, to += PANEL * rows)
        copy_panel(from + j, ld, rows, least(columns - j, PANEL), to);
}

#endif
