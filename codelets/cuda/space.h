/* space.h - the memory of GPUs, for the thread that carries messages
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CUDA_SPACE_H
#define DDP_CUDA_SPACE_H

#include "ops_backend.h"

extern const struct ddp__space ddp__cuda_space;

void ddp__cuda_space_close(void);

#endif
