/* wgrad_rows.h - what the taps of a layer see of its input
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_WGRAD_ROWS_H
#define DDP_CPU_WGRAD_ROWS_H

#include <stdint.h>

#include "cpu/conv/shape.h"

/* The input of a layer, and as many zeros as a row has values. */
struct ddp__wgrad_view {
    const struct ddp__conv_shape *s;
    const void *x, *zeros;
    bool b; /* bf16 */
};

/* The channels that `count` outputs from `first` on, of all images, see under a
 * tap.  Outputs after the last one see zeros. */
void ddp__wgrad_rows(const struct ddp__wgrad_view *v, size_t first,
                     size_t count, int tap, const void **row);

/* Those of bf16 under a row of taps without dilation, which lie in one piece;
 * where padding cuts it, a copy in to[count][kw c]. */
void ddp__wgrad_rows_of_taps(const struct ddp__wgrad_view *v, size_t first,
                             size_t count, int tap, uint16_t *to,
                             const void **row);

#endif
