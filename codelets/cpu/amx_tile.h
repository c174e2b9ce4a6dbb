/* amx_tile.h - the shapes of AMX tiles
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_AMX_TILE_H
#define DDP_AMX_TILE_H

#include "amx.h"

#ifdef DDP__AMX
#include <immintrin.h>

/* The compiler does not see that tile instructions read memory. */
#define DDP__AMX_BARRIER() __asm__ volatile("" : : : "memory")

/* As ldtilecfg reads it. */
struct ddp__amx_tiles {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16]; /* of a row */
    uint8_t rows[16];
};

/* Eight of 16 rows of 64 bytes. */
static inline struct ddp__amx_tiles ddp__amx_tiles(void)
{
    struct ddp__amx_tiles t = {.palette = 1};

    for (int i = 0; i < 8; i++) {
        t.bytes[i] = 64;
        t.rows[i] = 16;
    }
    return t;
}

static inline __attribute__((always_inline, target("amx-tile"))) void
ddp__amx_configure(const struct ddp__amx_tiles *t)
{
    DDP__AMX_BARRIER();
    _tile_loadconfig(t);
}

#endif
#endif
