/* scale_v16.h - products of pixels with a factor for each channel, by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SCALE_V16_H
#define DDP_SCALE_V16_H

#include <stdbool.h>
#include <stddef.h>

#include "cpu/isa.h"

/* A sample's factors and sums.  Of bf16, those of even channels are apart from
 * those of odd ones, as units are in registers.  There are spare ones for units
 * that end in the next pixel. */
struct ddp__scale {
    float *s, *kept; /* kept: sums over some rows */
    double *sum;
    size_t c, second; /* second: where odd channels begin, of bf16 */
    bool b;
};

/* Pixels of a sample: to = from s.  x: what sums are taken of, or NULL. */
struct ddp__scale_line {
    const void *from, *x;
    void *to;
    size_t rows;
    bool stream; /* past the caches, where lines are whole */
};

/* Whether these loops can, of c channels. */
bool ddp__scale_fits(size_t c, bool b);

/* Bytes of factors and sums, and those in so much memory. */
size_t ddp__scale_size(size_t c);
struct ddp__scale ddp__scale_in(void *room, size_t c, bool b);

/* The factors, of the type of b. */
void ddp__scale_set(const struct ddp__scale *p, const void *s);

DDP__X86_ONLY void ddp__scale_rows(const struct ddp__scale *p,
                                   const struct ddp__scale_line *l);

/* total = the sums of from x over rows: f32 over 64 rows, f64 over all.  l->to
 * may be NULL. */
DDP__X86_ONLY void ddp__scale_and_sum(const struct ddp__scale *p,
                                      const struct ddp__scale_line *l,
                                      double *total);

#endif
