/* patch_pieces.h - where a patch of bf16 lies in an image
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the taps of one output see: they are not dilated, so that those of a row
 * of a filter lie in one piece.
 */
#ifndef DDP_CPU_PATCH_PIECES_H
#define DDP_CPU_PATCH_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu/conv/shape.h"

enum { DDP__PATCH_MOST = 16 /* rows, and columns, of a filter at most */ };

/* An output pixel. */
struct ddp__patch_place {
    size_t image;
    int y, x;
};

/* Values that are in the image, and their place in the patch. */
struct ddp__patch_piece {
    const uint16_t *x;
    size_t at, len;
};

/* Pieces of a patch; all: they are all of it. */
struct ddp__patch_pieces {
    struct ddp__patch_piece piece[DDP__PATCH_MOST];
    int count;
    bool all;
};

static inline struct ddp__patch_place
ddp__patch_place(const struct ddp__conv_shape *s, size_t output)
{
    size_t row = output / (size_t)s->ow;

    return (struct ddp__patch_place){.image = row / (size_t)s->oh,
                                     .y = (int)(row % (size_t)s->oh),
                                     .x = (int)(output % (size_t)s->ow)};
}

static inline void ddp__patch_next(const struct ddp__conv_shape *s,
                                   struct ddp__patch_place *at)
{
    if (++at->x < s->ow)
        return;
    at->x = 0;
    if (++at->y < s->oh)
        return;
    at->y = 0;
    at->image++;
}

static inline void ddp__patch_pieces(const struct ddp__conv_shape *s,
                                     const uint16_t *x,
                                     const struct ddp__patch_place *at,
                                     struct ddp__patch_pieces *p)
{
    const struct ddp__conv *k = &s->conv;
    int y = at->y * k->sh - k->top, left = at->x * k->sw - k->left;
    int first = left < 0 ? -left : 0;
    int end = left + k->kw > s->w ? s->w - left : k->kw;
    size_t c = (size_t)s->c, image = at->image * (size_t)s->h;

    p->count = 0;
    p->all = first == 0 && end == k->kw && y >= 0 && y + k->kh <= s->h;
    for (int i = 0; i < k->kh && first < end; i++) {
        size_t row = (image + (size_t)(y + i)) * (size_t)s->w;

        if (y + i >= 0 && y + i < s->h)
            p->piece[p->count++] = (struct ddp__patch_piece){
                x + (row + (size_t)(left + first)) * c,
                (size_t)(i * k->kw + first) * c, (size_t)(end - first) * c};
    }
}

#endif
