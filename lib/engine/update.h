/* update.h - the updates of a bucket: one for all that have the same rule
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_UPDATE_H
#define DDP_UPDATE_H

#include "ops.h"

struct ddp__engine;

/* How a parameter is trained: number block * DDP_MAX_PARAMS + i of an array. */
struct ddp__rule {
    float lr;    /* times the learning rate; 0: it is not */
    float decay; /* weight decay; negative: the optimizer's */
};

struct ddp__updates {
    struct ddp__call *call; /* owned, as are the spans, those of a call after
                               those of the one before */
    int calls;
    struct ddp__span *span;
    int spans;
};

/* Those of bucket b. */
int ddp__updates_new(struct ddp__engine *e, int b);
void ddp__updates_free(struct ddp__updates *u);

#endif
