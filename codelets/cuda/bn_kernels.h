/* bn_kernels.h - batch norm by libddp's kernels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CUDA_BN_KERNELS_H
#define DDP_CUDA_BN_KERNELS_H

#include "backend.h"
#include "ops.h"

/* Batch norm by libddp's kernels. */
int ddp__cuda_bn_kernels_fwd(const struct ddp__task *t);
int ddp__cuda_bn_kernels_eval(const struct ddp__task *t);
int ddp__cuda_bn_kernels_bwd(const struct ddp__task *t);
/* Over the sub-batches of a step. */
int ddp__cuda_bn_sum(const struct ddp__task *t);
int ddp__cuda_bn_sync(const struct ddp__task *t);
int ddp__cuda_bn_sum_bwd(const struct ddp__task *t);
int ddp__cuda_bn_sync_bwd(const struct ddp__task *t);

#endif
