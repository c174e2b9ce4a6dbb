/* wino_kind.c - which convolutions Winograd's way is faster for
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/isa.h"
#include "wino_kind.h"
#include "wino_lanes.h"
#include "wino_line.h"
#include "wino_line_v8.h"
#include "wino_square.h"
#include "wino_square_v8.h"
#include "wino_tile.h"

bool ddp__wino_off(void)
{
    const char *text = getenv("DDP_WINOGRAD");

    return text && strcmp(text, "0") == 0;
}

enum { LEAST = 32 }; /* channels, or the transforms take too long */

/* The one of `count` that a layer has, or NULL. */
static const struct ddp__wino_kind *
find(const struct ddp__wino_kind *k, int count, const struct ddp__conv_shape *s)
{
    for (int i = 0; i < count; i++, k++)
        if (k->kh == s->conv.kh && k->kw == s->conv.kw &&
            k->b == (s->type == DDP_BF16))
            return k;
    return NULL;
}

const struct ddp__wino_kind *ddp__wino_kind_of(const struct ddp__conv_shape *s)
{
    const struct ddp__wino_kind *k = NULL;

    switch (ddp__wino_lanes()) {
    case 16:
        k = find(ddp__wino_square, 2, s);
        return k ? k : find(ddp__wino_line, 4, s);
    case 8:
        k = find(&ddp__wino_square_v8, 1, s);
        return k ? k : find(ddp__wino_line_v8, 4, s);
    default:
        return NULL;
    }
}

bool ddp__wino_is_line(const struct ddp__conv_shape *s)
{
    return s->conv.kh == 1 || s->conv.kw == 1;
}

int ddp__wino_tiles(int size, int tile)
{
    return (size + tile - 1) / tile;
}

/* At most half of the tiles' pixels may lie outside the image. */
static bool fills_tiles(const struct ddp__conv_shape *s,
                        const struct ddp__wino_kind *k)
{
    int64_t area = (int64_t)ddp__wino_tiles(s->oh, k->high) *
                   ddp__wino_tiles(s->ow, k->wide) * k->high * k->wide;

    return area <= 2 * (int64_t)s->oh * s->ow;
}

/* Products of a row of `out` pixels but for padding, which oneDNN leaves out.
 */
static int direct_products(int out, int in, int taps, int pad)
{
    int count = 0;

    for (int i = -pad; i < out - pad; i++)
        for (int j = i; j < i + taps; j++)
            count += j >= 0 && j < in;
    return count;
}

/* Whether a row or column saves enough products to be faster.  One Zen 5
 * core, 8 images, times oneDNN 2.6, least and most of the three passes: 17x17,
 * 16 channels 0.8 0.8, 32 1.3 1.6, 128 1.7 2.3; 7x7, 32 channels 1.0 1.3,
 * 128 1.2 1.9; 1x3 of 8x8, 16 channels 0.7 1.3, 64 1.5 1.7, 384 1.8 1.9. */
static bool saves_products(const struct ddp__conv_shape *s,
                           const struct ddp__wino_kind *k)
{
    bool down = k->high > 1;
    int out = down ? s->oh : s->ow, tile = down ? k->high : k->wide;
    int direct = direct_products(out, down ? s->h : s->w, k->kh * k->kw,
                                 down ? s->conv.top : s->conv.left);

    return s->c >= LEAST && s->o >= LEAST &&
           3 * direct >= 4 * k->pos * ddp__wino_tiles(out, tile);
}

bool ddp__wino_fits(const struct ddp__conv_shape *s)
{
    const struct ddp__conv *k = &s->conv;
    const struct ddp__wino_kind *kind = s->dense ? NULL : ddp__wino_kind_of(s);

    return kind &&
           (ddp__wino_is_line(s) ? saves_products(s, kind)
                                 : fills_tiles(s, kind)) &&
           (s->type == DDP_F32 || !ddp__amx_here()) && k->sh == 1 &&
           k->sw == 1 && k->dh == 1 && k->dw == 1 && k->groups == 1 &&
           s->c % DDP__WINO_VECTOR == 0 && s->o % DDP__WINO_VECTOR == 0 &&
           ddp__wino_has(k->act) && k->top < k->kh && k->left < k->kw &&
           k->bottom < k->kh && k->right < k->kw && !ddp__wino_off() &&
           (s->type == DDP_F32 || ddp__avx512_vnni_here());
}
