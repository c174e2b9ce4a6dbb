/* wino_taps.h - taps of filters, in vectors over the columns of matrices
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_WINO_TAPS_H
#define DDP_CPU_WINO_TAPS_H

#include <string.h>

#include "turn16.h"
#include "wino_kind.h"
#include "wino_v16.h"

/* Bytes of a layer's filters that its first group of tiles may still find in
 * the third-level cache; more go past the caches. */
enum { MOST_CACHED = 16 << 20 };

/* past: a constant */
DDP__WINO_INLINE void put_weights(float *to, v16 v, bool past)
{
    if (past)
        _mm512_stream_ps(to, v);
    else
        STORE(to, v);
}

/* The taps of 16 columns from `column` on, in 16 rows: tap[row][taps], vectors
 * over columns.  Those of the next rows are fetched: they are in many places.
 */
DDP__WINO_INLINE void load_taps(const struct ddp__wino_filters *f, size_t row,
                                size_t column, size_t taps, v16 *tap)
{
    for (size_t k = 0; k < taps; k++) {
        __m512i in[16], out[16];

#pragma GCC unroll 16
        for (size_t i = 0; i < 16; i++) {
            size_t filter = (f->turn ? row : column) + i;
            size_t channel = f->turn ? column : row;

            const float *p = f->w + (filter * taps + k) * f->c + channel;

            in[i] = f->by
                        ? _mm512_castps_si512(MUL(LOAD(p), SET(f->by[filter])))
                        : _mm512_loadu_si512(p);
            _mm_prefetch((const void *)(p + (f->turn ? 16 * taps * f->c : 16)),
                         _MM_HINT_T0);
        }
        if (f->turn)
            memcpy(out, in, sizeof(in));
        else
            ddp__turn16(in, out);
        for (size_t i = 0; i < 16; i++)
            tap[i * taps + (f->turn ? taps - 1 - k : k)] =
                _mm512_castsi512_ps(out[i]);
    }
}

#endif
