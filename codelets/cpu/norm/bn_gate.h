/* bn_gate.h - gradients behind a product of pixels with a gate
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_BN_GATE_H
#define DDP_BN_GATE_H

#include <stdbool.h>
#include <stddef.h>

/* The gradient of y is dy s + dm / pixels, with one s and dm for each sample
 * and channel: see BN_GATED_BWD. */
struct ddp__bn_gate {
    const void *s, *dm; /* [samples][c] */
    size_t samples, pixels, c;
    bool b; /* bf16 */
};

/* to = that gradient, in f32, of `len` values of whole pixels from value `at`
 * on.  f: room for 2 c factors. */
void ddp__bn_gate_apply(const struct ddp__bn_gate *g, const void *dy, size_t at,
                        size_t len, float *f, float *to);

#endif
