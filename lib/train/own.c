/* own.c - ranks that train on data of their own
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * How many samples each rank has is known before the first step, so a rank that
 * has no more of an epoch need not tell the others: its part of a sum is none.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/philox.h"
#include "checkpoint/settings.h"
#include "engine/ranks.h"
#include "runtime/context.h"
#include "train/own.h"
#include "train/trainer.h"

/* Of a rank. */
struct part {
    int64_t samples, steps, own;
    uint32_t crc, divides; /* see divides_sums() */
};

/* Norms are made of quotients by other kernels. */
static bool divides_sums(const ddp_t *ddp)
{
    const struct ddp__devices *d = &ddp->devices;

    return d->count == 1 && strcmp(d->used[0].backends[0]->name, "cpu") == 0;
}

static bool all_divide(const struct part *all, int ranks)
{
    for (int r = 0; r < ranks; r++)
        if (!all[r].divides)
            return false;
    return true;
}

static int check_same(const struct part *all, int ranks)
{
    for (int r = 1; r < ranks; r++)
        if (all[r].own != all[0].own)
            return ddp__fail(DDP_EINVAL,
                             "rank %d has other settings than rank 0: only one "
                             "of them has own_data",
                             r);
    return 0;
}

/* The same sample number means another sample on another rank. */
static uint64_t seed_of(const struct ddp_trainer *t)
{
    int rank = t->ddp->net.wire.rank;

    return rank ? ddp__key(t->cfg.seed, 2, (uint64_t)rank) : t->cfg.seed;
}

static int use_parts(struct ddp_trainer *t, const struct part *all, int ranks)
{
    int64_t samples = 0, steps = 0;
    uint32_t crc = 0;

    for (int r = 0; r < ranks; r++) {
        samples += all[r].samples;
        steps = all[r].steps > steps ? all[r].steps : steps;
        crc = ddp__crc32c(crc, &all[r].crc, sizeof(all[r].crc));
    }
    if (steps == 0)
        return ddp__fail(DDP_EINVAL,
                         "no rank has the %d samples of a step, and drop_last "
                         "leaves out shorter ones",
                         t->cfg.batch);
    t->loader.steps = steps;
    if (t->cfg.steps)
        t->cfg.epochs = (t->cfg.steps + steps - 1) / steps;
    t->loader.seed = seed_of(t);
    t->step_samples = (int64_t)t->cfg.batch * ranks;
    snprintf(t->own, sizeof(t->own), "%lld samples of %d ranks, crc32c %08x",
             (long long)samples, ranks, crc);
    return 0;
}

int ddp__own_data(struct ddp_trainer *t, int rc)
{
    int ranks = ddp_rank_count(t->ddp);
    struct part mine = {.own = t->cfg.own_data,
                        .divides = divides_sums(t->ddp)},
                *all;

    if (ranks == 1)
        return rc;
    if (rc == 0 && mine.own)
        rc = ddp__settings_data(t->loader.data, &mine.crc);
    if ((rc = ddp__ranks_agree(t->ddp, rc)) < 0)
        return rc;
    mine.samples = t->loader.data->count;
    mine.steps = t->loader.steps;
    if (!(all = calloc((size_t)ranks, sizeof(*all))))
        return ddp__fail(DDP_ENOMEM, "out of memory for ranks");
    if ((rc = ddp__ranks_gather(t->ddp, &mine, sizeof(mine), all)) == 0)
        rc = check_same(all, ranks);
    t->divides_sums = all_divide(all, ranks);
    if (rc == 0 && mine.own)
        rc = use_parts(t, all, ranks);
    free(all);
    return rc;
}
