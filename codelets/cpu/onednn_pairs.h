/* onednn_pairs.h - weights as oneDNN's products of bf16 read them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_ONEDNN_PAIRS_H
#define DDP_ONEDNN_PAIRS_H

#include "onednn_pd.h"

/* Blocks of `block` outputs, of each all taps, of each 2 `pairs` inputs, which
 * lie pair by pair, each of all outputs of the block. */
struct ddp__pairs {
    size_t outputs, inputs, taps, block, pairs; /* block 0: another layout */
    bool turned; /* plain weights have outputs innermost */
};

/* The layout of packed weights of s, if it is of this kind and the processor
 * can make it here.  turned: s is the data gradient of a layer, with that one's
 * filters. */
struct ddp__pairs ddp__pairs_of(const struct ddp__dnn_shape *s, cmd_t packed,
                                bool turned);

/* Tap `tap` of plain filters of `taps` into tap `at` of the packed ones. */
void ddp__pairs_pack(const struct ddp__pairs *p, const float *from, size_t taps,
                     size_t tap, void *to, size_t at);

#endif
