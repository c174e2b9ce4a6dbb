/* ema.h - averages of the weights
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_EMA_H
#define DDP_EMA_H

#include "graph/params.h"
#include "ops.h"
#include "runtime/buffer.h"

/* Averages of all parameters, by bucket. */
struct ddp__ema {
    struct ddp__params *params; /* not owned */
    int buckets;                /* of params, which may be freed before */
    bool begun;                 /* they have values */
    struct ddp__average {
        float *memory; /* owned */
        struct ddp__handle handle;
        struct ddp__call call;
    } * bucket; /* owned */
};

/* *out is to be freed also after a failure. */
int ddp__ema_new(struct ddp__ema **out, struct ddp__params *p, double decay);
void ddp__ema_free(struct ddp__ema *m);
/* Initialise the averages with the current weights, unless that was done. */
int ddp__ema_begin(struct ddp__ema *m);

/* Get or set the average of a parameter of len values, in PyTorch's order.
 * Starts the averages if they have not been started. */
int ddp__ema_get(struct ddp__ema *m, const char *name, float *out, size_t len);
int ddp__ema_set(struct ddp__ema *m, const char *name, const float *in,
                 size_t len);

#endif
