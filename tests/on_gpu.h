/* on_gpu.h - kernels of CUDA for tests that have their tensors in main memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef ON_GPU_H
#define ON_GPU_H

#include "ops_backend.h"

/* 1: there is a GPU, and this thread uses it; 0: there is none; < 0: failed. */
int on_gpu_enter(void);
void on_gpu_leave(void);

/* Copy the task's buffers, of these sizes, to the GPU, run the kernel, wait,
 * and copy all back; a kernel that writes behind a buffer fails. */
int on_gpu_run(const struct ddp__backend *b, struct ddp__task *t,
               const size_t *size);

#endif
