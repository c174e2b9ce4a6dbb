/* norm.h - batch norm by libddp's kernels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Forward: bn_measure (partial results of chunks), bn_statistics (of all),
 * bn_normalise.  Backward: bn_sums, bn_gradients, bn_spread.
 */
#ifndef DDP_NORM_H
#define DDP_NORM_H

#include "columns.h"

/* Mean of some values, and the sum of squares of what they differ by. */
struct ddp__k_moments {
    double count, mean, squares;
};

/* Of both together.  Source: Chan, Golub, LeVeque, "Updating formulae and a
 * pairwise algorithm for computing sample variances", 1979. */
DDP__DEVICE struct ddp__k_moments ddp__k_join(struct ddp__k_moments a,
                                              struct ddp__k_moments b)
{
    struct ddp__k_moments all = a;
    double d = b.mean - a.mean, share;

    if (b.count == 0)
        return a;
    all.count += b.count;
    share = b.count / all.count;
    all.mean += d * share;
    all.squares += b.squares + d * d * a.count * share;
    return all;
}

struct ddp__k_bn_measure_shared {
    float mean[DDP__WIDTH][DDP__THREADS], squares[DDP__WIDTH][DDP__THREADS];
    unsigned count[DDP__THREADS];
};

/* The same in f32, of thread `from` into those of thread t. */
DDP__DEVICE void ddp__k_join_threads(struct ddp__k_bn_measure_shared *sh,
                                     unsigned t, unsigned from)
{
    float a = (float)sh->count[t], b = (float)sh->count[from], share;

    if (sh->count[from] == 0)
        return;
    share = b / (a + b);
    sh->count[t] += sh->count[from];
    for (int j = 0; j < DDP__WIDTH; j++) {
        float d = sh->mean[j][from] - sh->mean[j][t];

        sh->mean[j][t] += d * share;
        sh->squares[j][t] += sh->squares[j][from] + d * d * a * share;
    }
}

/* One thread's pixels.  Values are taken relative to the first of them, else
 * far from 0 the squares would leave nothing of the variance. */
DDP__DEVICE void ddp__k_measure_lane(const struct ddp__k_bn *p,
                                     struct ddp__k_lane l, enum ddp_dtype type,
                                     struct ddp__k_bn_measure_shared *sh,
                                     unsigned t)
{
    float base[DDP__WIDTH] = {0}, sum[DDP__WIDTH] = {0};
    float squares[DDP__WIDTH] = {0}, x[DDP__WIDTH];
    unsigned count = 0;

    if (l.row < l.end)
        ddp__k_load(type, p->x, ddp__k_lane_at(&p->k, &l), l.count, p->wide,
                    base);
    for (; l.row < l.end; l.row += l.step, count++) {
        ddp__k_load(type, p->x, ddp__k_lane_at(&p->k, &l), l.count, p->wide, x);
        for (int j = 0; j < DDP__WIDTH; j++) {
            float d = x[j] - base[j];

            sum[j] += d;
            squares[j] += d * d;
        }
    }
    sh->count[t] = count;
    for (int j = 0; j < DDP__WIDTH; j++) {
        float mean = count ? sum[j] / (float)count : 0;
        float rest = squares[j] - sum[j] * mean;

        sh->mean[j][t] = base[j] + mean;
        sh->squares[j][t] = rest < 0 ? 0 : rest;
    }
}

/* b in. */
DDP__DEVICE void ddp__k_bn_measure_block(const struct ddp__k_bn *p,
                                         struct ddp__k_bn_measure_shared *sh,
                                         unsigned block, enum ddp_dtype type)
{
    size_t c = (size_t)p->k.c, all = (size_t)p->k.chunks * c;

    DDP__EACH(t, DDP__THREADS)
    {
        ddp__k_measure_lane(p, ddp__k_lane(&p->k, block, t), type, sh, t);
    }
    for (unsigned half = DDP__THREADS / 2; half >= p->k.across; half /= 2)
        DDP__EACH(t, half)
        {
            ddp__k_join_threads(sh, t, t + half);
        }
    DDP__EACH(t, p->k.across)
    {
        struct ddp__k_lane l = ddp__k_lane(&p->k, block, t);

        for (int j = 0; j < l.count; j++) {
            size_t at = l.part * c + (size_t)(l.channel + j);

            p->part[at] = sh->mean[j][t];
            p->part[all + at] = sh->squares[j][t];
        }
    }
}

struct ddp__k_bn_statistics_shared {
    struct ddp__k_moments of[DDP__THREADS];
};

/* The moments of chunk i. */
DDP__DEVICE struct ddp__k_moments ddp__k_chunk(const struct ddp__k_bn *p,
                                               unsigned i, size_t channel)
{
    size_t begin = i * p->k.chunk, c = (size_t)p->k.c;
    size_t rest = p->k.rows - begin;
    struct ddp__k_moments m;

    m.count = (double)(rest < p->k.chunk ? rest : p->k.chunk);
    m.mean = p->part[i * c + channel];
    m.squares = p->part[(p->k.chunks + i) * c + channel];
    return m;
}

/* From the biased variance what stat holds. */
DDP__DEVICE float ddp__k_keep_variance(const struct ddp__k_bn *p, float var)
{
    return p->inverse ? 1 / sqrtf(var + p->eps) : var;
}

/* The variance, of what stat holds; rounding must not make it negative. */
DDP__DEVICE double ddp__k_kept_variance(const struct ddp__k_bn *p, float kept)
{
    double var = kept;

    if (p->inverse)
        var = 1 / (var * var) - p->eps;
    return var < 0 ? 0 : var;
}

/* Those of all chunks, of the block's channels, into of[] of its first
 * threads.  8 bytes a channel and chunk in. */
DDP__DEVICE void ddp__k_join_chunks(const struct ddp__k_bn *p,
                                    struct ddp__k_moments of[DDP__THREADS],
                                    unsigned block)
{
    DDP__EACH(t, DDP__THREADS)
    {
        struct ddp__k_spot s = ddp__k_spot(&p->k, block, t);
        struct ddp__k_moments m = {0, 0, 0};

        for (unsigned i = s.first;
             i < p->k.chunks && s.channel < (size_t)p->k.c; i += DDP__DEPTH)
            m = ddp__k_join(m, ddp__k_chunk(p, i, s.channel));
        of[t] = m;
    }
    for (unsigned half = DDP__THREADS / 2; half >= DDP__ABREAST; half /= 2)
        DDP__EACH(t, half)
        {
            of[t] = ddp__k_join(of[t], of[t + half]);
        }
}

/* stat = mean[c], biased variance[c] */
DDP__DEVICE void
ddp__k_bn_statistics_block(const struct ddp__k_bn *p,
                           struct ddp__k_bn_statistics_shared *sh,
                           unsigned block)
{
    size_t c = (size_t)p->k.c;

    ddp__k_join_chunks(p, sh->of, block);
    DDP__EACH(t, DDP__ABREAST)
    {
        struct ddp__k_spot s = ddp__k_spot(&p->k, block, t);

        if (s.channel < c) {
            p->stat[s.channel] = (float)sh->of[t].mean;
            p->stat[c + s.channel] = ddp__k_keep_variance(
                p, (float)(sh->of[t].squares / (double)p->k.rows));
        }
    }
}

/* The values of a thread's channels in an array of one per channel. */
DDP__DEVICE void ddp__k_of_channels(const float *from,
                                    const struct ddp__k_lane *l,
                                    float v[DDP__WIDTH])
{
    ddp__k_load(DDP_F32, from, (size_t)l->channel, l->count, false, v);
}

/* 1 / sqrt(var + eps) */
DDP__DEVICE void ddp__k_inverse(const struct ddp__k_bn *p,
                                const struct ddp__k_lane *l,
                                float v[DDP__WIDTH])
{
    ddp__k_of_channels(p->mean + p->k.c, l, v);
    if (p->inverse)
        return;
    for (int j = 0; j < DDP__WIDTH; j++)
        v[j] = 1 / sqrtf(v[j] + p->eps);
}

/* Bit j: x[j] > 0. */
DDP__DEVICE uint8_t ddp__k_positive(const float x[DDP__WIDTH])
{
    unsigned bits = 0;

    for (int j = 0; j < DDP__WIDTH; j++)
        bits |= (x[j] > 0 ? 1u : 0u) << j;
    return (uint8_t)bits;
}

struct ddp__k_bn_normalise_shared {
    char none;
};

/* One thread: y = act(scale (x - mean) / sqrt(var + eps) + shift + r) */
DDP__DEVICE void ddp__k_normalise_lane(const struct ddp__k_bn *p,
                                       struct ddp__k_lane l,
                                       enum ddp_dtype type)
{
    float mean[DDP__WIDTH], factor[DDP__WIDTH], shift[DDP__WIDTH];
    float scale[DDP__WIDTH], x[DDP__WIDTH], r[DDP__WIDTH];

    ddp__k_of_channels(p->mean, &l, mean);
    ddp__k_of_channels(p->w, &l, scale);
    ddp__k_of_channels(p->w + p->k.c, &l, shift);
    ddp__k_inverse(p, &l, factor);
    for (int j = 0; j < DDP__WIDTH; j++) {
        factor[j] *= scale[j];
        if (p->scales)
            mean[j] = shift[j] = 0;
    }
    for (; l.row < l.end; l.row += l.step) {
        size_t at = ddp__k_lane_at(&p->k, &l);

        ddp__k_load(type, p->x, at, l.count, p->wide, x);
        for (int j = 0; j < DDP__WIDTH; j++)
            x[j] = factor[j] * (x[j] - mean[j]) + shift[j];
        if (p->r) {
            ddp__k_load(type, p->r, at, l.count, p->wide, r);
            for (int j = 0; j < DDP__WIDTH; j++)
                x[j] += r[j];
        }
        ddp__k_act_all(p->act, x);
        ddp__k_store(type, p->y, at, l.count, p->wide, x);
        if (p->mask)
            p->mask[at / DDP__WIDTH] = ddp__k_positive(x);
    }
}

/* b in, b more with r, b out, an eighth of a byte with mask. */
DDP__DEVICE void
ddp__k_bn_normalise_block(const struct ddp__k_bn *p,
                          struct ddp__k_bn_normalise_shared *sh, unsigned block,
                          enum ddp_dtype type)
{
    (void)sh;
    DDP__EACH(t, DDP__THREADS)
    {
        struct ddp__k_lane l = ddp__k_lane(&p->k, block, t);

        if (l.row < l.end)
            ddp__k_normalise_lane(p, l, type);
    }
}

/* What the activation got at `at`, without a residual. */
DDP__DEVICE void ddp__k_before_act(const struct ddp__k_bn *p,
                                   const struct ddp__k_lane *l, size_t at,
                                   enum ddp_dtype type, float z[DDP__WIDTH])
{
    float mean[DDP__WIDTH], factor[DDP__WIDTH], shift[DDP__WIDTH];
    float scale[DDP__WIDTH];

    ddp__k_of_channels(p->mean, l, mean);
    ddp__k_of_channels(p->w, l, scale);
    ddp__k_of_channels(p->w + p->k.c, l, shift);
    ddp__k_inverse(p, l, factor);
    ddp__k_load(type, p->x, at, l->count, p->wide, z);
    for (int j = 0; j < DDP__WIDTH; j++)
        z[j] = factor[j] * scale[j] * (z[j] - mean[j]) + shift[j];
}

/* dz, the gradient before the activation, at `at`. */
DDP__DEVICE void ddp__k_unfold(const struct ddp__k_bn *p,
                               const struct ddp__k_lane *l, size_t at,
                               enum ddp_dtype type, float dz[DDP__WIDTH])
{
    float y[DDP__WIDTH];

    ddp__k_load(type, p->dy, at, l->count, p->wide, dz);
    if (p->act == DDP_IDENTITY)
        return;
    if (p->mask) {
        unsigned bits = p->mask[at / DDP__WIDTH];

        for (int j = 0; j < DDP__WIDTH; j++)
            dz[j] = bits >> j & 1 ? dz[j] : 0;
        return;
    }
    if (p->act == DDP_SILU || p->act == DDP_HARDSWISH)
        ddp__k_before_act(p, l, at, type, y);
    else
        ddp__k_load(type, p->y, at, l->count, p->wide, y);
    ddp__k_slope_all(p->act, y, dz);
}

struct ddp__k_bn_sums_shared {
    float dz[DDP__WIDTH][DDP__THREADS], dz_xhat[DDP__WIDTH][DDP__THREADS];
};

/* One thread: the sums of dz and of dz xhat; with a residual dr = dz */
DDP__DEVICE void ddp__k_bn_sum_lane(const struct ddp__k_bn *p,
                                    struct ddp__k_lane l, enum ddp_dtype type,
                                    float sum[DDP__WIDTH],
                                    float product[DDP__WIDTH])
{
    float mean[DDP__WIDTH], inverse[DDP__WIDTH];
    float x[DDP__WIDTH], dz[DDP__WIDTH];

    ddp__k_of_channels(p->mean, &l, mean);
    ddp__k_inverse(p, &l, inverse);
    for (; l.row < l.end; l.row += l.step) {
        size_t at = ddp__k_lane_at(&p->k, &l);

        ddp__k_load(type, p->x, at, l.count, p->wide, x);
        ddp__k_unfold(p, &l, at, type, dz);
        if (p->dr)
            ddp__k_store(type, p->dr, at, l.count, p->wide, dz);
        for (int j = 0; j < DDP__WIDTH; j++) {
            sum[j] += dz[j];
            product[j] += dz[j] * ((x[j] - mean[j]) * inverse[j]);
        }
    }
}

/* 3 b in, b out with dr; 2 b in without an activation or with mask. */
DDP__DEVICE void ddp__k_bn_sums_block(const struct ddp__k_bn *p,
                                      struct ddp__k_bn_sums_shared *sh,
                                      unsigned block, enum ddp_dtype type)
{
    size_t c = (size_t)p->k.c, all = (size_t)p->k.chunks * c;

    DDP__EACH(t, DDP__THREADS)
    {
        struct ddp__k_lane l = ddp__k_lane(&p->k, block, t);
        float sum[DDP__WIDTH] = {0}, product[DDP__WIDTH] = {0};

        if (l.row < l.end)
            ddp__k_bn_sum_lane(p, l, type, sum, product);
        for (int j = 0; j < DDP__WIDTH; j++) {
            sh->dz[j][t] = sum[j];
            sh->dz_xhat[j][t] = product[j];
        }
    }
    for (unsigned half = DDP__THREADS / 2; half >= p->k.across; half /= 2)
        DDP__EACH(t, half)
        {
            for (int j = 0; j < DDP__WIDTH; j++) {
                sh->dz[j][t] += sh->dz[j][t + half];
                sh->dz_xhat[j][t] += sh->dz_xhat[j][t + half];
            }
        }
    DDP__EACH(t, p->k.across)
    {
        struct ddp__k_lane l = ddp__k_lane(&p->k, block, t);

        for (int j = 0; j < l.count; j++) {
            size_t at = l.part * c + (size_t)(l.channel + j);

            p->part[at] = sh->dz[j][t];
            p->part[all + at] = sh->dz_xhat[j][t];
        }
    }
}

DDP__DEVICE void ddp__k_into(float *g, double value, bool add)
{
    *g = (float)(add ? *g + value : value);
}

DDP__DEVICE void ddp__k_into_total(double *total, double value, bool add)
{
    *total = add ? *total + value : value;
}

/* Keep a channel's sums for bn_spread: of this sub-batch, or of a step. */
DDP__DEVICE void ddp__k_keep_sums(const struct ddp__k_bn *p, size_t channel,
                                  double dz, double dz_xhat, double var)
{
    size_t c = (size_t)p->k.c;

    if (p->total) {
        ddp__k_into_total(&p->total[channel], dz, p->add);
        ddp__k_into_total(&p->total[c + channel],
                          dz_xhat * sqrt(var + (double)p->eps), p->add);
    } else {
        p->sum[channel] = (float)dz;
        p->sum[c + channel] = (float)dz_xhat;
    }
}

/* A channel's part of g: of scale and shift; the statistics times n, the
 * variance unbiased. */
DDP__DEVICE void ddp__k_channel_gradient(const struct ddp__k_bn *p,
                                         size_t channel, double dz,
                                         double dz_xhat)
{
    size_t c = (size_t)p->k.c;
    double m = p->count ? (double)*p->count : (double)p->k.rows;
    double var = ddp__k_kept_variance(p, p->mean[c + channel]);

    ddp__k_keep_sums(p, channel, dz, dz_xhat, var);
    if (m > 1)
        var *= m / (m - 1);
    ddp__k_into(&p->g[channel], dz_xhat, p->add);
    ddp__k_into(&p->g[c + channel], dz, p->add);
    ddp__k_into(&p->g[2 * c + channel], (double)p->n * p->mean[channel],
                p->add);
    ddp__k_into(&p->g[3 * c + channel], p->n * var, p->add);
}

struct ddp__k_bn_gradients_shared {
    double dz[DDP__THREADS], dz_xhat[DDP__THREADS];
};

/* 8 bytes a channel and chunk in. */
DDP__DEVICE void
ddp__k_bn_gradients_block(const struct ddp__k_bn *p,
                          struct ddp__k_bn_gradients_shared *sh, unsigned block)
{
    size_t c = (size_t)p->k.c, all = (size_t)p->k.chunks * c;

    DDP__EACH(t, DDP__THREADS)
    {
        struct ddp__k_spot s = ddp__k_spot(&p->k, block, t);

        sh->dz[t] = sh->dz_xhat[t] = 0;
        for (unsigned i = s.first; i < p->k.chunks && s.channel < c;
             i += DDP__DEPTH) {
            sh->dz[t] += p->part[i * c + s.channel];
            sh->dz_xhat[t] += p->part[all + i * c + s.channel];
        }
    }
    for (unsigned half = DDP__THREADS / 2; half >= DDP__ABREAST; half /= 2)
        DDP__EACH(t, half)
        {
            sh->dz[t] += sh->dz[t + half];
            sh->dz_xhat[t] += sh->dz_xhat[t + half];
        }
    DDP__EACH(t, DDP__ABREAST)
    {
        struct ddp__k_spot s = ddp__k_spot(&p->k, block, t);

        if (s.channel < c)
            ddp__k_channel_gradient(p, s.channel, sh->dz[t], sh->dz_xhat[t]);
    }
}

struct ddp__k_bn_spread_shared {
    char none;
};

/* dx = scale inv (dz - (sum dz + xhat sum(dz xhat)) / m)
 *    = a dz - b - c (x - mean),  of each channel */
struct ddp__k_spread {
    float mean[DDP__WIDTH], a[DDP__WIDTH], b[DDP__WIDTH], c[DDP__WIDTH];
};

/* The sums of a thread's channels, of dz and of dz xhat. */
DDP__DEVICE void ddp__k_sums_of_channels(const struct ddp__k_bn *p,
                                         const struct ddp__k_lane *l,
                                         const float inverse[DDP__WIDTH],
                                         float dz[DDP__WIDTH],
                                         float dz_xhat[DDP__WIDTH])
{
    size_t c = (size_t)p->k.c;

    if (!p->total) {
        ddp__k_of_channels(p->sum, l, dz);
        ddp__k_of_channels(p->sum + c, l, dz_xhat);
        return;
    }
    for (int j = 0; j < DDP__WIDTH; j++) {
        size_t at = (size_t)l->channel + (size_t)j;

        dz[j] = j < l->count ? (float)p->total[at] : 0;
        dz_xhat[j] =
            j < l->count ? (float)(p->total[c + at] * (double)inverse[j]) : 0;
    }
}

DDP__DEVICE void ddp__k_spread_factors(const struct ddp__k_bn *p,
                                       const struct ddp__k_lane *l,
                                       struct ddp__k_spread *f)
{
    float scale[DDP__WIDTH];
    float share = 1 / (p->count ? *p->count : (float)p->k.rows);

    ddp__k_of_channels(p->mean, l, f->mean);
    ddp__k_of_channels(p->w, l, scale);
    ddp__k_inverse(p, l, f->a);
    ddp__k_sums_of_channels(p, l, f->a, f->b, f->c);
    for (int j = 0; j < DDP__WIDTH; j++) {
        float inverse = f->a[j];

        f->a[j] *= scale[j];
        f->b[j] *= share * f->a[j];
        f->c[j] *= share * f->a[j] * inverse;
    }
}

/* One thread.  dr has what dy and y would have to be read for once more. */
DDP__DEVICE void ddp__k_spread_lane(const struct ddp__k_bn *p,
                                    struct ddp__k_lane l, enum ddp_dtype type)
{
    struct ddp__k_spread f;
    float x[DDP__WIDTH], dz[DDP__WIDTH];

    ddp__k_spread_factors(p, &l, &f);
    for (; l.row < l.end; l.row += l.step) {
        size_t at = ddp__k_lane_at(&p->k, &l);

        ddp__k_load(type, p->x, at, l.count, p->wide, x);
        if (p->dr)
            ddp__k_load(type, p->dr, at, l.count, p->wide, dz);
        else
            ddp__k_unfold(p, &l, at, type, dz);
        for (int j = 0; j < DDP__WIDTH; j++)
            x[j] = f.a[j] * dz[j] - f.b[j] - f.c[j] * (x[j] - f.mean[j]);
        ddp__k_store(type, p->dx, at, l.count, p->wide, x);
    }
}

/* 2 b in, b out, with dr, mask or without an activation; else b more in. */
DDP__DEVICE void ddp__k_bn_spread_block(const struct ddp__k_bn *p,
                                        struct ddp__k_bn_spread_shared *sh,
                                        unsigned block, enum ddp_dtype type)
{
    (void)sh;
    DDP__EACH(t, DDP__THREADS)
    {
        struct ddp__k_lane l = ddp__k_lane(&p->k, block, t);

        if (l.row < l.end)
            ddp__k_spread_lane(p, l, type);
    }
}

#endif
