/* erase.h - random erasing: boxes of a sample that are painted over
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_ERASE_H
#define DDP_ERASE_H

#include <stdint.h>

#include "ddp.h"

/* The most boxes of a sample. */
enum { DDP__ERASED = 8 };

struct ddp__box {
    int x, y, w, h;
};

/* The boxes, up to an empty one, and what they are filled with. */
struct ddp__erasure {
    struct ddp__box box[DDP__ERASED];
    enum ddp_erase fill;
    float mean[3], std[3];
    uint64_t key; /* of its draws */
};

/* DDP_EINVAL for numbers that there are not. */
int ddp__erase_check(const struct ddp_image_options *o);

/* The boxes in a sample of size x size, as the key decides. */
struct ddp__erasure ddp__erase_plan(const struct ddp_image_options *o,
                                    uint64_t key, int size);

/* Paint them in x (size, size, 3). */
void ddp__erase(const struct ddp__erasure *e, int size, uint8_t *x);

#endif
