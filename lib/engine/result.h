/* result.h - the results of a step
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_RESULT_H
#define DDP_RESULT_H

#include "ops.h"

/* The results of a step. */
struct ddp__result {
    int64_t step; /* -1: none yet */
    double stats[DDP__STATS];
    bool skipped;                /* the update was */
    double scale;                /* of the loss, for the next step */
    double norm;                 /* of the gradients, before clipping */
    int64_t skips, skips_in_row; /* so far */
    char why[256];               /* it was skipped */
    unsigned wishes;             /* of all ranks, like count (comm.h) */
    int64_t count;
};

struct ddp__engine;

/* Wait until step `number` is done; DDP_EINVAL: it was not submitted. */
int ddp__engine_wait(struct ddp__engine *e, int64_t number,
                     struct ddp__result *r);
int ddp__engine_wait_all(struct ddp__engine *e);

/* After a failure, wait for all tasks, forget the steps that were not applied,
 * and return the number of the next step.  DDP_ETORN, or the code of a failure,
 * when some weights of that step were updated. */
int64_t ddp__engine_settle(struct ddp__engine *e);

/* Get the merged gradient of a parameter in PyTorch's order, divided by
 * divisor; set another in its place. */
int ddp__engine_gradient(struct ddp__engine *e, const char *name, float *out,
                         size_t len, double divisor);
int ddp__engine_set_gradient(struct ddp__engine *e, const char *name,
                             const float *in, size_t len, double divisor);

#endif
