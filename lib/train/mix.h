/* mix.h - mixup and cutmix: samples of a sub-batch in pairs
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_MIX_H
#define DDP_MIX_H

#include "ops.h"

/* As struct ddp_train_config has them. */
struct ddp__mix {
    double mixup, cutmix, share, change;
    int64_t off_epoch;
};

/* How the samples of a sub-batch are mixed: each keeps the share `own` of
 * itself, by its pixels' values, or outside of a box. */
struct ddp__mixture {
    float own; /* 1: nothing is mixed */
    bool cut;
    int x, y, w, h; /* the box that comes from the other sample of the pair */
};

bool ddp__mix_used(const struct ddp__mix *m);

/* Of a sub-batch whose samples have that shape, as the key decides. */
struct ddp__mixture ddp__mix_plan(const struct ddp__mix *m, uint64_t key,
                                  struct ddp_shape shape);

/* Mix samples i and n - 1 - i of a FILL task, and their targets, which are
 * f32.  The one in the middle of an odd number remains as it is. */
void ddp__mix_apply(const struct ddp__mixture *m, const struct ddp__task *t);

#endif
