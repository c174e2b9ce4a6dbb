/* launch.c - where libddp's kernels go: the stream of the calling worker
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "launch.h"
#include "tasks.h"
#include "worker.h"

int ddp__cuda_place(struct ddp__cuda_place *place)
{
    const struct ddp__cuda_worker *w = ddp__cuda_self();

    if (!w)
        return DDP_EDEVICE;
    place->stream = w->stream;
    place->scratch = w->scratch;
    return 0;
}

int ddp__cuda_launched(int error, const char *name)
{
    return ddp__cuda_check((cudaError_t)error, name);
}

void ddp__cuda_needs(size_t scratch)
{
    ddp__cuda_want_scratch(scratch);
}
