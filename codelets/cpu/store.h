/* store.h - results on their way to memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_STORE_H
#define DDP_CPU_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ops_backend.h"

/* Loops leave results in a block of f32 in L1, or in place where that is all
 * there is to it; ddp__store_block() converts and stores a block.  Outputs that
 * do not fit into a core's cache go past it (stream), which saves reading the
 * lines first; ddp__store_end() comes after the last of them.
 *
 * Only the choice to stream follows the machine, for it stores the same bits.
 * Blocks, here and in wino.c, amx.c and pool.h, are also what sums are made of:
 * they are constants, so that a run gives the same weights everywhere. */
enum { DDP__BLOCK = 2048 };
extern size_t ddp__stream_bytes; /* set by ddp__store_init() */

void ddp__store_init(const struct ddp__machine *m);
void ddp__store_block(void *dst, const float *src, size_t len, bool b,
                      bool stream);
void ddp__store_end(void);

/* The other way: values of bf16 as f32. */
void ddp__widen(const uint16_t *src, size_t len, float *dst);

static inline bool ddp__streams(size_t len, bool b)
{
    return len * (b ? 2 : 4) >= ddp__stream_bytes;
}

#endif
