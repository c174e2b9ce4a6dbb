/* i16_round.h - matrices rounded to 16-bit integers, for their products
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A vector v becomes integers q times a unit u, such that the sum of q^2 is
 * below 2^30: by the inequality of Cauchy and Schwarz no sum of products of two
 * such vectors leaves 32 bits, for any length and values.
 */
#ifndef DDP_CPU_I16_ROUND_H
#define DDP_CPU_I16_ROUND_H

#include <stddef.h>

#include "cpu/isa.h"

/* Each of the rows of len values; q[rows][ldq], in pairs of integers.  q may
 * be v. */
DDP__X86_ONLY void ddp__i16_round_rows(size_t rows, size_t len, const float *v,
                                       size_t ldv, void *q, size_t ldq,
                                       float *unit);

/* Each of the len columns; two rows make pairs, q[(rows + 1) / 2][ldq].  q may
 * be v. */
DDP__X86_ONLY void ddp__i16_round_columns(size_t rows, size_t len,
                                          const float *v, size_t ldv, void *q,
                                          size_t ldq, float *unit);

#endif
