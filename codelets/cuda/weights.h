/* weights.h - weights in the type of activations
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CUDA_WEIGHTS_H
#define DDP_CUDA_WEIGHTS_H

#include "ops.h"

/* Buffer i of the task, a part of a handle of f32 weights, in `type`: as OPTIM
 * left it (ddp__cuda_copy_begin()), or converted with the rest of the handle
 * when (id, version) is new here, in stream order.  NULL: failed. */
const void *ddp__cuda_weights(const struct ddp__task *t, int i,
                              enum ddp_dtype type);

/* Give up all copies of a GPU, which no task uses any more. */
void ddp__cuda_weights_forget(int device, bool memory_too);

/* The copy in another type that is kept of all of buffer i, which OPTIM shall
 * write with it; NULL: none.  What is queued by then is the new version, says
 * the second. */
void *ddp__cuda_copy_begin(const struct ddp__task *t, int i,
                           enum ddp_dtype *type);
int ddp__cuda_copy_end(const struct ddp__task *t, int i);

#endif
