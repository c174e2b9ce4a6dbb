/* module.h - what a module of kernels and libddp tell each other
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_MODULE_H
#define DDP_MODULE_H

#include "ops_backend.h"

/* Counted up with every change of the ops headers that sizes do not show. */
enum { DDP__MODULE_VERSION = 7 };

/* What libddp lends to a module, which sees none of its hidden symbols; and
 * what tells whether both are of one build. */
struct ddp__module_host {
    int version;
    size_t call_size, task_size, backend_size;
    int (*fail)(int code, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
    unsigned (*failures)(void);
    const char *(*errmsg)(void);
    int (*errcode)(void);
    int architecture;        /* of the oldest GPU: 75 is 7.5 */
    const char *no_compiler; /* why cuDNN cannot compile kernels; "": it can */
};

/* The only symbol of a module.  NULL: the libraries do not fit it, after
 * host->fail(); or, without, it is of another build. */
typedef const struct ddp__backend *
ddp__module_f(const struct ddp__module_host *host);
ddp__module_f ddp_cuda_open;

#endif
