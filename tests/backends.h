/* backends.h - kernels of CPU workers, and those that define operations
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     for (int i = 0; i < BACKENDS; i++) {
 *         if (!(ddp = begin_backend(i)))
 *             continue;
 *         ...
 *         ddp_finish(ddp);
 *     }
 */
#ifndef BACKENDS_H
#define BACKENDS_H

#include "defaults.h"
#include "tap.h"

enum { BACKENDS = 2 };
static const char *const backends[BACKENDS] = {"cpu", "ref"};

/* A context with one of them; NULL: there is none here. */
static ddp_t *begin_backend(int i)
{
    ddp_t *ddp =
        ddp_init(&(struct ddp_config){START_DEFAULTS, .backend = backends[i]});

    if (ddp)
        diag("%s", ddp_describe(ddp));
    else
        skip(1, "%s", ddp_errmsg());
    return ddp;
}

#endif
