/* after.h - what cuDNN and cuBLASLt leave for libddp's kernels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_AFTER_H
#define DDP_AFTER_H

#include "arith.h"

/* y[row, i] = act(y[row, i] + bias[i]), of rows of c values; bias NULL: none */
struct ddp__k_bias_act {
    unsigned items;
    enum ddp_dtype type;
    bool wide;
    enum ddp_act act;
    const float *bias;
    void *y;
    size_t len;
    int c;
};

/* Between cuDNN's statistics of a batch norm and ours: of channels. */
struct ddp__k_bn_given {
    unsigned blocks;
    int c, n; /* n samples */
    float eps;
    float unbias; /* m / (m - 1), of m values of a channel */
    bool add;
    float *var, *inv; /* inv = 1 / sqrt(var + eps); bn_put: var or inv */
    const float *mean, *dscale, *dshift;
    float *g; /* (+)= dscale, dshift, n mean, n unbias var */
};

/* Several norms, each with a g of its own; blocks: of all. */
enum { DDP__PUTS = 16 };
struct ddp__k_bn_puts {
    unsigned blocks;
    int count;
    struct ddp__k_bn_given of[DDP__PUTS];
};

#define DDP__AFTER_ITEMS(X) X(bias_act, bias_act)
#define DDP__AFTER_PLAIN(X)                                                    \
    X(bn_var, bn_given)                                                        \
    X(bn_inv, bn_given)                                                        \
    X(bn_put, bn_puts)

#ifdef __cplusplus
extern "C" {
#endif
#define X(name, params)                                                        \
    int ddp__k_##name(const struct ddp__k_##params *p, void *stream);
DDP__AFTER_ITEMS(X)
DDP__AFTER_PLAIN(X)
#undef X
#ifdef __cplusplus
}
#endif

/* b in, b out. */
DDP__DEVICE void ddp__k_bias_act_item(const struct ddp__k_bias_act *p,
                                      size_t item, enum ddp_dtype type)
{
    size_t at = item * DDP__WIDTH;
    int count = ddp__k_count(at, p->len), channel = (int)(at % (size_t)p->c);
    bool wide = p->wide && count == DDP__WIDTH;
    float v[DDP__WIDTH];

    ddp__k_load(type, p->y, at, count, wide, v);
    for (int j = 0; j < DDP__WIDTH; j++) {
        v[j] = ddp__k_act(p->act, v[j] + (p->bias ? p->bias[channel] : 0));
        channel = channel + 1 < p->c ? channel + 1 : 0;
    }
    ddp__k_store(type, p->y, at, count, wide, v);
}

/* Threads of a block take consecutive channels. */
struct ddp__k_bn_var_shared {
    char none;
};
#define ddp__k_bn_inv_shared ddp__k_bn_var_shared
#define ddp__k_bn_put_shared ddp__k_bn_var_shared

/* var = 1 / inv^2 - eps, which rounding must not make negative */
DDP__DEVICE float ddp__k_given_variance(const struct ddp__k_bn_given *p, int i)
{
    float var = 1 / (p->inv[i] * p->inv[i]) - p->eps;

    return var < 0 ? 0 : var;
}

DDP__DEVICE void ddp__k_bn_var_block(const struct ddp__k_bn_given *p,
                                     struct ddp__k_bn_var_shared *shared,
                                     unsigned block)
{
    (void)shared;
    DDP__EACH(t, DDP__THREADS)
    {
        int i = (int)(block * DDP__THREADS + t);

        if (i < p->c)
            p->var[i] = ddp__k_given_variance(p, i);
    }
}

DDP__DEVICE void ddp__k_bn_inv_block(const struct ddp__k_bn_given *p,
                                     struct ddp__k_bn_var_shared *shared,
                                     unsigned block)
{
    (void)shared;
    DDP__EACH(t, DDP__THREADS)
    {
        int i = (int)(block * DDP__THREADS + t);

        if (i < p->c)
            p->inv[i] = 1 / sqrtf(p->var[i] + p->eps);
    }
}

DDP__DEVICE void ddp__k_put_channel(const struct ddp__k_bn_given *p, int i)
{
    float var = p->var ? p->var[i] : ddp__k_given_variance(p, i);
    float v[4] = {p->dscale[i], p->dshift[i], (float)p->n * p->mean[i],
                  (float)p->n * (var * p->unbias)};

    for (int k = 0; k < 4; k++) {
        float *g = &p->g[(size_t)k * (size_t)p->c + (size_t)i];

        *g = p->add ? *g + v[k] : v[k];
    }
}

DDP__DEVICE void ddp__k_bn_put_block(const struct ddp__k_bn_puts *all,
                                     struct ddp__k_bn_var_shared *shared,
                                     unsigned block)
{
    const struct ddp__k_bn_given *p = all->of;

    (void)shared;
    while (block >= p->blocks)
        block -= p++->blocks;
    DDP__EACH(t, DDP__THREADS)
    {
        int i = (int)(block * DDP__THREADS + t);

        if (i < p->c)
            ddp__k_put_channel(p, i);
    }
}

#endif
