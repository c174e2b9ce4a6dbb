/* bn_stat.h - statistics of batch normalisation, in one pass over x
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_BN_STAT_H
#define DDP_BN_STAT_H

#include "bn.h"

/* sum += s, the sums of a block of rows. */
void ddp__bn_add(double *sum, const float *s, size_t len);

/* Of every channel: s, and in sum the sums of d and of d d, where d is x - s.
 * tmp: 3 width floats, the first of which become s; sum: 2 width doubles. */
void ddp__bn_stat_sums(const void *x, const struct ddp__rows *r, float *tmp,
                       double *sum);

/* Mean and biased variance of every channel; tmp and sum as before. */
void ddp__bn_stat_measure(const void *x, const struct ddp__rows *r, float *tmp,
                          double *sum, float *mean, float *var);

#endif
