/* near_sum.h - a sum over ranks that map each other's vectors
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_NEAR_SUM_H
#define DDP_NEAR_SUM_H

#include "engine/exchange.h"

/* Notify the others that this rank's pieces are ready.  Nothing is left for an
 * all-gather.  DDP_ENOMEM, or the error of the MPI module. */
int ddp__near_sum_begin(struct ddp__exchange *x);

/* When all messages have arrived: make the slice of the sum, and notify the
 * others. */
int ddp__near_sum_make(struct ddp__exchange *x);

#endif
