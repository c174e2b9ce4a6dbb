/* pixels.c - weights of 1x1 convolutions for products of pixels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "cpu/isa.h"
#include "cpu/vector/v16.h"
#include "gemm.h"
#include "pixels.h"

enum {
    VECTOR = DDP__GEMM_VECTOR,
    PANEL = DDP__GEMM_PANEL,
    SHARE = 1 << 16 /* weights of a part: some 20 us */
};

#ifdef DDP__X86
#include "cpu/vector/turn16.h"
#include "cpu/vector/vec16.h"
#endif

bool ddp__pixels_fit(const struct ddp__conv_shape *s)
{
    const struct ddp__conv *k = &s->conv;

    return !s->dense && k->kh == 1 && k->kw == 1 && k->groups == 1 &&
           k->top == 0 && k->left == 0 && k->bottom == 0 && k->right == 0 &&
           ddp__avx512_here();
}

size_t ddp__pixels_columns(const struct ddp__conv_shape *s)
{
    return ((size_t)s->o + VECTOR - 1) / VECTOR * VECTOR;
}

size_t ddp__pixels_packed_size(const struct ddp__conv_shape *s)
{
    size_t rows = (size_t)s->c + (s->conv.bias ? 1 : 0);

    return ddp__pixels_columns(s) * rows * sizeof(float);
}

int ddp__pixels_parts(const struct ddp__conv_shape *s)
{
    size_t all = ddp__pixels_columns(s), panels = (all + PANEL - 1) / PANEL;
    size_t parts = all * (size_t)s->c / SHARE + 1;

    return (int)(parts < panels ? parts : panels);
}

#ifdef DDP__X86
/* Rows i .. i + 15 of a vector of columns from k on, `wide` apart: they are
 * rows of w, too, if it is turned, and else its columns. */
DDP__V16 static void pack_square(const struct ddp__pixels_matrix *f, size_t i,
                                 size_t k, size_t wide, float *to)
{
    size_t rows = f->c - i < VECTOR ? f->c - i : VECTOR;
    __mmask16 down = ddp__mask16(rows), across = ddp__mask16(f->o - k);
    __m512i in[VECTOR], out[VECTOR];

    for (size_t j = 0; f->turn && j < rows; j++)
        STORE(to + j * wide,
              _mm512_maskz_loadu_ps(across, f->w + (i + j) * f->o + k));
    if (f->turn)
        return;
    for (size_t j = 0; j < VECTOR; j++) {
        bool is_there = k + j < f->o;
        v16 v = SET(0);

        if (is_there)
            v = _mm512_maskz_loadu_ps(down, f->w + (k + j) * f->c + i);
        if (is_there && f->by)
            v = MUL(v, SET(f->by[k + j]));
        in[j] = _mm512_castps_si512(v);
    }
    ddp__turn16(in, out);
    for (size_t j = 0; j < rows; j++)
        STORE(to + j * wide, _mm512_castsi512_ps(out[j]));
}

void ddp__pixels_panel(const struct ddp__pixels_matrix *f, size_t first,
                       size_t wide, float *to)
{
    for (size_t i = 0; i < f->c; i += VECTOR)
        for (size_t k = 0; k < wide; k += VECTOR)
            pack_square(f, i, first + k, wide, to + i * wide + k);
}

void ddp__pixels_pack(const struct ddp__conv_shape *s, const float *w,
                      const float *by, bool turn, int part, float *to)
{
    struct ddp__pixels_matrix f = {w, by, (size_t)s->c, (size_t)s->o, turn};
    size_t all = ddp__pixels_columns(s), panels = (all + PANEL - 1) / PANEL;
    size_t parts = (size_t)ddp__pixels_parts(s), at = (size_t)part;

    for (size_t p = panels * at / parts; p < panels * (at + 1) / parts; p++) {
        size_t first = p * PANEL, left = all - first;
        size_t wide = left < PANEL ? VECTOR : PANEL;

        ddp__pixels_panel(&f, first, wide, to + first * f.c);
    }
    for (size_t k = 0; part == 0 && s->conv.bias && !by && k < all; k++)
        to[all * f.c + k] = k < f.o ? w[f.c * f.o + k] : 0;
}

#endif
