/* worker.h - what each CUDA worker has, and checks of status codes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Everything a kernel does goes to its worker's stream and returns at once:
 * no allocation, no synchronisation, no call that does either.  What a call
 * needs is made by prepare, before the first task.
 */
#ifndef DDP_CUDA_WORKER_H
#define DDP_CUDA_WORKER_H

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include "ops.h"

enum { DDP__CUDA_DEVICES = 64 };  /* CUDA's numbers of GPUs are below */
enum { DDP__CUDA_WORKERS = 128 }; /* so are the numbers of their workers */

/* What a StarPU CUDA worker has.  Two workers of one GPU have two of these. */
struct ddp__cuda_worker {
    int device; /* CUDA's number */
    int number; /* among the workers of all GPUs, from 0 */
    cudaStream_t stream;
    cudnnHandle_t dnn;
    cublasLtHandle_t blas;
    void *scratch; /* good for one call after another, in stream order */
    size_t scratch_size;
    char *sums; /* behind it: good for one task after another */
    size_t sums_size;
};

/* That of the calling thread, within a kernel; NULL: none, and ddp__fail() has
 * been called. */
struct ddp__cuda_worker *ddp__cuda_self(void);

/* Within prepare: a kernel will need this much scratch, a task this much for
 * sums.  And what both come to. */
void ddp__cuda_want_scratch(size_t size);
void ddp__cuda_want_sums(size_t size);
size_t ddp__cuda_scratch_wanted(void);

/* Memory that StarPU counts on and others have, of the fullest GPU. */
size_t ddp__cuda_memory_taken(void);

/* All workers: handles; then, whenever calls have been prepared and before
 * their first task, scratch. */
int ddp__cuda_workers_open(void);
int ddp__cuda_workers_ready(void);
void ddp__cuda_workers_close(void);

/* Their GPUs, each once, in the order of workers: how many, and CUDA's numbers.
 */
int ddp__cuda_devices(int device[DDP__CUDA_DEVICES]);
/* The first, which is not always number 0; -1: none. */
int ddp__cuda_first_device(void);

/* Have a thread that is no GPU worker use that GPU too, so that what it does
 * touches no other, which may be somebody else's. */
void ddp__cuda_use_device(void);

/* Tell StarPU that so many bytes of this worker's GPU are not for it. */
void ddp__cuda_account(size_t size);

/* For tests: this thread, which is no worker, calls kernels on a GPU with a
 * stream of its own. */
int ddp__cuda_enter(struct ddp__cuda_worker *w, int device);
int ddp__cuda_enter_ready(void);
void ddp__cuda_leave(void);

/* 0, or ddp__fail() with the library's message and the failed operation. */
int ddp__cuda_check(cudaError_t e, const char *what);
int ddp__cudnn_check(cudnnStatus_t e, const char *what);
int ddp__cublas_check(cublasStatus_t e, const char *what);

#endif
