/* norm_step.h - batch norm over the sub-batches of a step, by libddp's kernels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Forward: bn_measure and bn_collect of each sub-batch; bn_moments of their
 * sum, then bn_normalise.  Backward: bn_sums and bn_gradients of each, then
 * bn_spread.
 */
#ifndef DDP_NORM_STEP_H
#define DDP_NORM_STEP_H

#include "norm.h"

struct ddp__k_bn_collect_shared {
    struct ddp__k_moments of[DDP__THREADS];
};

/* From a mean and the squares around it to sums, which can be added up. */
DDP__DEVICE void ddp__k_bn_collect_block(const struct ddp__k_bn *p,
                                         struct ddp__k_bn_collect_shared *sh,
                                         unsigned block)
{
    size_t c = (size_t)p->k.c;

    ddp__k_join_chunks(p, sh->of, block);
    DDP__EACH(t, DDP__ABREAST)
    {
        struct ddp__k_spot s = ddp__k_spot(&p->k, block, t);
        struct ddp__k_moments m = sh->of[t];
        double sum = m.count * m.mean;

        if (s.channel < c) {
            ddp__k_into_total(&p->total[s.channel], sum, p->add);
            ddp__k_into_total(&p->total[c + s.channel],
                              m.squares + sum * m.mean, p->add);
        }
        if (s.channel == 0)
            ddp__k_into_total(&p->total[2 * c], m.count, p->add);
    }
}

struct ddp__k_bn_moments_shared {
    char none;
};

/* stat = mean[c], biased variance[c], number of values; as ddp__bn_moments() */
DDP__DEVICE void ddp__k_bn_moments_block(const struct ddp__k_bn *p,
                                         struct ddp__k_bn_moments_shared *sh,
                                         unsigned block)
{
    size_t c = (size_t)p->k.c;
    double m = p->total[2 * c];

    (void)sh;
    DDP__EACH(t, DDP__THREADS)
    {
        size_t channel = (size_t)block * DDP__THREADS + t;

        if (channel < c) {
            double mean = p->total[channel] / m;
            double var = p->total[c + channel] / m - mean * mean;

            p->stat[channel] = (float)mean;
            p->stat[c + channel] = (float)(var < 0 ? 0 : var);
        }
        if (channel == 0)
            p->stat[2 * c] = (float)m;
    }
}

#endif
