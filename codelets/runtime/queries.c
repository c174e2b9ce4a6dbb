/* queries.c - what a program asks about its context: devices, ranks, versions
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>

#include "base/error.h"
#include "runtime/context.h"
#include "runtime/describe.h"
#include "runtime/devices.h"

const char *ddp_version(void)
{
    static char text[96];
    int major, minor, release;

    starpu_get_version(&major, &minor, &release);
    snprintf(text, sizeof(text), "%s %s, StarPU %d.%d.%d", PACKAGE_NAME,
             PACKAGE_VERSION, major, minor, release);
    return text;
}

/* A device may have found out more since: the text is made again. */
const char *ddp_describe(const ddp_t *ddp)
{
    if (!ddp) {
        ddp__fail_null("ddp");
        return "";
    }
    ddp__describe((ddp_t *)ddp);
    return ddp->describe;
}

int ddp_gpu_worker_count(const ddp_t *ddp)
{
    return ddp ? ddp->gpu_workers : ddp__fail_null("ddp");
}

int ddp_gpu_count(const ddp_t *ddp, struct ddp_gpu_info *first)
{
    int count = 0;

    if (!ddp)
        return ddp__fail_null("ddp");
    if (ddp->accelerator)
        ddp__device_workers(ddp->accelerator, &count);
    if (first && count)
        *first = ddp->gpus.info[0];
    return count;
}

int ddp_worker_count(const ddp_t *ddp)
{
    return ddp ? ddp->workers : ddp__fail_null("ddp");
}

int ddp_rank(const ddp_t *ddp)
{
    return ddp ? ddp->net.wire.rank : ddp__fail_null("ddp");
}

int ddp_rank_count(const ddp_t *ddp)
{
    return ddp ? ddp->net.wire.count : ddp__fail_null("ddp");
}

int ddp_local_rank(const ddp_t *ddp)
{
    return ddp ? ddp->net.wire.local_rank : ddp__fail_null("ddp");
}

const char *ddp_ranks_describe(const ddp_t *ddp)
{
    if (ddp)
        return ddp->net.wire.about;
    ddp__fail_null("ddp");
    return "";
}

int ddp_ranks_hurry(ddp_t *ddp, double seconds)
{
    if (!ddp)
        return ddp__fail_null("ddp");
    if (!(seconds > 0))
        return ddp__fail(DDP_EINVAL, "seconds %g must be positive", seconds);
    ddp__peers_hurry(&ddp->net, seconds);
    return 0;
}

int ddp_ranks_status(const ddp_t *ddp, int rank, struct ddp_rank_status *s)
{
    if (!ddp || !s)
        return ddp__fail_null(!ddp ? "ddp" : "s");
    return ddp__net_status((struct ddp__net *)&ddp->net, rank, s);
}
