/* taps_pairs.h - which pixels the taps of a convolution join
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_TAPS_PAIRS_H
#define DDP_CPU_TAPS_PAIRS_H

#include "cpu/conv/shape.h"

enum {
    DDP__TAPS_PAIRS = 16,  /* of a target; pixels of y, and taps */
    DDP__TAPS_TARGETS = 64 /* pixels of x */
};

/* What a sum has a product of, each.  Of the forward pass the sum is a pixel of
 * y, from a pixel of x through a tap; of the data gradient one of dx, from a
 * pixel of dy through a tap; of the weight gradient a tap, from a pixel of dy
 * and a pixel of x. */
struct ddp__taps_target {
    size_t count;
    unsigned char from[DDP__TAPS_PAIRS], by[DDP__TAPS_PAIRS];
};

struct ddp__taps_pairs {
    int count; /* of all targets */
    struct ddp__taps_target target[DDP__TAPS_TARGETS];
    bool used[DDP__TAPS_PAIRS]; /* taps */
};

/* Whether there is room for those of a layer, and listing them. */
bool ddp__taps_has_room(const struct ddp__conv_shape *s);
void ddp__taps_list(const struct ddp__conv_shape *s, enum ddp__conv_pass pass,
                    struct ddp__taps_pairs *p);

#endif
