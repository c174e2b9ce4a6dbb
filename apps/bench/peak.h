/* peak.h - what the cores and the memory can do at most
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef PEAK_H
#define PEAK_H

#include "ddp.h"

struct peak {
    double flops;     /* a second, of all cores together; 2 per multiply-add */
    const char *base; /* what was measured: "f32 avx512" */
    int cores;
};

/* Measure this many cores at once, for about `seconds`.  bf16 is measured with
 * the best instructions there are; where there are none, the f32 peak stands
 * and base is set.  -1 when threads cannot be started. */
int peak_measure(struct peak *p, enum ddp_dtype type, int cores,
                 double seconds);

/* Bytes a second of memory, past the caches, of all cores together. */
struct memory {
    double copy; /* read and written by copies */
    double read; /* by cores that only read */
};

/* Measure so many cores.  -1 as above, or without memory. */
int peak_memory(struct memory *m, int cores, double seconds);

/* How long it takes at least to read and write so many bytes, `read` of them
 * read: as a copy does it, and no faster than the cores read. */
double memory_seconds(const struct memory *m, double bytes, double read);

#endif
