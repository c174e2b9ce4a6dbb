/* gpu.h - which GPUs there are, asked before StarPU starts, and their kernels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_GPU_H
#define DDP_GPU_H

#include "device.h"

/* Ask the driver (libcuda.so.1, or what DDP_LIBCUDA says) for the first `most`
 * GPUs that can be used (0: all), and open the module of kernels.  That there
 * is none is no failure: count is 0, and why says what a user can do about
 * it. */
void ddp__cuda_find(struct ddp__gpus *g, int most);

/* The backend of the module ddp_cuda.so, once that is open; NULL at the end. */
extern const struct ddp__backend *ddp__cuda_backends[];

/* Open the module, for GPUs of this architecture (75: capability 7.5) and later
 * ones: next to libddp.so, in libddp/ there, or where DDP_MODULE_DIR says.
 * Libraries of CUDA that it needs and the loader does not find are looked for
 * in the usual places, Python's wheels included. */
int ddp__cuda_load(int architecture);

#endif
