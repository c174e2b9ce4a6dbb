/* profile.h - the time of a step's operations on GPUs
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef BENCH_PROFILE_H
#define BENCH_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

/* One operation, wherever in a step it is: those of equal shapes count as one.
 */
struct profile_row {
    char name[160]; /* operation, samples, type, shapes: "add,8,bf16,7x7x512" */
    double us;      /* the median of all runs */
    double times;   /* in a step */
    double *all;    /* us of each run; owned */
    int64_t runs, room;
};

struct profile {
    struct profile_row *row; /* owned */
    int rows, room;
};

/* Read what DDP_PROFILE=path left of so many steps; a code of the program. */
int profile_read(struct profile *p, const char *path, double steps);
void profile_free(struct profile *p);

/* The row of that name, or NULL. */
const struct profile_row *profile_find(const struct profile *p,
                                       const char *name);

/* Seconds of a step in which kernels run, of all GPUs together. */
double profile_seconds(const struct profile *p);

#endif
