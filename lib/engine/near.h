/* near.h - gradients that the ranks of a host add where they are
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * If all ranks are on one host, their pieces of the gradients are in memory
 * that each of them maps: nothing is copied to be added, and each sum is
 * written to where each rank needs it.
 */
#ifndef DDP_NEAR_H
#define DDP_NEAR_H

#include <stdbool.h>

#include "engine/lanes.h"

struct ddp__engine;
struct ddp__near;

/* Give the gradients of the engine such memory, before its first task; every
 * rank calls this.  DDP_EPEER, DDP_ENOMEM; where it cannot be, e->near is NULL
 * on all ranks, and messages carry the gradients. */
int ddp__near_new(struct ddp__engine *e);
void ddp__near_free(struct ddp__engine *e); /* after the lanes */

/* By lane: the gradients of a bucket in those lanes that are first of a piece;
 * others are NULL.  piece[lanes]. */
void ddp__near_pieces(const struct ddp__engine *e, int bucket, void **piece);

#endif
