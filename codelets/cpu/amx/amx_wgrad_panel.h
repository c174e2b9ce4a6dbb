/* amx_wgrad_panel.h - pixels as amx_wgrad.c multiplies them on AMX tiles
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A step has 32 pixels.  Pairs of them are interleaved, channel by channel,
 * which is how tiles read their right operand; for the left one they are also
 * turned:
 *
 *     left   [panel of 16 channels][step][16 channels][32 pixels]
 *     right  [panel][step][16 pairs of pixels][16 channels][2]
 *
 * To interleave within lanes of 128 bits takes one instruction instead of
 * three; channels of a group of 32 are then in another order, which is undone
 * once, when the result is stored: see ddp__amx_side_place().
 */
#ifndef DDP_CPU_AMX_WGRAD_PANEL_H
#define DDP_CPU_AMX_WGRAD_PANEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "amx_run.h"

enum {
    DDP__AMX_CHANNELS = 16,                          /* of a panel */
    DDP__AMX_GROUP = 2 * DDP__AMX_CHANNELS,          /* of two */
    DDP__AMX_TILE = DDP__AMX_CHANNELS * DDP__AMX_ROW /* bf16 */
};

/* x or dy, and its panels of a block of steps. */
struct ddp__amx_side {
    const uint16_t *from;
    uint16_t *tail; /* the last pixels, fewer than a step */
    uint16_t *to;
    size_t pixels, c, panels; /* panels: an even number */
    size_t block;             /* steps that panels have room for */
    size_t ahead; /* bytes from a step to what is fetched meanwhile */
    size_t share; /* bytes of that for a pair and a group */
};

/* One without memory for panels. */
struct ddp__amx_side ddp__amx_side(const void *from, size_t pixels,
                                   int channels);

/* 32 pixels from `first` on become step i of the panels, turned or not; zeros
 * follow the last pixel. */
void ddp__amx_side_pack(const struct ddp__amx_side *d, size_t first, size_t i,
                        bool turned);

/* Where a panel's tiles begin. */
static inline uint16_t *ddp__amx_side_panel(const struct ddp__amx_side *d,
                                            size_t i)
{
    return d->to + i * d->block * DDP__AMX_TILE;
}

/* Where channel i of c is among those of the panels.  Lanes of 128 bits of a
 * group's panels have four channels each, in turns. */
static inline size_t ddp__amx_side_place(size_t i, size_t c)
{
    size_t group = i - i % DDP__AMX_GROUP, k = i % DDP__AMX_GROUP;

    if (c - group <= DDP__AMX_CHANNELS)
        return i;
    return group + k / 4 % 2 * DDP__AMX_CHANNELS + k / 8 * 4 + k % 4;
}

#endif
