/* depthwise_wgrad_band.h - products of one or two rows of a depthwise 3x3 layer
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_DEPTHWISE_WGRAD_BAND_H
#define DDP_CPU_DEPTHWISE_WGRAD_BAND_H

#include <stdbool.h>
#include <stddef.h>

#include "cpu/norm/bn_clamp_v16.h"
#include "cpu/vector/v16.h"

#ifdef DDP__X86
enum { DDP__DW_LINES = 4 /* of x under a band */ };

/* Memory that is fetched meanwhile: `ahead` bytes for each pixel of a row. */
struct ddp__dw_next {
    const char *at;
    size_t ahead;
};

/* One or two rows of dy, and the rows of x under them, for up to 16 channels.
 * Rows of x outside of the image point to zeros. */
struct ddp__dw_band {
    const char *x[DDP__DW_LINES], *dy[2];
    size_t pitch; /* bytes from pixel to pixel */
    int w, ow, left;
    __mmask16 mask;
    struct ddp__dw_next next[2];
    const struct ddp__bn_clamp *norm; /* of x in f32; or NULL: none */
    size_t channel;                   /* the first one, of the norm's */
    __mmask16 inside[DDP__DW_LINES];  /* with a norm: of what is not 0 in x */
};

/* Add the products of `rows` rows to sums [tap][16].  Of stride 2 there is one
 * row.  Needs AVX-512. */
void ddp__dw_band_add(bool b, int rows, int stride, struct ddp__dw_band *n,
                      float *to);
#endif

#endif
