/* wino_value.h - pixels into and out of Winograd's transforms
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * After vec16.h or vec8.h.
 */
#ifndef DDP_CPU_WINO_VALUE_H
#define DDP_CPU_WINO_VALUE_H

#include <math.h>

#include "cpu/cpu.h"
#include "cpu/vector/vmath.h"
#include "wino_kind.h"
#include "wino_tile.h"

/* From channel c on of a pixel of a tile that may be padded. */
VEC_INLINE vec load_pixel(const void *p, size_t c, bool padded, bool b)
{
    return load_values(padded && p == ddp__wino_no_pixel ? p : ddp__at(p, c, b),
                       b);
}

/* The NaN of v, if any, is kept. */
VEC_INLINE vec activate(vec v, enum ddp_act act)
{
    float f[LANES];

    STORE(f, v);
    if (act == DDP_SILU)
        for (int i = 0; i < LANES; i++)
            f[i] = ddp__act(f[i], DDP_SILU);
    else
        for (int i = 0; i < LANES; i++)
            f[i] = ddp__act(f[i], DDP_HARDSWISH);
    return LOAD(f);
}

/* Identity, ReLU or ReLU6; a NaN remains one. */
VEC_INLINE vec cut_off(vec v, enum ddp_act act)
{
    v = MAX(SET(act == DDP_IDENTITY ? -INFINITY : 0), v);
    return MIN(SET(act == DDP_RELU6 ? 6 : INFINITY), v);
}

/* Pixel (i, j) of the target, from channel c on; r has the bias. */
VEC_INLINE void put_pixel(const struct ddp__wino_target *to, int i, int j,
                          size_t c, vec r, bool b)
{
    void *y;

    if (i >= to->rows || j >= to->cols)
        return;
    y = ddp__to(to->y, (size_t)i * to->pitch + (size_t)j * to->pixel + c, b);
    if (to->sum)
        r = ADD(r, load_values(y, b));
    r = to->act > DDP_RELU6 ? activate(r, to->act) : cut_off(r, to->act);
    store_values(y, r, b, to->past);
}

#endif
