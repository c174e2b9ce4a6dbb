/* prepare.h - what libddp's kernels can run
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CUDA_PREPARE_H
#define DDP_CUDA_PREPARE_H

#include "ops.h"

/* Whether our kernels can run a call, DDP_ENODEV if not, and how much scratch
 * they need for it. */
int ddp__cuda_kernels_prepare(const struct ddp__call *c);

#endif
