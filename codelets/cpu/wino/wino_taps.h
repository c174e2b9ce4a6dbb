/* wino_taps.h - taps of filters, in vectors over the columns of matrices
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * After vec16.h or vec8.h.
 */
#ifndef DDP_CPU_WINO_TAPS_H
#define DDP_CPU_WINO_TAPS_H

#include <string.h>

#include "wino_kind.h"

/* Bytes of a layer's filters that its first group of tiles may still find in
 * the third-level cache; more go past the caches. */
enum { MOST_CACHED = 16 << 20 };

/* past: a constant */
VEC_INLINE void put_weights(float *to, vec v, bool past)
{
    if (past)
        STREAM(to, v);
    else
        STORE(to, v);
}

/* The taps of LANES columns from `column` on, in as many rows: tap[row][taps],
 * vectors over columns.  Those of the next rows are fetched: they are in many
 * places. */
VEC_INLINE void load_taps(const struct ddp__wino_filters *f, size_t row,
                          size_t column, size_t taps, vec *tap)
{
    for (size_t k = 0; k < taps; k++) {
        vec in[LANES], out[LANES];

#pragma GCC unroll 16
        for (size_t i = 0; i < LANES; i++) {
            size_t filter = (f->turn ? row : column) + i;
            size_t channel = f->turn ? column : row;

            const float *p = f->w + (filter * taps + k) * f->c + channel;

            in[i] = f->by ? MUL(LOAD(p), SET(f->by[filter])) : LOAD(p);
            _mm_prefetch(
                (const void *)(p + (f->turn ? LANES * taps * f->c : LANES)),
                _MM_HINT_T0);
        }
        if (f->turn)
            memcpy(out, in, sizeof(in));
        else
            turn_square(in, out);
        for (size_t i = 0; i < LANES; i++)
            tap[i * taps + (f->turn ? taps - 1 - k : k)] = out[i];
    }
}

#endif
