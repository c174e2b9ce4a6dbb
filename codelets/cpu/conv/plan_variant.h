/* plan_variant.h - a plan's primitives, one for each number of samples
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_PLAN_VARIANT_H
#define DDP_PLAN_VARIANT_H

#include "plan.h"

/* The primitive for sub-batches of n samples. */
struct ddp__variant {
    struct ddp__variant *next;
    int n;
    struct ddp__dnn *dnn; /* owned */
};

/* The primitive for n samples, made at its first use. */
int ddp__plan_primitive(struct ddp__plan *p, int n, struct ddp__dnn **out);

void ddp__plan_variants_free(struct ddp__plan *p);

#endif
