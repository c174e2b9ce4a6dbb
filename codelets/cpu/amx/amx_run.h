/* amx_run.h - an AMX weight gradient as its operands lie in memory; see amx.c
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_AMX_RUN_H
#define DDP_AMX_RUN_H

#include "cpu/conv/shape.h"

enum { DDP__AMX_STEP = 32, DDP__AMX_PAIRS = 16 };
enum { DDP__AMX_ROW = 32 }; /* bf16 of a tile row */

struct ddp__amx_run {
    const struct ddp__conv_shape *s;
    const uint16_t *x, *dy;
    size_t x_row, x_pixel;  /* from one to the next, in x */
    size_t dy_row;          /* in dy */
    int reach_y, reach_x;   /* rows and columns the taps reach further */
    int pitch;              /* positions of a row */
    int phases_y, phases_x; /* of x */
    int rows;               /* of outputs, of a segment */
    size_t steps, pairs;    /* of a segment, in a and in b */
    size_t segments;        /* of a block */
    size_t per_image;       /* segments of an image */
    uint16_t *a, *b;
};

/* Where a segment's part of a panel begins. */
static inline uint16_t *ddp__amx_a(const struct ddp__amx_run *r, size_t panel,
                                   size_t segment)
{
    return r->a +
           (panel * r->segments + segment) * r->steps * DDP__AMX_STEP * 16;
}

static inline uint16_t *ddp__amx_b(const struct ddp__amx_run *r, int phase,
                                   int odd, size_t panel, size_t segment)
{
    size_t kind = (size_t)(2 * phase + odd) * (size_t)(r->s->c / 16) + panel;

    return r->b + (kind * r->segments + segment) * r->pairs * DDP__AMX_ROW;
}

#endif
