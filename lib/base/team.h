/* team.h - a kernel in parts, with which idle threads help
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_TEAM_H
#define DDP_TEAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Zeros at first. */
struct ddp__team {
    _Atomic uint64_t ticket; /* a number of the kernel, its parts, the next
                                in the second half, and in the first */
    atomic_int done, rc;     /* of its parts: how many, and the first failure */
    atomic_bool over;
    int (*part)(void *arg, int i);
    void *arg;
    struct ddp__error error; /* of rc */
};

/* From here on the kernels of this thread are shared with a team, which must
 * live until all that help have returned. */
void ddp__team_enter(struct ddp__team *t);
void ddp__team_leave(void);

/* How many parts some work should have: 1, 2, 4 or 8, which two and four
 * workers share evenly, each of some `least` of its units or more.  They depend
 * on nothing else, so that bits do not. */
int ddp__team_parts(size_t units, size_t least);

/* Run part(arg, i) for i from 0 to n - 1, of at most 65535, in any order, and
 * with this thread's team at the same time; 0, or the first failure. */
int ddp__team_each(int n, int (*part)(void *arg, int i), void *arg);

/* Run parts of a team's kernels until its thread leaves it. */
void ddp__team_help(struct ddp__team *t);

#endif
