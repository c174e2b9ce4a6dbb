/* bn_bwd_channels.c - what batch normalisation backward computes of channels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "bn_bwd_channels.h"
#include "cpu/backend.h"

static void store_gradient(const struct ddp__task *t, float *g, double v)
{
    *g = (float)(t->accumulate ? *g + v : v);
}

void ddp__bn_bwd_gradients(const struct ddp__bn_pass *s, const double *sum,
                           double all)
{
    const struct ddp__task *t = s->t;
    size_t c = s->r.c, w = s->r.width;
    const float *stat = t->data[DDP__BN_BWD_STAT];
    float *g = t->data[DDP__BN_BWD_G];

    for (size_t i = 0; i < c; i++) {
        struct ddp__bn_spread of = ddp__bn_spread(t->call, stat[c + i]);

        store_gradient(t, &g[i], sum[w + i] * of.inv);
        store_gradient(t, &g[c + i], sum[i]);
        store_gradient(t, &g[2 * c + i], t->n * (double)stat[i]);
        store_gradient(t, &g[3 * c + i],
                       t->n * (all > 1 ? of.var * all / (all - 1) : of.var));
    }
}

void ddp__bn_bwd_factors(const struct ddp__bn_pass *s, const double *sum,
                         size_t apart, double all)
{
    size_t c = s->r.c;
    const float *stat = s->t->data[DDP__BN_BWD_STAT];
    size_t w = ddp__bn_spaced(&s->r);
    float *k1 = s->par + 3 * w, *k2 = s->par + 4 * w;

    for (size_t i = 0; i < c; i++) {
        double inv = ddp__bn_spread(s->t->call, stat[c + i]).inv;
        double dscale = sum[apart + i] * inv;

        k1[i] = (float)(sum[i] / all);
        k2[i] = (float)(dscale * inv / all);
    }
    ddp__bn_repeat(&s->r, k1, w);
    ddp__bn_repeat(&s->r, k2, w);
    if (s->silu) {
        ddp__bn_silu_set(&s->of_silu, s->of_silu.k1, k1);
        ddp__bn_silu_set(&s->of_silu, s->of_silu.k2, k2);
        ddp__bn_silu_scale(&s->of_silu);
    }
}

static void load_silu(const struct ddp__bn_pass *s)
{
    ddp__bn_silu_set(&s->of_silu, s->of_silu.mean, s->p.mean);
    ddp__bn_silu_set(&s->of_silu, s->of_silu.a, s->p.a);
    ddp__bn_silu_set(&s->of_silu, s->of_silu.shift, s->p.shift);
    ddp__bn_silu_center(&s->of_silu);
}

void ddp__bn_bwd_load(const struct ddp__bn_pass *s)
{
    const float *w = s->t->data[DDP__BN_BWD_W],
                *stat = s->t->data[DDP__BN_BWD_STAT];
    size_t c = s->r.c, width = ddp__bn_spaced(&s->r);
    bool inverse = s->t->call->bn.inverse;
    float eps = s->t->call->bn.eps, *par = s->par;

    for (size_t i = 0; i < c; i++) {
        par[i] = stat[i];
        par[width + i] =
            inverse ? w[i] * stat[c + i] : w[i] / sqrtf(stat[c + i] + eps);
        par[2 * width + i] = w[c + i];
    }
    for (size_t i = 0; i < 3; i++)
        ddp__bn_repeat(&s->r, par + i * width, width);
    if (s->silu)
        load_silu(s);
}
