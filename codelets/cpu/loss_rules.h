/* loss_rules.h - the loss of a sample and its gradient, on CPU workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_LOSS_RULES_H
#define DDP_CPU_LOSS_RULES_H

#include "cpu.h"

/* A sample: x in f32, room for its exponentials or gradient, what the loss
 * compares it with, and where its gradient goes. */
struct ddp__loss_row {
    float *x, *e;
    size_t len;
    float weight;
    size_t label;        /* of a loss of classes */
    const float *target; /* of a loss of values, or the share of each class;
                            NULL: the label has all of it */
    void *dx;            /* NULL: not computed */
};

/* The loss of a sample by the task's rule, without its weight.  The gradient,
 * with it, goes to dx. */
double ddp__loss_rule(const struct ddp__task *t, const struct ddp__loss_row *r);

#endif
