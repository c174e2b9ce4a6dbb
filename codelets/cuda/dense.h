/* dense.h - plans of dense layers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CUDA_DENSE_H
#define DDP_CUDA_DENSE_H

#include "ops.h"

int ddp__cuda_dense_prepare(const struct ddp__call *c, void **plan);

#endif
