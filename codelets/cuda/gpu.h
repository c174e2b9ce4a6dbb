/* gpu.h - which GPUs there are, asked before StarPU starts, and their kernels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_GPU_H
#define DDP_GPU_H

#include "ops.h"

enum { DDP__MAX_GPUS = 16 };

/* What was found: nothing here has begun to use a GPU. */
struct ddp__gpus {
    int count, id[DDP__MAX_GPUS]; /* that can be used, by CUDA's numbers */
    int seen;                     /* all of the machine */
    struct ddp__pci {             /* where each of them is */
        unsigned domain, bus, device;
    } pci[DDP__MAX_GPUS];
    struct ddp_gpu_info first; /* of them */
    const struct ddp__backend *backend;
    char why[512]; /* why there are none, or fewer than seen; "": no reason */
};

/* Ask the driver (libcuda.so.1, or what DDP_LIBCUDA says) for the first `most`
 * GPUs that can be used (0: all), and open the module of kernels.  That there
 * is none is no failure: count is 0, and why says what a user can do about
 * it. */
void ddp__gpus_find(struct ddp__gpus *g, int most);

/* The module ddp_cuda.so: beside libddp.so, in libddp/ there, or where
 * DDP_MODULE_DIR says.  Libraries of CUDA that it needs and the loader does
 * not find are looked for in the usual places, Python's wheels included.
 * NULL: ddp__fail() has been called. */
const struct ddp__backend *ddp__gpu_backend(void);

#endif
