/* judge.h - whether a backend's results are those of ref
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef JUDGE_H
#define JUDGE_H

#include "check.h"

/* What became of one op on one backend, over all rounds. */
struct verdict {
    bool failed;
    char why[200];
};

/* All parts of all outputs; and rows beyond the n-th are unchanged, which
 * is what ref left in them. */
void judge(const struct check *got, const struct check *want,
           const struct ddp__call *c, int n, struct verdict *v);

#endif
