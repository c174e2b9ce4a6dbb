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

const struct ddp__backend *ddp_cuda_open(const struct ddp__module_host *h)
{
    if (h->version != DDP__MODULE_VERSION ||
        h->call_size != sizeof(struct ddp__call) ||
        h->task_size != sizeof(struct ddp__task) ||
        h->backend_size != sizeof(struct ddp__backend))
        return NULL;
    host = *h;
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

unsigned ddp__failures(void)
{
    return host.failures();
}
