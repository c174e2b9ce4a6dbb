/* pixels.c - weights of 1x1 convolutions for products of pixels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "pixels.h"
#include "wino.h"

enum { VECTOR = DDP__WINO_VECTOR, PANEL = DDP__WINO_PANEL };

#ifdef DDP__WINO
static bool has_instructions(void)
{
    return __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512dq");
}
#else
static bool has_instructions(void)
{
    return false;
}
#endif

bool ddp__pixels_fit(const struct ddp__dnn_shape *s)
{
    const struct ddp__conv *k = &s->conv;

    return !s->dense && s->type == DDP_F32 && k->kh == 1 && k->kw == 1 &&
           k->groups == 1 && k->top == 0 && k->left == 0 && k->bottom == 0 &&
           k->right == 0 && has_instructions();
}

size_t ddp__pixels_columns(const struct ddp__dnn_shape *s)
{
    return ((size_t)s->o + VECTOR - 1) / VECTOR * VECTOR;
}

size_t ddp__pixels_packed_size(const struct ddp__dnn_shape *s)
{
    size_t rows = (size_t)s->c + (s->conv.bias ? 1 : 0);

    return ddp__pixels_columns(s) * rows * sizeof(float);
}

void ddp__pixels_pack(const struct ddp__dnn_shape *s, const float *w, bool turn,
                      float *to)
{
    size_t all = ddp__pixels_columns(s), c = (size_t)s->c, o = (size_t)s->o;
    size_t down = turn ? o : 1, across = turn ? 1 : c;

    for (size_t j = 0; j < all; j += PANEL) {
        size_t wide = all - j < PANEL ? VECTOR : PANEL;

        for (size_t i = 0; i < c; i++)
            for (size_t k = j; k < j + wide; k++)
                *to++ = k < o ? w[k * across + i * down] : 0;
    }
    for (size_t k = 0; s->conv.bias && k < all; k++)
        to[k] = k < o ? w[c * o + k] : 0;
}
