/* order.h - the order of samples in an epoch
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_ORDER_H
#define DDP_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* The order of one epoch: a pure function of these fields and the count. */
struct ddp__order {
    uint64_t seed;
    int64_t epoch;
    bool shuffle;
    int repeats; /* of a sample one after the other; 0: 1 */
};

/* The sample at position pos of the order, each of 0..count-1 exactly once. */
int64_t ddp__order_index(const struct ddp__order *o, int64_t count,
                         int64_t pos);

/* The random key of a sample in an epoch; not of its position. */
uint64_t ddp__order_key(const struct ddp__order *o, int64_t index);

/* Which of n samples sample `index` of an epoch is: any, equally likely. */
int64_t ddp__order_draw(const struct ddp__order *o, int64_t index, int64_t n);

/* The keyed permutation of 0..count-1, applied to pos. */
int64_t ddp__permute(uint64_t seed, int64_t epoch, int64_t count, int64_t pos);

#endif
