/* amx_tile.h - AMX tiles: their shapes, and products of 32 by 32
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_AMX_TILE_H
#define DDP_AMX_TILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu/isa.h"

#ifdef DDP__AMX
#include <immintrin.h>

#define DDP__AMX_TARGET                                                        \
    __attribute__((target("avx512f,avx512bw,avx512vl,amx-tile,amx-bf16")))
#define DDP__AMX_INLINE                                                        \
    static inline __attribute__((always_inline, target("amx-tile,amx-bf16")))

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

DDP__AMX_INLINE void ddp__amx_configure(const struct ddp__amx_tiles *t)
{
    DDP__AMX_BARRIER();
    _tile_loadconfig(t);
}

/* Tiles 0 .. 3 are 32 x 32 sums, which begin with those at `sum`, whose rows
 * are `pitch` floats apart, or with 0. */
DDP__AMX_INLINE void ddp__amx_begin(const float *sum, size_t pitch, bool add)
{
    const size_t row = pitch * sizeof(*sum);
    const float *below = sum + 16 * pitch;

    DDP__AMX_BARRIER();
    if (add) {
        _tile_loadd(0, sum, row);
        _tile_loadd(1, sum + 16, row);
        _tile_loadd(2, below, row);
        _tile_loadd(3, below + 16, row);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
}

/* Add a tile of each panel of 16 rows or columns. */
DDP__AMX_INLINE void ddp__amx_multiply(const uint16_t *a0, const uint16_t *a1,
                                       const uint16_t *b0, const uint16_t *b1)
{
    const size_t line = 64;

    _tile_loadd(4, a0, line);
    _tile_loadd(6, b0, line);
    _tile_loadd(7, b1, line);
    _tile_loadd(5, a1, line);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
}

DDP__AMX_INLINE void ddp__amx_end(float *sum, size_t pitch)
{
    const size_t row = pitch * sizeof(*sum);
    float *below = sum + 16 * pitch;

    _tile_stored(0, sum, row);
    _tile_stored(1, sum + 16, row);
    _tile_stored(2, below, row);
    _tile_stored(3, below + 16, row);
}

#endif
#endif
