/* total.h - what the lanes of a step add up: vectors, and their merges
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_TOTAL_H
#define DDP_TOTAL_H

#include "ops.h"

struct ddp__engine;

enum ddp__total_kind {
    DDP__TOTAL_BUCKET, /* the gradients of a bucket: f32 */
    DDP__TOTAL_SUM,    /* a sum of the graph: f64 */
    DDP__TOTAL_STATS   /* the statistics of the step: f64 */
};

/* Each lane has its own, and lane 0 in the end the total. */
struct ddp__total {
    enum ddp__total_kind kind;
    int at; /* which bucket, or sum */
};

struct ddp__handle *ddp__total_handle(const struct ddp__engine *e, int lane,
                                      struct ddp__total t);

/* The call that adds one lane's to another's; it has their length and type. */
const struct ddp__call *ddp__total_merge(const struct ddp__engine *e,
                                         struct ddp__total t);

#endif
