/* onednn_pairs.h - weights of dense layers as oneDNN's products of bf16 read
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_ONEDNN_PAIRS_H
#define DDP_ONEDNN_PAIRS_H

#include "onednn_pd.h"

/* Blocks of `block` outputs and 2 `pairs` inputs, which lie pair by pair, each
 * of all outputs of the block. */
struct ddp__pairs {
    size_t outputs, inputs, block, pairs; /* block 0: another layout */
};

/* The layout of packed weights of s, if it is of this kind and the processor
 * can make it here. */
struct ddp__pairs ddp__pairs_of(const struct ddp__dnn_shape *s, cmd_t packed);

/* From plain weights to those. */
void ddp__pairs_pack(const struct ddp__pairs *p, const float *from, void *to);

#endif
