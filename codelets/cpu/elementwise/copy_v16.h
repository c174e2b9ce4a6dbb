/* copy_v16.h - channels of pixels, copied or added by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_COPY_V16_H
#define DDP_CPU_COPY_V16_H

#include <stdbool.h>
#include <stddef.h>

#include "cpu/isa.h"

/* Rows of `bytes` bytes, which begin so many bytes after each other. */
struct ddp__copy {
    const void *from;
    void *to;
    size_t from_step, to_step, bytes, rows;
    bool stream; /* past the caches */
};

/* Whether all rows are made of whole lines, here. */
bool ddp__copy_fits(const struct ddp__copy *c);

/* to = from, and to += from of floats. */
DDP__X86_ONLY void ddp__copy_lines(const struct ddp__copy *c);
DDP__X86_ONLY void ddp__copy_add(const struct ddp__copy *c);

#endif
