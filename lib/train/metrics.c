/* metrics.c - loss and accuracy of a step, and of the epoch so far
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "train/metrics.h"

struct ddp_metrics ddp__metrics(const double *stats)
{
    double n = stats[DDP__STAT_COUNT], d = stats[DDP__STAT_DIVISOR];

    return (struct ddp_metrics){
        .samples = (int64_t)n,
        .loss = d != 0 ? stats[DDP__STAT_LOSS] / d : 0,
        .top1 = n > 0 ? stats[DDP__STAT_TOP1] / n : 0,
        .top5 = n > 0 ? stats[DDP__STAT_TOP5] / n : 0,
        .top10 = n > 0 ? stats[DDP__STAT_TOP10] / n : 0,
    };
}

void ddp__metrics_add(struct ddp__run *r, const double *s)
{
    r->epoch.samples += (int64_t)s[DDP__STAT_COUNT];
    r->epoch.loss += s[DDP__STAT_LOSS];
    r->epoch.top1 += s[DDP__STAT_TOP1];
    r->epoch.top5 += s[DDP__STAT_TOP5];
    r->epoch.top10 += s[DDP__STAT_TOP10];
    r->epoch_divisor += s[DDP__STAT_DIVISOR];
}

struct ddp_metrics ddp__trainer_epoch_mean(const struct ddp_trainer *t)
{
    const struct ddp__run *r = &t->run;
    double s[DDP__STATS] = {
        [DDP__STAT_LOSS] = r->epoch.loss,
        [DDP__STAT_DIVISOR] = r->epoch_divisor,
        [DDP__STAT_COUNT] = (double)r->epoch.samples,
        [DDP__STAT_TOP1] = r->epoch.top1,
        [DDP__STAT_TOP5] = r->epoch.top5,
        [DDP__STAT_TOP10] = r->epoch.top10,
    };

    return ddp__metrics(s);
}
