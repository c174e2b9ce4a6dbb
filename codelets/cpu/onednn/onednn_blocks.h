/* onednn_blocks.h - weights as oneDNN's products read them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_ONEDNN_BLOCKS_H
#define DDP_ONEDNN_BLOCKS_H

#include "cpu/isa.h"
#include "onednn_md.h"

/* Blocks of `block` outputs, of each all taps, of each `words` of inputs, in
 * groups of `group`: word by word, each of all outputs of the block.  A word is
 * an input of f32, or two of bf16. */
struct ddp__blocks {
    size_t outputs, words, taps, block, group; /* block 0: another layout */
    bool wide;                                 /* a word is an input */
    bool turned; /* plain weights have outputs innermost */
};

/* The layout of packed weights of s, if it is of this kind and the processor
 * can make it here.  turned: s is the data gradient of a layer, with that one's
 * filters. */
struct ddp__blocks ddp__blocks_of(const struct ddp__conv_shape *s, cmd_t packed,
                                  bool turned);

/* In how many parts they are packed: several workers may share them. */
int ddp__blocks_parts(const struct ddp__blocks *p);

/* Tap `tap` of plain filters of `taps` into tap `at` of a part of the packed
 * ones. */
DDP__X86_ONLY void ddp__blocks_pack(const struct ddp__blocks *p,
                                    const float *from, size_t taps, size_t tap,
                                    void *to, size_t at, int part);

#endif
