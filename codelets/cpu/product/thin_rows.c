/* thin_rows.c - what outputs see of an image of bf16, as rows of f32
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>

#include "cpu/vector/v16.h"
#include "thin_rows.h"

#ifdef DDP__X86

enum { LANES = 16 };

/* Up to 16 values. */
DDP__V16_INLINE void widen_some(const uint16_t *x, __mmask16 m, float *to)
{
    __m512i v = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(m, x));

    _mm512_mask_storeu_epi32(to, m, _mm512_slli_epi32(v, 16));
}

DDP__V16_INLINE void widen(const uint16_t *x, size_t len, float *to)
{
    for (size_t i = 0; i < len; i += LANES)
        widen_some(x + i, ddp__mask16(len - i), to + i);
}

/* Outputs from one on, up to `rows`, whose patches are in the image, if its own
 * is. */
static size_t inside(const struct ddp__conv_shape *s,
                     const struct ddp__patch_place *at, size_t rows)
{
    int right = at->x * s->conv.sw - s->conv.left + s->conv.kw;
    int more = (s->w - right) / s->conv.sw, left = s->ow - at->x;
    size_t n = (size_t)(more + 1 < left ? more + 1 : left);

    return n < rows ? n : rows;
}

/* `rows` patches that are in the image; x: the first.  Most have short pieces.
 */
DDP__V16_INLINE void widen_patches(const struct ddp__conv_shape *s,
                                   const uint16_t *x, size_t rows, float *to)
{
    size_t c = (size_t)s->c, len = (size_t)s->conv.kw * c;
    size_t line = (size_t)s->w * c, step = (size_t)s->conv.sw * c;
    size_t high = (size_t)s->conv.kh;
    __mmask16 m = ddp__mask16(len);

    for (size_t i = 0; i < rows; i++, x += step)
        for (size_t j = 0; j < high; j++, to += len)
            if (len <= LANES)
                widen_some(x + j * line, m, to);
            else
                widen(x + j * line, len, to);
}

DDP__V16 void ddp__thin_rows(const struct ddp__conv_shape *s, const uint16_t *x,
                             size_t first, size_t rows, size_t values,
                             float *to)
{
    struct ddp__patch_place at = ddp__patch_place(s, first);
    struct ddp__patch_pieces p;
    size_t n;

    for (; rows > 0; rows -= n, to += n * values) {
        ddp__patch_pieces(s, x, &at, &p);
        n = p.all ? inside(s, &at, rows) : 1;
        if (p.all)
            widen_patches(s, p.piece[0].x, n, to);
        else
            memset(to, 0, values * sizeof(*to));
        for (int i = 0; i < p.count && !p.all; i++)
            widen(p.piece[i].x, p.piece[i].len, to + p.piece[i].at);
        at.x += (int)n - 1;
        ddp__patch_next(s, &at);
    }
}

#endif
