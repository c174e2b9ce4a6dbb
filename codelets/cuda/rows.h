/* rows.h - rows in blocks, and kernels on rows that several operations use
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CUDA_ROWS_H
#define DDP_CUDA_ROWS_H

#include "gpu/kernels.h"
#include "ops.h"

/* The cut of rows into blocks, and bytes for two f32 of each channel of each
 * chunk, for any rows. */
struct ddp__columns ddp__columns(size_t segments, size_t rows, int c);
unsigned ddp__columns_blocks(const struct ddp__columns *k);
unsigned ddp__columns_finish_blocks(const struct ddp__columns *k);
size_t ddp__columns_scratch(size_t segments, int c);

/* g[row, i] (+)= x[row, i], i < c, of rows of cx values: a gradient into the
 * bucket, less the channels that were padded. */
int ddp__cuda_accumulate(const void *x, enum ddp_dtype type, float *g,
                         size_t rows, int c, int cx, bool add);

/* y[row, i] = x[row, i], i < c, and 0 up to cy: weights in the type of
 * activations, with channels padded. */
int ddp__cuda_convert(const float *x, void *y, enum ddp_dtype type, size_t rows,
                      int c, int cy);

/* dst += src, activations */
int ddp__cuda_add_to(void *dst, const void *src, enum ddp_dtype type,
                     size_t len);

/* g[i] (+)= the sum of x over rows of c values: the gradient of a bias.  Takes
 * `scratch` of ddp__columns_scratch(1, c) bytes. */
int ddp__cuda_sum_rows(const void *x, enum ddp_dtype type, float *g,
                       size_t rows, int c, bool add, void *scratch);

#endif
