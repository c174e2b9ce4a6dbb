/* onednn.h - convolutions and dense layers by oneDNN, 2.6 or 3.x
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Activations are channels last.  Weights are f32 OHWI (the plain layout) in
 * memory, and the layout that a primitive prefers (packed) where it runs.
 */
#ifndef DDP_ONEDNN_H
#define DDP_ONEDNN_H

#include "cpu/conv/shape.h"

enum { DDP__DNN_NAME = 64 }; /* bytes of an implementation's name */

/* A primitive; any number of threads may run it at once. */
struct ddp__dnn;

/* DDP_ENODEV: oneDNN has none for this case on this processor.
 * transposed: w is the weight of the layer whose gradient this one computes,
 * (c, kh, kw, o) with o and c of shape (DDP__FWD, no groups). */
int ddp__dnn_new(struct ddp__dnn **out, const struct ddp__conv_shape *s,
                 enum ddp__conv_pass pass, bool transposed);
void ddp__dnn_free(struct ddp__dnn *d);

/* Bytes of scratch memory of a run, of a pack, and of packed weights. */
size_t ddp__dnn_scratch(const struct ddp__dnn *d);
size_t ddp__dnn_packed_size(const struct ddp__dnn *d);

/* Packed and plain layout are the same; so are those of two primitives. */
bool ddp__dnn_is_plain(const struct ddp__dnn *d);
bool ddp__dnn_same_packed(const struct ddp__dnn *a, const struct ddp__dnn *b);

/* Weights into packed form; DDP__BWD_W: packed gradient into plain form. */
int ddp__dnn_pack(const struct ddp__dnn *d, const void *from, void *to,
                  void *scratch);

/* Whether one tap of plain filters of `taps` can become tap `at` of a part of
 * the packed ones, and doing so. */
bool ddp__dnn_packs_taps(const struct ddp__dnn *d);
void ddp__dnn_pack_tap(const struct ddp__dnn *d, const float *from, size_t taps,
                       size_t tap, void *to, size_t at, int part);

/* In how many parts; 1: all at once, by ddp__dnn_pack(). */
int ddp__dnn_parts(const struct ddp__dnn *d);

/* w is packed; bias may be NULL where there is none.
 *     DDP__FWD      x, w, bias -> y
 *     DDP__BWD_X    y (dy), w -> x (dx)
 *     DDP__BWD_W    x, y (dy) -> w (dw), bias (db) */
int ddp__dnn_run(const struct ddp__dnn *d, void *x, void *w, void *bias,
                 void *y, void *scratch);

/* The name of the implementation that ddp__dnn_new() would choose; nothing is
 * generated. */
int ddp__dnn_find(const struct ddp__conv_shape *s, enum ddp__conv_pass pass,
                  bool transposed, char name[DDP__DNN_NAME]);

#endif
