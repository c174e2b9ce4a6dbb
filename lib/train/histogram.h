/* histogram.h - how many of some values lie where
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_HISTOGRAM_H
#define DDP_HISTOGRAM_H

#include <stddef.h>

enum { DDP__BINS = 64 };

/* Values from min to max, in bins of equal width. */
struct ddp__histogram {
    double min, max, sum, squares;
    size_t values; /* those that are finite; 0: there are none */
    int bins;      /* 1 if all values are equal */
    size_t count[DDP__BINS];
};

struct ddp__histogram ddp__histogram(const float *v, size_t len);

/* Where a bin begins; that of the last one + 1 is max. */
double ddp__histogram_edge(const struct ddp__histogram *h, int bin);

#endif
