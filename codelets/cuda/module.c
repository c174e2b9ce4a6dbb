/* module.c - the door of the module, and what its kernels use of libddp
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>

#include "backend.h"
#include "base/error.h"
#include "module.h"
#include "worker.h"

static struct ddp__module_host host;

/* Descriptions of devices, on which plans are built, came with it. */
enum { OLDEST_CUDNN = 90800 };

/* The first without Volta (its release notes). */
enum { WITHOUT_VOLTA = 91100 };

static int check_cudnn(void)
{
    size_t v = cudnnGetVersion();

    if (v < OLDEST_CUDNN || v / 10000 != CUDNN_MAJOR)
        return ddp__fail(DDP_ENODEV,
                         "cuDNN %zu.%zu.%zu was found, expected %d.8 or a "
                         "later %d: install a newer one, or name its folder in "
                         "DDP_CUDA_LIBS",
                         v / 10000, v % 10000 / 100, v % 100, CUDNN_MAJOR,
                         CUDNN_MAJOR);
    if (host.architecture < 75 && v >= WITHOUT_VOLTA)
        return ddp__fail(DDP_ENODEV,
                         "cuDNN %zu.%zu.%zu does not support GPUs of compute "
                         "capability %d.%d, expected 9.8 to 9.10",
                         v / 10000, v % 10000 / 100, v % 100,
                         host.architecture / 10, host.architecture % 10);
    if (cudnnGraphVersionCheck() != CUDNN_STATUS_SUCCESS ||
        cudnnOpsVersionCheck() != CUDNN_STATUS_SUCCESS ||
        cudnnCnnVersionCheck() != CUDNN_STATUS_SUCCESS)
        return ddp__fail(DDP_ENODEV,
                         "cuDNN's libraries are of different versions: name "
                         "the folder of one cuDNN in DDP_CUDA_LIBS");
    return 0;
}

const struct ddp__backend *ddp_cuda_open(const struct ddp__module_host *h)
{
    if (h->version != DDP__MODULE_VERSION ||
        h->call_size != sizeof(struct ddp__call) ||
        h->task_size != sizeof(struct ddp__task) ||
        h->backend_size != sizeof(struct ddp__backend))
        return NULL;
    host = *h;
    if (check_cudnn() < 0)
        return NULL;
    ddp__cuda_fell_back(h->no_compiler);
    return &ddp__cuda;
}

int ddp__fail(int code, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return host.fail(code, "%s", text);
}

const char *ddp_errmsg(void)
{
    return host.errmsg();
}

int ddp_errcode(void)
{
    return host.errcode();
}

unsigned ddp__failures(void)
{
    return host.failures();
}
