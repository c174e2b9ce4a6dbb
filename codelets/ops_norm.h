/* ops_norm.h - parts of a vector, and the sum of its squares
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The norm of the gradients has the same bits however many tasks compute it.  A
 * vector has pieces, a power of two of them that follows from its length alone,
 * and the sums of the pieces are added in pairs, these in pairs, and so on.  A
 * task that has one of 2, 4 or more strips of the vector computes a branch of
 * this tree: the strips' ends are ends of pieces.
 */
#ifndef DDP_OPS_NORM_H
#define DDP_OPS_NORM_H

#include <stdbool.h>
#include <stddef.h>

#include "ops.h"

/* Elements: a piece has as many at least, unless it is the whole vector. */
enum { DDP__NORM_PIECE = 1 << 16 };

int ddp__norm_pieces(size_t len);

/* Elements of strip i of n, of a vector of so many: whole lines of caches. */
void ddp__strip_range(size_t len, int n, int i, size_t *from, size_t *to);

/* What of a span is in from..to-1; false: nothing. */
bool ddp__strip_span(const struct ddp__span *whole, size_t from, size_t to,
                     struct ddp__span *out);

/* Sums of 1, 2, 4 and so on of the terms so far.  Begin with 0; after a power
 * of two of terms branch[0] is their sum. */
struct ddp__norm_tree {
    unsigned terms;
    double branch[32];
};

void ddp__norm_tree_add(struct ddp__norm_tree *t, double term);

/* SQNORM on a CPU.  squares: the sum of the squares of a span, 0 if they are
 * running statistics; NaN if any value is not finite, whose place it then puts
 * into norm. */
int ddp__norm_squares(const struct ddp__task *t,
                      double (*squares)(const struct ddp__task *t,
                                        const struct ddp__span *s,
                                        double norm[DDP__NORMS]));

#endif
