/* ranks_check.h - test points that all ranks of a program share
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Rank 0 prints a line for each point that fails on any rank, and at the end
 * how many were tried.
 */
#ifndef DDP_RANKS_CHECK_H
#define DDP_RANKS_CHECK_H

#include <stdio.h>

#include "ddp.h"

static ddp_t *ddp;
static int rank, ranks, tried, failed;

static bool begin_ranks(const struct ddp_config *cfg)
{
    if (!(ddp = ddp_init(cfg))) {
        fprintf(stderr, "%s\n", ddp_errmsg());
        return false;
    }
    rank = ddp_rank(ddp);
    ranks = ddp_rank_count(ddp);
    return true;
}

/* A point passes if it does on all ranks. */
static void check(bool pass, const char *what)
{
    int32_t good = pass;

    tried++;
    if (ddp_allreduce(ddp, &good, 1, DDP_I32, DDP_MIN) < 0 || !good) {
        failed++;
        if (rank == 0)
            printf("not ok: %s: %s\n", what, ddp_errmsg());
    }
}

/* Returns the exit code. */
static int end_ranks(void)
{
    if (rank == 0)
        printf("%d points on %d ranks, %d failed\n", tried, ranks, failed);
    ddp_finish(ddp);
    return failed != 0;
}

#endif
